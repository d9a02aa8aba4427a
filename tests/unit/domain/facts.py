"""Made-up facts, one short word each; unless said otherwise they are about the instance A of the group h100."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from app.domain.cloud import (
    CatalogueChanged,
    CloudReachable,
    DuplicateInstanceDetected,
    OrphanDetected,
    OrphanOutcome,
    OrphanSettled,
)
from app.domain.envelope import Event, InstanceEvent
from app.domain.instance.events import (
    CancelReason,
    CreateAttempted,
    CreateFailed,
    CreateOutcomeUnknown,
    CreateRefused,
    CreateRuledOut,
    DeleteAttempted,
    DeleteReason,
    DeleteRefused,
    DeleteRequested,
    End,
    ErrorClass,
    FailureCode,
    FetchOutcome,
    Found,
    InstanceAdopted,
    InstanceCancelled,
    InstanceCreated,
    InstanceGone,
    InstanceLost,
    InstanceRequested,
    InstanceStateObserved,
    ProviderIdLearned,
    ScriptAssigned,
    ScriptFetched,
)
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.nodegroup.events import NodeGroupConfigured, NodeGroupRetired, OfferingRested
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.service import ConfigurationLoaded, InstallationClaimed, InstallationCreated, ServiceStarted

from .scenario import NOON, Scenario

A = "h100-aaaaaaaa"
B = "h100-bbbbbbbb"
C = "h100-cccccccc"
D = "h100-dddddddd"
A_ID = "1a1a1a1a-0000-4000-8000-000000000001"
B_ID = "2b2b2b2b-0000-4000-8000-000000000002"
C_ID = "3c3c3c3c-0000-4000-8000-000000000003"
OS_VOLUME = "05050505-0000-4000-8000-000000000005"
DATA_VOLUME = "da7ada7a-0000-4000-8000-000000000007"
OURS = "ca:v1 cluster=c1 installation=inst1 group=h100"
IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"

H100_TYPE = InstanceType(
    name="1H100.80S.32V",
    cpus=32,
    memory_gb=Decimal(185),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("2.29"),
    spot_price=Decimal("0.8015"),
    currency="usd",
)
CPU_TYPE = H100_TYPE.model_copy(
    update={
        "name": "CPU.4V.16G",
        "cpus": 4,
        "gpus": 0,
        "on_demand_price": Decimal("0.0279"),
        "spot_price": Decimal("0.0098"),
    }
)
H100 = NodeGroupSpec(
    name="h100", min_size=0, max_size=4, instance_type="1H100.80S.32V", image=IMAGE, locations=("FIN-01", "FIN-03")
)
CPU = NodeGroupSpec(
    name="cpu", min_size=1, max_size=3, instance_type="CPU.4V.16G", image="ubuntu-24.04", locations=("FIN-01",)
)


def configured(spec: NodeGroupSpec) -> NodeGroupConfigured:
    """The operator's configuration names this group."""
    return NodeGroupConfigured(
        node_group=spec.name,
        min_size=spec.min_size,
        max_size=spec.max_size,
        instance_type=spec.instance_type,
        spec=spec,
    )


def retired(node_group: str = "h100", instances: int = 0) -> NodeGroupRetired:
    """The group left the configuration."""
    return NodeGroupRetired(node_group=node_group, instances=instances)


def catalogue(*types: InstanceType) -> CatalogueChanged:
    """New or changed instance types."""
    return CatalogueChanged(count=len(types), withdrawn_count=0, types=types, withdrawn=())


def claimed(installation: str) -> InstallationClaimed:
    """A predecessor's machines were taken over."""
    return InstallationClaimed(installation_id=installation)


def orphan(
    instance_id: str = C_ID,
    hostname: str = C,
    installation: str = "inst2",
    group: str = "h100",
    reason: str = "made by another installation that uses our cluster's name",
) -> OrphanDetected:
    """A machine that looks like ours and is not."""
    return OrphanDetected(
        instance_id=instance_id,
        hostname=hostname,
        installation=installation,
        node_group=group,
        price_per_hour=Decimal("2.29"),
        reason=reason,
    )


def orphan_settled(outcome: OrphanOutcome, cost: str | None, instance_id: str = C_ID, hostname: str = C) -> Event:
    """It is in the books now, or gone."""
    return OrphanSettled(
        instance_id=instance_id, hostname=hostname, outcome=outcome, cost=None if cost is None else Decimal(cost)
    )


def surplus(instance_id: str, instance: str, reason: str) -> DuplicateInstanceDetected:
    """A machine of ours that no instance stands for is to be deleted."""
    return DuplicateInstanceDetected(instance_id=instance_id, instance=instance, reason=reason)


def wanted(name: str = A, node_group: str = "h100") -> InstanceRequested:
    """A wish."""
    return InstanceRequested(instance=name, node_group=node_group, provider_id=f"verda://{name}")


def attempted(
    name: str = A,
    attempt: int = 1,
    location: str = "FIN-01",
    contract: Contract = Contract.ON_DEMAND,
    price: str | None = "2.29",
) -> CreateAttempted:
    """A create call is about to be made."""
    return CreateAttempted(
        instance=name,
        node_group="h100",
        attempt=attempt,
        instance_type="1H100.80S.32V",
        image=IMAGE,
        location=location,
        contract=contract,
        price_per_hour=None if price is None else Decimal(price),
        currency="usd",
    )


def created(name: str = A, instance_id: str = A_ID, found: Found = Found.ANSWERED) -> InstanceCreated:
    """The machine exists."""
    return InstanceCreated(
        instance=name, node_group="h100", instance_id=instance_id, provider_id=f"verda://{name}", found=found
    )


def refused(
    name: str = A,
    attempt: int = 1,
    error_class: ErrorClass = ErrorClass.OUT_OF_RESOURCES,
    code: FailureCode = FailureCode.OUT_OF_STOCK,
    message: str = "No capacity available; add locations or another group",
    *,
    rung_closed: bool = True,
    retry_at: datetime | None = None,
) -> CreateRefused:
    """A create call did nothing; by default for want of stock."""
    return CreateRefused(
        instance=name,
        node_group="h100",
        attempt=attempt,
        error_class=error_class,
        code=code,
        message=message,
        rung_closed=rung_closed,
        retry_at=retry_at,
    )


def unknown(name: str = A, attempt: int = 1, reason: str = "read timed out") -> CreateOutcomeUnknown:
    """Nobody knows what became of the create call."""
    return CreateOutcomeUnknown(instance=name, node_group="h100", attempt=attempt, reason=reason)


def ruled_out(name: str = A, attempt: int = 1, looked_since: datetime = NOON) -> CreateRuledOut:
    """The create call created nothing after all."""
    return CreateRuledOut(instance=name, node_group="h100", attempt=attempt, looked_since=looked_since)


def script_assigned(name: str = A, token: str | None = None) -> ScriptAssigned:
    """The machine is ordered with an uploaded startup script."""
    script = f"ca:v1:inst1:{name}:1"
    return ScriptAssigned(instance=name, node_group="h100", script=script, script_id="s-1", token_digest=token)


def script_fetched(name: str = A, outcome: FetchOutcome = FetchOutcome.SERVED) -> ScriptFetched:
    """Somebody asked for the machine's script."""
    return ScriptFetched(instance=name, node_group="h100", source="10.0.0.7", outcome=outcome)


def rested(
    location: str = "FIN-01",
    contract: Contract = Contract.ON_DEMAND,
    code: FailureCode = FailureCode.OUT_OF_STOCK,
    message: str = "No capacity available; add locations or another group",
    until: datetime = NOON + timedelta(minutes=10),
) -> OfferingRested:
    """An offering of h100 is tried after the others until then."""
    return OfferingRested(
        node_group="h100",
        instance_type="1H100.80S.32V",
        location=location,
        contract=contract,
        code=code,
        message=message,
        until=until,
    )


def failed(
    name: str = A,
    error_class: ErrorClass = ErrorClass.OUT_OF_RESOURCES,
    code: FailureCode = FailureCode.OUT_OF_STOCK,
    message: str = "No capacity available; add locations or another group",
) -> CreateFailed:
    """The creation failed for good."""
    return CreateFailed(instance=name, node_group="h100", error_class=error_class, code=code, message=message)


def observed(
    state: InstanceState = InstanceState.RUNNING,
    status: str | None = None,
    name: str = A,
    node_group: str = "h100",
    news: str | None = None,
    contract: Contract | None = None,
    location: str | None = None,
    price: str | None = None,
    created_at: datetime | None = None,
    os_volume_id: str | None = None,
    volume_ids: tuple[str, ...] = (),
) -> InstanceStateObserved:
    """The cloud shows something new of the machine; its word is ours unless told."""
    return InstanceStateObserved(
        instance=name,
        node_group=node_group,
        status=status or str(state),
        state=state,
        news=f"the cloud says {status or state}" if news is None else news,
        contract=contract,
        location=location,
        price_per_hour=None if price is None else Decimal(price),
        created_at=created_at,
        ip=None,
        os_volume_id=os_volume_id,
        volume_ids=volume_ids,
    )


def learned(provider_id: str, name: str = A) -> ProviderIdLearned:
    """Kubernetes spells the provider id like this."""
    return ProviderIdLearned(instance=name, node_group="h100", provider_id=provider_id)


def delete_requested(name: str = A, reason: DeleteReason = DeleteReason.SCALE_DOWN) -> DeleteRequested:
    """The instance is to go."""
    return DeleteRequested(instance=name, node_group="h100", reason=reason)


def delete_attempted(
    name: str = A,
    attempt: int = 1,
    instance_id: str = A_ID,
    volume_ids: tuple[str, ...] = (),
    retry_at: datetime = NOON + timedelta(seconds=30),
) -> DeleteAttempted:
    """A delete call is about to be made."""
    return DeleteAttempted(
        instance=name,
        node_group="h100",
        attempt=attempt,
        instance_id=instance_id,
        volume_ids=volume_ids,
        retry_at=retry_at,
    )


def delete_refused(
    name: str = A, attempt: int = 1, message: str = "still provisioning", retry_at: datetime = NOON
) -> DeleteRefused:
    """The delete call was not taken."""
    return DeleteRefused(
        instance=name, node_group="h100", attempt=attempt, code="forbidden_action", message=message, retry_at=retry_at
    )


def gone(name: str = A, cost: str | None = None) -> InstanceGone:
    """The machine we deleted is no more."""
    price = None if cost is None else Decimal(cost)
    return InstanceGone(instance=name, node_group="h100", end=End.DELETED, cost=price, currency="usd")


def lost(name: str = A, end: End = End.VANISHED, cost: str | None = None) -> InstanceLost:
    """The machine is no more without our asking."""
    price = None if cost is None else Decimal(cost)
    return InstanceLost(instance=name, node_group="h100", end=end, cost=price, currency="usd")


def adopted(
    name: str = A, instance_id: str = A_ID, node_group: str = "h100", provider_id: str | None = None
) -> InstanceAdopted:
    """A machine that carries our mark was taken over."""
    return InstanceAdopted(
        instance=name,
        node_group=node_group,
        instance_id=instance_id,
        provider_id=provider_id or f"verda://{name}",
        instance_type="1H100.80S.32V",
        image=IMAGE,
    )


def cancelled(name: str = A, reason: CancelReason = CancelReason.DELETED) -> InstanceCancelled:
    """The wish is dropped."""
    return InstanceCancelled(instance=name, node_group="h100", reason=reason)


def machine(
    instance_id: str = A_ID,
    hostname: str = A,
    status: str = "running",
    description: str = OURS,
    location: str | None = "FIN-01",
    contract: Contract | None = Contract.ON_DEMAND,
    price: str | None = "2.29",
    created_at: datetime | None = NOON,
    os_volume_id: str | None = OS_VOLUME,
    volume_ids: tuple[str, ...] = (OS_VOLUME,),
) -> Machine:
    """A machine as the cloud lists it; by default A's, running on demand in FIN-01."""
    return Machine(
        instance_id=instance_id,
        hostname=hostname,
        status=status,
        description=description,
        instance_type="1H100.80S.32V",
        image=IMAGE,
        location=location,
        contract=contract,
        price_per_hour=None if price is None else Decimal(price),
        created_at=created_at,
        os_volume_id=os_volume_id,
        volume_ids=volume_ids,
    )


def running(name: str = A, instance_id: str = A_ID) -> tuple[InstanceEvent, ...]:
    """From the wish to a running machine; nothing of it but its state was looked at."""
    return wanted(name), attempted(name), created(name, instance_id), observed(name=name)


LEADING_TO: Mapping[InstanceState, tuple[InstanceEvent, ...]] = {
    InstanceState.REQUESTED: (wanted(),),
    InstanceState.SUBMITTING: (wanted(), attempted()),
    InstanceState.PROVISIONING: (wanted(), attempted(), created()),
    InstanceState.RUNNING: running(),
    InstanceState.STOPPED: (*running(), observed(InstanceState.STOPPED, "offline")),
    InstanceState.FAILED: (wanted(), attempted(), refused(), failed()),
    InstanceState.DELETING: (*running(), delete_requested()),
    InstanceState.GONE: (*running(), delete_requested(), delete_attempted(), gone()),
    InstanceState.LOST: (*running(), lost()),
    InstanceState.CANCELLED: (wanted(), cancelled()),
}
"""One story of A for each state."""

NEW_DATABASE = Scenario().given(
    InstallationCreated(installation_id="inst1"),
    ServiceStarted(epoch=1, version="0.1.0", host="pod-0", pid=1, sqlite_version="3.51.3", backend="simulator"),
    ConfigurationLoaded(sha256="5a", cluster_name="c1", node_groups=1),
    configured(H100),
)
"""Installation inst1 of cluster c1 has just started for the first time and has not seen the cloud yet."""

h100 = NEW_DATABASE.given(catalogue(H100_TYPE), CloudReachable(backend="simulator"))
"""A provider that serves one empty group of at most four."""
