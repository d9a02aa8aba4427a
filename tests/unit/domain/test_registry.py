import re
import string
from decimal import Decimal

import pytest

from app.domain.account import AccountAccepted, AccountRefused
from app.domain.cloud import (
    BalanceObserved,
    CloudUnreachable,
    DuplicateInstanceDeleted,
    OrphanOutcome,
    OrphanVolumeDeleted,
    PriceChanged,
)
from app.domain.cluster.events import (
    JoinTokenAttempted,
    JoinTokenDoubted,
    JoinTokenMinted,
    JoinTokenRevoked,
    JoinTokenTrusted,
    NodeRemovalAbandoned,
    NodeRemovalAttempted,
    NodeRemoved,
    TemplateLearned,
    TemplatesDiscarded,
    TokenEnd,
)
from app.domain.cluster.node import Figures
from app.domain.envelope import CloudEvent, ClusterEvent, Event, InstanceEvent, NodeGroupEvent, ServiceEvent
from app.domain.instance.events import (
    End,
    FailureCode,
    NodeDoubt,
    NodeDoubted,
    NodeJoined,
    NodeMeasured,
    NodePreparationAttempted,
    NodePrepared,
    NodeRegistered,
    ProviderIdRepairAttempted,
)
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.events import (
    BreakerClosed,
    BreakerClosing,
    BreakerOpened,
    BreakerProbed,
    JoinFailed,
    JoinSucceeded,
    NodeGroupClosed,
    NodeGroupPaused,
    NodeGroupResumed,
    Rejection,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.offering import Contract
from app.domain.registry import EVENT_TYPES, UPCASTERS, UnknownEvent, decode
from app.domain.scripts import (
    ScriptDeleted,
    ScriptDeletionAttempted,
    ScriptEnd,
    ScriptUploadAttempted,
    ScriptUploaded,
)
from app.domain.service import (
    BooksReverted,
    ConfigurationLoaded,
    ConfigurationRejected,
    Evidence,
    InstallationCreated,
    ServiceStarted,
)

from .facts import (
    A_ID,
    H100,
    H100_TYPE,
    OS_VOLUME,
    A,
    B,
    adopted,
    attempted,
    cancelled,
    catalogue,
    claimed,
    configured,
    created,
    delete_attempted,
    delete_refused,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    observed,
    orphan,
    orphan_settled,
    refused,
    rested,
    retired,
    ruled_out,
    script_assigned,
    script_fetched,
    surplus,
    unknown,
    wanted,
)
from .scenario import NOON

SCRIPT = "ca:v1:inst1:h100-aaaaaaaa:1"

EVENTS: tuple[Event, ...] = (
    configured(H100.model_copy(update={"hourly_price": Decimal("1.50"), "labels": {"team": "ml"}})),
    retired(instances=2),
    ScaleUpRequested(node_group="h100", delta=2, new_target=3, instances=(A, B)),
    ScaleUpRejected(node_group="h100", delta=2, target_size=3, reason=Rejection.MAX_SIZE, message="3 + 2 is too many"),
    TargetSizeDecreased(node_group="h100", delta=1, new_target=0, instances=(A,)),
    ScaleDownRequested(node_group="h100", count=1, new_target=0, instances=(A,)),
    rested(),
    NodeGroupPaused(node_group="h100", operator="anna (uid 1000)", reason="new driver"),
    NodeGroupResumed(node_group="h100", operator="anna (uid 1000)", reason="driver is out"),
    wanted(),
    attempted(contract=Contract.SPOT, price="0.8015"),
    created(),
    refused(retry_at=NOON, rung_closed=False),
    unknown(),
    ruled_out(),
    failed(),
    observed(InstanceState.RUNNING, price="2.290", created_at=NOON, os_volume_id=OS_VOLUME, volume_ids=(OS_VOLUME,)),
    learned("verda:///h100-aaaaaaaa"),
    NodeRegistered(instance=A, node_group="h100", node=A, uid="u-1", provider_id=f"verda://{A}", waited_s=42),
    NodeJoined(instance=A, node_group="h100", waited_s=77),
    NodeMeasured(instance=A, node_group="h100", differences=("nvidia.com/gpu: 7 of 8",)),
    NodeDoubted(instance=A, node_group="h100", doubt=NodeDoubt.MISSED, message="no node has registered"),
    ProviderIdRepairAttempted(
        instance=A, node_group="h100", node=A, uid="u-1", provider_id=f"verda://{A}", evidence="same address"
    ),
    NodePreparationAttempted(instance=A, node_group="h100", node=A, uid="u-1", changes=("label example.com/a=b",)),
    NodePrepared(instance=A, node_group="h100", node=A, changes=("without taint booting=:NoSchedule",)),
    JoinFailed(node_group="h100", instance=A, in_a_row=3, ran_s=900, wished_at=NOON, message="no node"),
    JoinSucceeded(node_group="h100", instance=A),
    BreakerOpened(node_group="h100", in_a_row=3, probe_at=NOON),
    BreakerProbed(node_group="h100", instance=A, probe=1, next_at=NOON),
    BreakerClosed(node_group="h100", reason=BreakerClosing.RECONFIGURED),
    delete_requested(),
    delete_attempted(volume_ids=(OS_VOLUME,)),
    delete_refused(),
    gone(cost="4.580000"),
    lost(cost=None),
    adopted(),
    cancelled(),
    ScriptUploadAttempted(script=SCRIPT, instance=A, node_group="h100", digest="5c"),
    ScriptUploaded(script=SCRIPT, script_id="s-1"),
    ScriptDeletionAttempted(script=SCRIPT, script_id="s-1"),
    ScriptDeleted(script=SCRIPT, script_id=None, reason=ScriptEnd.NEVER_UPLOADED),
    script_assigned(),
    script_fetched(),
    CloudUnreachable(code="timeout", message="no answer"),
    catalogue(H100_TYPE),
    PriceChanged(
        instance_type="1H100.80S.32V", contract=Contract.SPOT, old=None, new=Decimal("0.80150"), currency="usd"
    ),
    orphan(),
    orphan_settled(OrphanOutcome.VANISHED, "2.290000"),
    surplus(A_ID, A, "duplicate"),
    DuplicateInstanceDeleted(instance_id=A_ID, instance=A),
    NodeGroupClosed(node_group="h100", code=FailureCode.IMAGE_NOT_SUPPORTED, message="Operating system is not valid"),
    AccountRefused(code="insufficient-funds", message="no money", until=NOON),
    AccountAccepted(since=NOON),
    OrphanVolumeDeleted(volume_id="v-1", instance=A, size_gb=100),
    NodeRemovalAttempted(node=A, uid="u-1", instance=A, node_group="h100", end=End.EVICTED, silent_since=NOON),
    NodeRemoved(node=A, uid="u-1", instance=A, node_group="h100", end=End.EVICTED),
    TemplateLearned(
        kind="1H100.80S.32V, ubuntu-24.04",
        node=A,
        instance=A,
        figures=Figures(capacity={"cpu": "32"}, allocatable={"cpu": "31850m"}, labels={"nvidia.com/gpu.count": "1"}),
        differences=("cpu: 31.85 of 31.9",),
    ),
    TemplatesDiscarded(kinds=("1H100.80S.32V, ubuntu-24.04",)),
    JoinTokenAttempted(token_id="abcdef", instance=A, node_group="h100", attempt=1, expires_at=NOON),
    JoinTokenMinted(token_id="abcdef", instance=A, node_group="h100"),
    JoinTokenRevoked(token_id="abcdef", instance=A, node_group="h100", reason=TokenEnd.JOINED),
    JoinTokenDoubted(token_id="abcdef", node_groups=("h100",), expires_at=None, message="it is not in the cluster"),
    JoinTokenTrusted(token_id="abcdef"),
    NodeRemovalAbandoned(node=A, uid="u-1", instance=A, node_group="h100", reason="it has changed"),
    BalanceObserved(amount=Decimal("12.30"), currency="usd"),
    InstallationCreated(installation_id="inst1"),
    ServiceStarted(epoch=1, version="0.1.0", host="pod-0", pid=1, sqlite_version="3.51.3", backend="verda"),
    ConfigurationLoaded(sha256="5a", cluster_name="c1", node_groups=1, max_hourly_cost=Decimal("9.5")),
    ConfigurationRejected(sha256="5b", problems=1, first="config.yaml:3: node_groups: must be a mapping"),
    claimed("inst2"),
    BooksReverted(evidence=Evidence.MACHINES, position=7, once_reached=None, dropped=1),
)
ALL = sorted(EVENT_TYPES.items())
CATEGORIES: dict[type[Event], str] = {
    InstanceEvent: "instance",
    NodeGroupEvent: "nodegroup",
    CloudEvent: "cloud",
    ClusterEvent: "cluster",
    ServiceEvent: "service",
}
PAST_PARTICIPLES_THAT_END_OTHERWISE = {"gone", "lost", "unknown", "reachable", "unreachable", "out"}


def _all_subclasses(kind: type[Event]) -> set[type[Event]]:
    found = set(kind.__subclasses__())
    return found | {deeper for child in found for deeper in _all_subclasses(child)}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.type))
def test_every_event_reads_back_as_it_was_written(event: Event) -> None:
    """Money keeps its digits, times their zone, lists their order."""
    back = decode(event.type, event.schema_version, event.model_dump_json())
    assert back == event
    assert type(back) is type(event)
    assert back.model_dump_json() == event.model_dump_json()


def test_every_type_of_event_was_tried() -> None:
    """A new one has to be added above; `cloud.reachable` has begun every story."""
    tried = {event.type for event in EVENTS} | {"cloud.reachable"}
    assert tried == set(EVENT_TYPES)
    assert h100.books.cloud.reachable is True


def test_no_event_is_missing_from_the_registry() -> None:
    """One that could be written and not read would make the log unreadable."""
    written = {kind for base in CATEGORIES for kind in _all_subclasses(base) if kind.__module__.startswith("app.")}
    assert written == set(EVENT_TYPES.values())
    assert len({kind.type for kind in written}) == len(written)


@pytest.mark.parametrize(("name", "kind"), ALL, ids=[name for name, _ in ALL])
def test_type_names_are_the_aggregate_and_what_happened_to_it(name: str, kind: type[Event]) -> None:
    """Kebab case, never a Python path: the name outlives every class."""
    aggregate, _, fact = name.partition(".")
    category = next(category for base, category in CATEGORIES.items() if issubclass(kind, base))
    assert aggregate == category
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", fact)
    last = fact.rsplit("-", 1)[-1]
    assert last.endswith("ed") or last in PAST_PARTICIPLES_THAT_END_OTHERWISE


@pytest.mark.parametrize(("name", "kind"), ALL, ids=[name for name, _ in ALL])
def test_words_name_only_fields_that_exist(name: str, kind: type[Event]) -> None:
    """The audit view fills them from the top level of the payload; an unknown one would stay a hole."""
    fields = [field for _, field, _, _ in string.Formatter().parse(kind.words) if field is not None]
    assert set(fields) <= set(kind.model_fields), name
    assert all(re.fullmatch(r"[a-z0-9_]+", field) for field in fields)


@pytest.mark.parametrize(("name", "kind"), ALL, ids=[name for name, _ in ALL])
def test_an_unknown_field_is_an_error(name: str, kind: type[Event]) -> None:
    """It was written by somebody who means something by it; dropping it would lose a fact."""
    sample = next((event for event in EVENTS if event.type == name), None)
    payload = sample.model_dump_json() if sample else '{"backend": "verda"}'
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        decode(name, kind.schema_version, payload[:-1] + ', "surprise": 1}')


def test_an_event_of_a_newer_program_is_never_skipped() -> None:
    """By type or by version: going on without it would make the books wrong."""
    with pytest.raises(UnknownEvent, match=r"instance\.teleported version 1"):
        decode("instance.teleported", 1, "{}")
    with pytest.raises(UnknownEvent, match=r"instance\.requested version 2"):
        decode("instance.requested", 2, wanted().model_dump_json())


def test_every_old_version_has_a_way_up() -> None:
    """A gap would be found only on the day somebody upgrades."""
    needed = {(name, version) for name, kind in EVENT_TYPES.items() for version in range(1, kind.schema_version)}
    assert needed == set(UPCASTERS)


def test_events_cannot_be_changed() -> None:
    """A fact is a fact."""
    with pytest.raises(ValueError, match="frozen"):
        wanted().instance = B  # type: ignore[misc] # that is the point
