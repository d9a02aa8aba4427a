"""One sample of every event, and the program that writes golden files of them on purpose.

`python -m tests.store.golden` writes the files that are missing and never touches one that is there. An event whose
payload changes gets a new schema version and an upcaster, and so a new file; its old files stay for ever. Before the
first release, `--overwrite <type>` replaces a file instead.
"""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from app.domain import account, cloud, scripts, service
from app.domain.cluster import events as cluster
from app.domain.cluster.node import Figures
from app.domain.envelope import Event
from app.domain.instance import events as instance
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup import events as group
from app.domain.nodegroup.spec import AutoscalingOptions, NodeGroupSpec, Taint, TaintEffect
from app.domain.offering import Contract, InstanceType

DIRECTORY = Path(__file__).parents[1] / "golden" / "events"

_AT = datetime(2026, 1, 5, 12, 30, 15, 250000, tzinfo=UTC)
_OURS = {"instance": "h100-k7m2p9qx", "node_group": "h100"}
_NODE = {"node": "h100-k7m2p9qx", "uid": "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", **_OURS}
_ID = "5e1f0c9a-7b62-4d1e-9f0b-2a6c3d4e5f60"
_SCRIPT = "ca:v1:q4k7m2p9qxa2b3c4:h100-k7m2p9qx:1"
_TYPE = InstanceType(
    name="1H100.80S.30V",
    cpus=30,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=Decimal("512.5"),
    on_demand_price=Decimal("2.40"),
    spot_price=None,
    currency="usd",
    supported_images=("ubuntu-24.04", "ubuntu-24.04-cuda-12.8-open"),
)
_SPEC = NodeGroupSpec(
    name="h100",
    min_size=1,
    max_size=8,
    instance_type="1H100.80S.30V",
    image="ubuntu-24.04-cuda-12.8-open",
    locations=("FIN-01", "FIN-03"),
    contracts=(Contract.SPOT, Contract.ON_DEMAND),
    hourly_price=Decimal("2.50"),
    ssh_key_ids=("key-1",),
    startup_script_id="script-1",
    os_volume_size_gb=100,
    labels={"tier": "gpu", "app": "träining"},
    taints=(Taint(key="nvidia.com/gpu", value="present", effect=TaintEffect.NO_SCHEDULE),),
    resources={"cpu": "29500m"},
    reserved={"memory": "2Gi"},
    autoscaling_options=AutoscalingOptions(
        scale_down_utilization_threshold=0.5, scale_down_unneeded_time=timedelta(minutes=7, seconds=30)
    ),
    max_hourly_cost=Decimal("20.00"),
)

SAMPLES: Sequence[Event] = (
    group.NodeGroupConfigured(node_group="h100", min_size=1, max_size=8, instance_type="1H100.80S.30V", spec=_SPEC),
    group.NodeGroupRetired(node_group="h100", instances=2),
    group.ScaleUpRequested(node_group="h100", delta=2, new_target=3, instances=("h100-k7m2p9qx", "h100-a2b3c4d5")),
    group.ScaleUpRejected(
        node_group="h100",
        delta=9,
        target_size=3,
        reason=group.Rejection.MAX_SIZE,
        message="3 + 9 is more than max_size 8 of h100",
    ),
    group.TargetSizeDecreased(node_group="h100", delta=2, new_target=2, instances=("h100-a2b3c4d5",)),
    group.ScaleDownRequested(node_group="h100", count=1, new_target=1, instances=("h100-k7m2p9qx",)),
    group.OfferingRested(
        node_group="h100",
        instance_type="1H100.80S.30V",
        location="FIN-01",
        contract=Contract.SPOT,
        code=instance.FailureCode.OUT_OF_STOCK,
        message="No capacity available; add locations or another group",
        until=_AT,
    ),
    group.NodeGroupPaused(node_group="h100", operator="anna (uid 1000)", reason="new driver"),
    group.NodeGroupResumed(node_group="h100", operator="anna (uid 1000)", reason="driver is out"),
    group.JoinFailed(
        node_group="h100",
        instance="h100-k7m2p9qx",
        in_a_row=3,
        ran_s=812,
        wished_at=_AT,
        message="at FIN-01, address 10.0.0.7: no node with provider id verda://h100-k7m2p9qx has registered",
    ),
    group.JoinSucceeded(node_group="h100", instance="h100-k7m2p9qx"),
    group.BreakerOpened(node_group="h100", in_a_row=3, probe_at=_AT),
    group.BreakerProbed(node_group="h100", instance="h100-k7m2p9qx", probe=2, next_at=_AT),
    group.BreakerClosed(node_group="h100", reason=group.BreakerClosing.OPERATOR),
    instance.InstanceRequested(**_OURS, provider_id="verda://h100-k7m2p9qx"),
    instance.CreateAttempted(
        **_OURS,
        attempt=1,
        instance_type="1H100.80S.30V",
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=Decimal("0.60"),
        currency="usd",
    ),
    instance.ScriptAssigned(**_OURS, script=_SCRIPT, script_id="script-9", token_digest="9f86d081884c7d65"),
    instance.ScriptFetched(**_OURS, source="10.0.0.7", outcome=instance.FetchOutcome.SERVED),
    instance.InstanceCreated(
        **_OURS, instance_id=_ID, provider_id="verda://h100-k7m2p9qx", found=instance.Found.LOOKED_UP
    ),
    instance.CreateRefused(
        **_OURS,
        attempt=1,
        error_class=instance.ErrorClass.OUT_OF_RESOURCES,
        code=instance.FailureCode.OUT_OF_STOCK,
        message='No capacity: "FIN-01" isn\'t available',
        rung_closed=True,
        retry_at=None,
    ),
    instance.CreateOutcomeUnknown(**_OURS, attempt=1, reason="connection reset"),
    instance.CreateRuledOut(**_OURS, attempt=1, looked_since=_AT),
    instance.CreateFailed(
        **_OURS,
        error_class=instance.ErrorClass.OTHER,
        code=instance.FailureCode.CREATE_TIMEOUT,
        message="no machine could be ordered in time",
    ),
    instance.InstanceStateObserved(
        **_OURS,
        status="running",
        state=InstanceState.RUNNING,
        news="the cloud says running, address 10.0.0.7",
        contract=Contract.SPOT,
        location="FIN-01",
        price_per_hour=Decimal("0.60"),
        created_at=_AT,
        ip="10.0.0.7",
        os_volume_id="vol-1",
        volume_ids=("vol-1", "vol-2"),
    ),
    instance.NodeRegistered(
        **_OURS, node="h100-k7m2p9qx", uid=_NODE["uid"], provider_id="verda://h100-k7m2p9qx", waited_s=42
    ),
    instance.NodeJoined(**_OURS, waited_s=77),
    instance.NodeMeasured(**_OURS, differences=("nvidia.com/gpu: 7 of 8",)),
    instance.NodeDoubted(
        **_OURS, doubt=instance.NodeDoubt.WRONG_PROVIDER_ID, message="start its kubelet with --provider-id=verda://x"
    ),
    instance.ProviderIdRepairAttempted(
        **_OURS,
        node="h100-k7m2p9qx",
        uid=_NODE["uid"],
        provider_id="verda://h100-k7m2p9qx",
        evidence="same name and same address 10.0.0.7",
    ),
    instance.NodePreparationAttempted(
        **_OURS, node="h100-k7m2p9qx", uid=_NODE["uid"], changes=("label node-role.kubernetes.io/gpu=",)
    ),
    instance.NodePrepared(
        **_OURS,
        node="h100-k7m2p9qx",
        changes=("label verda.com/contract=spot", "without taint example.com/booting=:NoSchedule"),
    ),
    instance.ProviderIdLearned(**_OURS, provider_id="verda:///h100-k7m2p9qx"),
    instance.DeleteRequested(**_OURS, reason=instance.DeleteReason.SCALE_DOWN),
    instance.DeleteAttempted(**_OURS, attempt=1, instance_id=_ID, volume_ids=("vol-1",), retry_at=_AT),
    instance.DeleteRefused(
        **_OURS, attempt=1, code="forbidden_action", message="Instance is provisioning", retry_at=_AT
    ),
    instance.InstanceGone(**_OURS, end=instance.End.DELETED, cost=Decimal("1.234567"), currency="usd"),
    instance.InstanceLost(**_OURS, end=instance.End.EVICTED, cost=None, currency="usd"),
    instance.InstanceAdopted(
        **_OURS,
        instance_id=_ID,
        provider_id="verda://h100-k7m2p9qx",
        instance_type="1H100.80S.30V",
        image=None,
        operator="anna (uid 1000)",
        reason="made by another tool",
    ),
    instance.InstanceCancelled(**_OURS, reason=instance.CancelReason.TARGET_DECREASED),
    scripts.ScriptUploadAttempted(
        script=_SCRIPT, instance="h100-k7m2p9qx", node_group="h100", digest="2c26b46b68ffc68ff99b453c1d304134"
    ),
    scripts.ScriptUploaded(script=_SCRIPT, script_id="script-9"),
    scripts.ScriptDeletionAttempted(script=_SCRIPT, script_id="script-9"),
    scripts.ScriptDeleted(script=_SCRIPT, script_id="script-9", reason=scripts.ScriptEnd.NO_LONGER_NEEDED),
    cloud.CloudReachable(backend="verda"),
    cloud.CloudUnreachable(code="timeout", message="no answer within 10 s"),
    cloud.CatalogueChanged(count=1, withdrawn_count=1, types=(_TYPE,), withdrawn=("CPU.4V.16G",)),
    cloud.PriceChanged(
        instance_type="1H100.80S.30V",
        contract=Contract.ON_DEMAND,
        old=Decimal("2.40"),
        new=Decimal("2.29"),
        currency="usd",
    ),
    cloud.OrphanDetected(
        instance_id=_ID,
        hostname="h100-zzzzzzzz",
        installation="q4k7m2p9qxa2b3c4",
        node_group="h100",
        price_per_hour=Decimal("0.60"),
        reason="made by another installation that uses our cluster's name",
    ),
    cloud.OrphanSettled(
        instance_id=_ID, hostname="h100-zzzzzzzz", outcome=cloud.OrphanOutcome.VANISHED, cost=Decimal("0.150000")
    ),
    cloud.DuplicateInstanceDetected(instance_id=_ID, instance="h100-k7m2p9qx", reason="duplicate"),
    cloud.DuplicateInstanceDeleted(instance_id=_ID, instance="h100-k7m2p9qx"),
    group.NodeGroupClosed(
        node_group="h100", code=instance.FailureCode.IMAGE_NOT_SUPPORTED, message="Operating system is not valid"
    ),
    account.AccountRefused(
        code="insufficient-funds", message="Insufficient funds; top up the Verda balance", until=_AT
    ),
    account.AccountAccepted(since=_AT),
    cloud.OrphanVolumeDeleted(volume_id=_ID, instance="h100-k7m2p9qx", size_gb=100),
    cluster.NodeRemovalAttempted(**_NODE, end=instance.End.EVICTED, silent_since=_AT),
    cluster.NodeRemoved(**_NODE, end=instance.End.EVICTED),
    cluster.TemplateLearned(
        kind="1H100.80S.30V, ubuntu-24.04, 100 GB",
        node="h100-k7m2p9qx",
        instance="h100-k7m2p9qx",
        figures=Figures(
            capacity={"cpu": "30", "memory": "120384172Ki", "nvidia.com/gpu": "1"},
            allocatable={"cpu": "29850m", "memory": "117312172Ki", "nvidia.com/gpu": "1"},
            labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        ),
        differences=("memory: 120127664128 of 121000000000",),
    ),
    cluster.TemplatesDiscarded(kinds=("1H100.80S.30V, ubuntu-24.04, 100 GB",)),
    cluster.JoinTokenAttempted(
        token_id="k7m2p9", instance="h100-k7m2p9qx", node_group="h100", attempt=2, expires_at=_AT
    ),
    cluster.JoinTokenMinted(token_id="k7m2p9", instance="h100-k7m2p9qx", node_group="h100"),
    cluster.JoinTokenRevoked(
        token_id="k7m2p9", instance="h100-k7m2p9qx", node_group="h100", reason=cluster.TokenEnd.JOINED
    ),
    cluster.JoinTokenDoubted(
        token_id="abcdef",
        node_groups=("h100", "a100"),
        expires_at=_AT,
        message="join token abcdef in the startup script of h100, a100 ends at 2026-01-05 12:00 UTC",
    ),
    cluster.JoinTokenTrusted(token_id="abcdef"),
    cluster.NodeRemovalAbandoned(**_NODE, reason="it is ready again"),
    cloud.BalanceObserved(amount=Decimal("1234.56"), currency="usd"),
    service.InstallationCreated(installation_id="q4k7m2p9qxa2b3c4"),
    service.ServiceStarted(
        epoch=3, version="0.1.0", host="provider-0", pid=7, sqlite_version="3.53.4", backend="verda"
    ),
    service.ConfigurationLoaded(
        sha256="c0ffee", cluster_name="prod", node_groups=2, max_hourly_cost=Decimal(100), balance_runway_s=21600
    ),
    service.ConfigurationRejected(
        sha256="c0ffee",
        problems=2,
        first="config.yaml:7: node_groups.gpu.max_size: must be at least 3, is 2",
    ),
    service.InstallationClaimed(installation_id="a2b3c4d5e6f7g2h3"),
    service.BooksReverted(evidence=service.Evidence.POSITION, position=120, once_reached=140, dropped=2),
)


def file_of(type_name: str, schema_version: int) -> Path:
    """Where the golden file of a type at a schema version is."""
    return DIRECTORY / f"{type_name}.v{schema_version}.json"


def content_of(event: Event) -> dict[str, Any]:
    """What a golden file says of an event."""
    return {"type": event.type, "schema": event.schema_version, "data": event.model_dump(mode="json")}


def main(*arguments: str) -> None:
    """Write what is missing, and what is named behind `--overwrite`."""
    overwrite = set(arguments[1:]) if arguments[:1] == ("--overwrite",) else set()
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for event in SAMPLES:
        file = file_of(event.type, event.schema_version)
        if not file.exists() or event.type in overwrite:
            text = json.dumps(content_of(event), indent=2, sort_keys=True, ensure_ascii=False)
            file.write_text(f"{text}\n", encoding="utf-8")
            sys.stdout.write(f"wrote {file.name}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
