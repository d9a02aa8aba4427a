"""Acts of the platform and of other people, by name: what happens to the project without its asking."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic import JsonValue

from app.simulator import acts_instances as instances
from app.simulator import acts_project as project
from app.simulator.arguments import Args
from app.simulator.errors import not_found
from app.simulator.world import World

Act = Callable[[World, Args], JsonValue]

ACTS: Mapping[str, Act] = MappingProxyType(
    {
        "evict": instances.evict,
        "evict_wave": instances.evict_wave,
        "fail": instances.fail,
        "stick": instances.stick,
        "unstick": instances.unstick,
        "vanish": instances.vanish,
        "vanish_then_return": instances.vanish_then_return,
        "unvanish": instances.unvanish,
        "offline": instances.offline,
        "guest_poweroff": instances.offline,
        "set_status": instances.set_status,
        "human_delete": instances.human_delete,
        "human_shutdown": instances.human_shutdown,
        "human_description_edit": instances.human_description_edit,
        "human_same_hostname": instances.human_same_hostname,
        "foreign_instance": instances.foreign_instance,
        "balance_zero": project.balance_zero,
        "balance_low": project.balance_low,
        "type_removed": project.type_removed,
        "type_renamed": project.type_renamed,
        "price_jump": project.price_jump,
        "scripts_over_page": project.scripts_over_page,
        "script_deleted": project.script_deleted,
        "script_quota": project.script_quota,
        "trash_full_quota": project.trash_full_quota,
        "volume_stuck_detaching": project.volume_stuck_detaching,
        "clock_skew": project.clock_skew,
    }
)


def perform(world: World, name: str, args: Args) -> JsonValue:
    """Do a named act now; answers what it was done to. Raises: 404 for an unknown act or object, 400."""
    act = ACTS.get(name)
    if act is None:
        raise not_found(f"There is no act {name}")
    world.catch_up()
    result = act(world, args)
    world.touch()
    return result
