"""Acts of the platform and of other people on the world: evictions, losses, strangers, empty accounts."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from pydantic import JsonValue

from app.simulator.admission import ENDED
from app.simulator.core import HUMAN_USER, to_ms
from app.simulator.errors import ApiError, invalid, not_found
from app.simulator.presets import Args, number, word
from app.simulator.records import DeleteWish, EventKind, InstanceRecord, Status, VolumeRecord
from app.simulator.steer import Fate
from app.simulator.world import World

Act = Callable[[World, Args], JsonValue]

_STATUSES_OF_FAILURE = frozenset({Status.ERROR, Status.INSTALLATION_FAILED, Status.NO_CAPACITY})


def _chosen(world: World, args: Args, fits: Callable[[InstanceRecord], bool] = lambda _: True) -> InstanceRecord:
    """The instance named by `id` or `hostname`, or the youngest living one that fits. Raises: 404."""
    wanted, hostname = word(args, "id", ""), word(args, "hostname", "")
    for item in reversed(list(world.state.instances.values())):
        if wanted or hostname:
            if item.id == wanted or (item.hostname == hostname and item.status not in ENDED):
                return item
        elif item.status not in ENDED and fits(item):
            return item
    raise not_found("There is no such instance")


def evict(world: World, args: Args) -> JsonValue:
    """Take one spot instance away, `id`, or every one of a `family`."""
    family = word(args, "family", "")
    if family:
        return _evict_all(world, lambda item: world.catalogue.row(item.instance_type).family == family)
    victim = _chosen(world, args, lambda item: item.is_spot)
    world.lifecycle.evict(victim, word(args, "reason", "evicted_by_on_demand"))
    return [victim.id]


def evict_wave(world: World, args: Args) -> JsonValue:
    """Take spot instances away everywhere, or a `share` of them, the youngest first."""
    spot = [item for item in world.state.instances.values() if item.is_spot and item.status not in ENDED]
    count = round(len(spot) * number(args, "share", 1.0))
    doomed = {item.id for item in spot[len(spot) - count :]}
    return _evict_all(world, lambda item: item.id in doomed)


def _evict_all(world: World, fits: Callable[[InstanceRecord], bool]) -> JsonValue:
    victims = [
        item for item in world.state.instances.values() if item.is_spot and item.status not in ENDED and fits(item)
    ]
    for victim in victims:
        world.lifecycle.evict(victim, "evicted_by_on_demand")
    return [victim.id for victim in victims]


def fail(world: World, args: Args) -> JsonValue:
    """Put an instance into a failed `status`."""
    status = word(args, "status", Status.ERROR.value)
    if status not in _STATUSES_OF_FAILURE:
        raise invalid("status must be error, installation_failed or no_capacity")
    item = _chosen(world, args)
    if status == Status.NO_CAPACITY:
        world.lifecycle.give_up(item)
    else:
        world.lifecycle.fail(item, status, word(args, "error", ""))
    return item.id


def stick(world: World, args: Args) -> JsonValue:
    """Let an instance stay in its present status for ever."""
    item = _chosen(world, args)
    item.generation += 1
    if item.status in {Status.ORDERED, Status.PROVISIONING}:
        item.plan.fate = Fate.STUCK_PROVISIONING
    return item.id


def unstick(world: World, args: Args) -> JsonValue:
    """Let a stuck instance go on at once."""
    item = _chosen(world, args)
    item.generation += 1
    item.plan.fate = Fate.RUN
    world.core.time.schedule(0, EventKind.NEXT, item.id, item.generation)
    return item.id


def vanish(world: World, args: Args) -> JsonValue:
    """Lose an instance's record: gone from the list and 404 by id, while the machine goes on and costs money."""
    item = _chosen(world, args)
    item.hidden = True
    return item.id


def vanish_then_return(world: World, args: Args) -> JsonValue:
    """Lose a record and find it again `seconds` later."""
    item = _chosen(world, args)
    item.hidden = True
    world.core.time.schedule(to_ms(number(args, "seconds", 60)), EventKind.RETURN, item.id)
    return item.id


def unvanish(world: World, args: Args) -> JsonValue:
    """Find a lost record again."""
    item = _chosen(world, args)
    item.hidden = False
    return item.id


def offline(world: World, args: Args) -> JsonValue:
    """The machine powers itself off: `offline`, and billed on."""
    item = _chosen(world, args, lambda one: one.status == Status.RUNNING)
    world.lifecycle.become(item, Status.OFFLINE)
    return item.id


def set_status(world: World, args: Args) -> JsonValue:
    """Show any status, known to anybody or not; it stays until something else happens."""
    item = _chosen(world, args)
    world.lifecycle.become(item, word(args, "value", "unknown"))
    return item.id


def human_delete(world: World, args: Args) -> JsonValue:
    """Somebody deletes an instance in the console."""
    item = _chosen(world, args)
    item.wish = DeleteWish(volume_ids=None, permanently=False, actor=HUMAN_USER)
    world.lifecycle.delete(item, actor=HUMAN_USER)
    return item.id


def human_shutdown(world: World, args: Args) -> JsonValue:
    """Somebody shuts an instance down in the console."""
    item = _chosen(world, args, lambda one: one.status == Status.RUNNING)
    world.lifecycle.shutdown(item, actor=HUMAN_USER)
    return item.id


def human_description_edit(world: World, args: Args) -> JsonValue:
    """Somebody changes an instance's description, and with it any ownership mark."""
    item = _chosen(world, args)
    item.description = word(args, "description", "hands off, Bob")
    return item.id


def human_same_hostname(world: World, args: Args) -> JsonValue:
    """Somebody deploys an instance with a hostname that is already in use."""
    twin = _chosen(world, args)
    return foreign_instance(world, {"hostname": twin.hostname, "description": word(args, "description", "")})


def foreign_instance(world: World, args: Args) -> JsonValue:
    """Somebody else's instance in the same project; any field of a create may be given, and `status` running."""
    body = {
        "instance_type": "CPU.4V.16G",
        "image": "ubuntu-24.04",
        "hostname": f"bobs-machine-{world.core.ordinal('foreign')}",
        "location_code": "FIN-01",
        **args,
    }
    instance = world.instances.create(body, world.scripts, world.keys, foreign=True)
    while args.get("status") == Status.RUNNING != instance.status and instance.status not in ENDED:
        world.lifecycle.next(instance)
    return instance.id


def balance_zero(world: World, _args: Args) -> JsonValue:
    """Empty the account: everything is discontinued at once."""
    world.account.settle_storage()
    world.account.top_up(-world.state.account.balance_micro)
    world.check_balance()
    return world.state.account.balance_micro / 1_000_000


def balance_low(world: World, args: Args) -> JsonValue:
    """Leave `amount` dollars on the account."""
    world.account.settle_storage()
    world.account.top_up(round(number(args, "amount", 0.01) * 1_000_000) - world.state.account.balance_micro)
    world.check_balance()
    return world.state.account.balance_micro / 1_000_000


def type_removed(world: World, args: Args) -> JsonValue:
    """Take an instance type off the list; machines of it go on."""
    name = word(args, "type", "1H100.80S.30V")
    if world.catalogue.find(name) is None:
        raise not_found("There is no such type")
    world.state.market.removed.append(name)
    return name


def type_renamed(world: World, args: Args) -> JsonValue:
    """Sell a type under another name; machines keep the old one."""
    old, new = word(args, "type", "1GB300.32V"), word(args, "to", "1GB300.36V")
    if world.catalogue.find(old) is None or world.catalogue.find(new) is not None:
        raise not_found("There is no such type, or the new name is taken")
    market = world.state.market
    market.renamed[new] = market.renamed.get(old, old)
    market.removed.append(old)
    return new


def price_jump(world: World, args: Args) -> JsonValue:
    """Multiply the price of a `type`, or of all, by `factor`."""
    name = word(args, "type", "*")
    world.catalogue.jump_price(world.state.market.renamed.get(name, name), number(args, "factor", 1.3))
    return name


def scripts_over_page(world: World, args: Args) -> JsonValue:
    """Let somebody add `n` startup scripts, more than one page."""
    return [world.scripts.add(f"bobs-script-{at}", "#!/bin/sh\n").id for at in range(int(number(args, "n", 12)))]


def script_deleted(world: World, args: Args) -> JsonValue:
    """Let somebody delete a startup script, the newest unless `id` is given."""
    scripts = world.scripts.newest_first()
    wanted = word(args, "id", scripts[0].id if scripts else "")
    world.scripts.delete([wanted])
    return wanted


def script_quota(world: World, _args: Args) -> JsonValue:
    """No more scripts than there are."""
    world.state.quotas.scripts = len(world.scripts)
    return world.state.quotas.scripts


def trash_full_quota(world: World, _args: Args) -> JsonValue:
    """No more storage than is used, the trash included."""
    world.state.quotas.storage_gb = sum(volume.size_gb for volume in world.state.volumes.values() if not volume.gone)
    return world.state.quotas.storage_gb


def volume_stuck_detaching(world: World, args: Args) -> JsonValue:
    """Let a volume, the youngest attached one unless `id` is given, never get free."""
    volume = _volume(world, args)
    volume.stuck = True
    return volume.id


def _volume(world: World, args: Args) -> VolumeRecord:
    wanted = word(args, "id", "")
    found: Iterator[VolumeRecord] = (
        item
        for item in reversed(list(world.state.volumes.values()))
        if (item.id == wanted if wanted else item.instance_id is not None)
    )
    volume = next(found, None)
    if volume is None:
        raise not_found("There is no such volume")
    return volume


def clock_skew(world: World, args: Args) -> JsonValue:
    """Show all times, and the Date header, `seconds` late or early."""
    world.state.skew_ms = to_ms(number(args, "seconds", -300))
    return world.state.skew_ms


ACTS: Mapping[str, Act] = MappingProxyType(
    {
        act.__name__: act
        for act in (
            evict,
            evict_wave,
            fail,
            stick,
            unstick,
            vanish,
            vanish_then_return,
            unvanish,
            offline,
            set_status,
            human_delete,
            human_shutdown,
            human_description_edit,
            human_same_hostname,
            foreign_instance,
            balance_zero,
            balance_low,
            type_removed,
            type_renamed,
            price_jump,
            scripts_over_page,
            script_deleted,
            script_quota,
            trash_full_quota,
            volume_stuck_detaching,
            clock_skew,
        )
    }
    | {"guest_poweroff": offline}
)


def perform(world: World, name: str, args: Args) -> JsonValue:
    """Do a named act now; answers what it was done to. Raises: 404 for an unknown act or object, 400."""
    act = ACTS.get(name)
    if act is None:
        raise ApiError(404, "not_found", f"There is no act {name}")
    world.catch_up()
    result = act(world, args)
    world.touch()
    return result
