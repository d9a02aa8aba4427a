"""The truth about a world: what really exists, what it really costs, what really happened."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from pydantic import JsonValue

from app.simulator.account import billed_ms, meter_cost_micro
from app.simulator.core import iso
from app.simulator.exchange import Exchange, group_of
from app.simulator.records import InstanceRecord, Status, VolumeRecord
from app.simulator.steer import GuestFate
from app.simulator.world import World


def _dollars(micro: int) -> float:
    return micro / 1_000_000


def _when(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso(at_ms)


def truth(world: World, exchange: Exchange, connections_opened: int) -> dict[str, JsonValue]:
    """Everything `/_sim/truth` answers. Money in dollars, durations in seconds."""
    world.account.settle_storage()
    now, counters = world.state.now_ms, world.state.counters
    return {
        "now": iso(now),
        **_calls(world),
        **_population(world),
        **_money(world),
        "token_calls": counters.token_calls,
        "requests": exchange.requests,
        "requests_by_route": dict(counters.requests_by_route),
        "429_sent": counters.rate_limited,
        "max_in_flight": exchange.max_in_flight,
        "connections_opened": connections_opened,
        "instances": [instance_truth(item, now) for item in world.state.instances.values()],
        "volumes": [volume_truth(volume) for volume in world.state.volumes.values() if not volume.gone],
    }


def _calls(world: World) -> dict[str, JsonValue]:
    """What was asked of the API, and what came of it."""
    counters = world.state.counters
    return {
        "creates_requested": counters.creates_requested,
        "creates_committed": counters.creates_committed,
        "creates_answered_ok": counters.creates_answered_ok,
        "creates_response_lost": counters.creates_response_lost,
        "posts_after_unknown_without_list": counters.posts_after_unknown_without_list,
        "deletes_requested": counters.deletes_requested,
        "deletes_committed": counters.deletes_committed,
        "deletes_repeated": counters.deletes_repeated,
        "refused_deletes": counters.deletes_refused,
        "foreign_deletes": counters.foreign_deletes,
        "deletes_of_never_requested": counters.deletes_of_never_requested,
    }


def _population(world: World) -> dict[str, JsonValue]:
    """What exists, and what should not."""
    records = world.state.instances.values()
    alive = [item for item in records if item.ended_ms is None]
    ids_of: dict[str, list[JsonValue]] = defaultdict(list)
    for item in records:
        ids_of[item.hostname].append(item.id)
    duplicates = {name: ids for name, ids in ids_of.items() if len(ids) > 1}
    volumes = [volume for volume in world.state.volumes.values() if not volume.gone]
    return {
        "alive": len(alive),
        "peak_alive": world.state.counters.peak_alive,
        "alive_by_group": dict(Counter(group_of(item.description) for item in alive)),
        "evictions": world.state.counters.evictions,
        "duplicate_hostnames": {**duplicates},
        "posts_same_hostname": sum(len(ids) - 1 for ids in duplicates.values()),
        "orphan_volumes": [volume.id for volume in volumes if _is_orphan(volume)],
        "trash_volumes": sum(1 for volume in volumes if volume.deleted_ms is not None),
        "scripts_count": len(world.scripts),
    }


def _money(world: World) -> dict[str, JsonValue]:
    """What was paid, and for what."""
    now, records, account = world.state.now_ms, world.state.instances.values(), world.state.account
    return {
        "billed_seconds": sum(billed_ms(item.meter, now) for item in records) / 1000,
        "cost_instances": _dollars(sum(meter_cost_micro(item.meter, now) for item in records)),
        "cost_volumes": _dollars(sum(volume.charged_micro for volume in world.state.volumes.values())),
        "wasted_cost": _dollars(sum(_wasted_micro(item, now) for item in records)),
        "balance": _dollars(account.balance_micro),
        "ledger": {kind: _dollars(total) for kind, total in sorted(account.totals.items())},
    }


def instance_truth(item: InstanceRecord, now_ms: int) -> dict[str, JsonValue]:
    """One instance, ended or not."""
    return {
        "id": item.id,
        "hostname": item.hostname,
        "description": item.description,
        "group": group_of(item.description),
        "status": item.status,
        "contract": "SPOT" if item.is_spot else "PAY_AS_YOU_GO",
        "location": item.location,
        "instance_type": item.instance_type,
        "foreign": item.foreign,
        "hidden": item.hidden,
        "created": iso(item.created_ms),
        "first_running": _when(item.first_running_ms),
        "ended": _when(item.ended_ms),
        "end_reason": item.end_reason,
        "billed_seconds": billed_ms(item.meter, now_ms) / 1000,
        "price_per_hour": _dollars(item.meter.price_micro),
        "cost": _dollars(meter_cost_micro(item.meter, now_ms)),
        "delete_requests": item.delete_requests,
        "os_volume_id": item.os_volume_id,
    }


def volume_truth(volume: VolumeRecord) -> dict[str, JsonValue]:
    """One volume, in the trash or not."""
    return {
        "id": volume.id,
        "name": volume.name,
        "status": volume.status,
        "size_gb": volume.size_gb,
        "is_os_volume": volume.is_os,
        "instance_id": volume.instance_id,
        "last_instance_id": volume.last_instance_id,
        "location": volume.location,
        "created": iso(volume.created_ms),
        "in_trash_since": _when(volume.deleted_ms),
        "billed": volume.billed_from_ms is not None,
        "cost": _dollars(volume.charged_micro),
    }


def orphans(world: World, known: Iterable[str]) -> dict[str, JsonValue]:
    """Billed instances and volumes that are not among the known ids or hostnames, nor belong to one that is."""
    names, now = set(known), world.state.now_ms
    unknown = [
        item
        for item in world.state.instances.values()
        if item.meter.stopped_ms is None and not {item.id, item.hostname} & names
    ]
    owners = {item.id for item in world.state.instances.values() if {item.id, item.hostname} & names}
    loose = [
        volume
        for volume in world.state.volumes.values()
        if volume.billed_from_ms is not None and volume.id not in names and volume.instance_id not in owners
    ]
    return {
        "instances": [instance_truth(item, now) for item in unknown],
        "volumes": [volume_truth(volume) for volume in loose],
    }


def guests(world: World) -> list[JsonValue]:
    """Machines that are up, for whoever plays the cluster.

    `ready_at` is null until the startup script has finished, for ever when it never does. `provider_id` is what the
    script computes on the machine: `verda://` and the hostname.
    """
    return [
        {
            "instance_id": item.id,
            "hostname": item.hostname,
            "ip": item.ip,
            "location": item.location,
            "instance_type": item.instance_type,
            "is_spot": item.is_spot,
            "description": item.description,
            "script": item.script,
            "booted_at": _when(item.first_running_ms),
            "ready": item.guest_ready_ms is not None,
            "ready_at": _when(item.guest_ready_ms),
            "provider_id": _provider_id(item),
        }
        for item in world.state.instances.values()
        if item.status == Status.RUNNING and item.first_running_ms is not None
    ]


def _provider_id(item: InstanceRecord) -> str:
    return "verda://" if item.plan.guest is GuestFate.WRONG_PROVIDER_ID else f"verda://{item.hostname}"


def _is_orphan(volume: VolumeRecord) -> bool:
    return volume.is_os and volume.instance_id is None and volume.deleted_ms is None


def _wasted_micro(item: InstanceRecord, now_ms: int) -> int:
    """Cost of the time in which an instance was not running with its software up."""
    billed = billed_ms(item.meter, now_ms)
    if not billed:
        return 0
    useful = item.useful_ms + (now_ms - item.guest_ready_ms if item.guest_ready_ms is not None else 0)
    return round(meter_cost_micro(item.meter, now_ms) * (billed - min(useful, billed)) / billed)
