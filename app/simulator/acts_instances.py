"""Acts of the platform and of other people on instances: evictions, failures, losses, strangers."""

from collections.abc import Callable

from pydantic import JsonValue

from app.simulator.admission import ENDED
from app.simulator.arguments import Args, number, word
from app.simulator.core import HUMAN_USER, to_ms
from app.simulator.errors import invalid, not_found
from app.simulator.records import DeleteWish, EventKind, InstanceRecord, Status
from app.simulator.steer import Fate
from app.simulator.world import World

_STATUSES_OF_FAILURE = frozenset({Status.ERROR, Status.INSTALLATION_FAILED, Status.NO_CAPACITY})


def _chosen(world: World, args: Args, fits: Callable[[InstanceRecord], bool] = lambda _: True) -> InstanceRecord:
    """The living instance named by `id` or `hostname`, or the youngest that fits. Raises: 404."""
    wanted, hostname = word(args, "id", ""), word(args, "hostname", "")
    for item in reversed(list(world.state.instances.values())):
        named = wanted in {"", item.id} and hostname in {"", item.hostname}
        if item.status not in ENDED and named and (wanted or hostname or fits(item)):
            return item
    raise not_found("There is no such living instance")


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
    item, status = _chosen(world, args), word(args, "value", "unknown")
    if status == Status.DISCONTINUED:
        world.lifecycle.end(item, "control")
    elif status == Status.NO_CAPACITY:
        world.lifecycle.give_up(item)
    else:
        world.lifecycle.become(item, status)
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
