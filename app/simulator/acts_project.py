"""Acts on the project rather than on one instance: money, catalogue, scripts, volumes, the clock it shows."""

from collections.abc import Iterator

from pydantic import JsonValue

from app.simulator.arguments import Args, number, word
from app.simulator.core import to_ms
from app.simulator.errors import not_found
from app.simulator.records import VolumeRecord
from app.simulator.world import World


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
