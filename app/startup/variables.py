"""What a startup script can know of its machine: names and values for templates, the same at the check and for real."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from app.domain.ids import ProviderIdTemplate
from app.domain.labels import is_reserved_label
from app.domain.mig import mig_layout
from app.domain.nodegroup.spec import NodeGroupSpec, Taint
from app.domain.offering import Contract, InstanceType
from app.domain.template import gpu_count, kubelet_labels, region_of

INSTANCE_ID_FILE: Final = "/var/lib/cloud/data/instance-id"
"""Where cloud-init leaves the instance's id; what the older providers' scripts read, and documented nowhere."""

Variables = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """Which machine a script is for. `kind` is its entry in the catalogue."""

    name: str
    spec: NodeGroupSpec
    kind: InstanceType
    contract: Contract
    location: str
    cluster: str


def machine_variables(birth: Birth) -> Variables:
    """Everything that a template may use of a machine, besides the values that the operator gives it."""
    spec, kind = birth.spec, birth.kind
    wanted = kubelet_labels(spec, kind, birth.contract, birth.location)
    labels = {key: value for key, value in wanted.items() if not is_reserved_label(key)}
    taints = [taint_text(taint) for taint in (*spec.taints, *spec.startup_taints)]
    label_list = [f"{key}={value}" for key, value in sorted(labels.items())]
    layout = mig_layout(spec.mig_profile, kind) if spec.mig_profile else None
    return {
        "hostname": birth.name,
        "provider_id": _provider_id(birth),
        "node_group": spec.name,
        "cluster": birth.cluster,
        "contract": birth.contract.value,
        "location": birth.location,
        "region": region_of(birth.location),
        "instance_type": kind.name,
        "image": spec.image,
        "gpu_count": gpu_count(spec, kind),
        "mig_profile": spec.mig_profile or "",
        "mig_devices": list(layout.devices) if layout else [],
        "labels": labels,
        "taints": taints,
        "label_list": label_list,
        "taint_objects": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect.value}
            for taint in (*spec.taints, *spec.startup_taints)
        ],
        "kubelet_labels": ",".join(label_list),
        "kubelet_taints": ",".join(taints),
    }


def taint_text(taint: Taint) -> str:
    """As a kubelet's `--register-with-taints` wants it."""
    return f"{taint.key}={taint.value}:{taint.effect.value}"


def _provider_id(birth: Birth) -> str:
    """The provider id as far as it is known before the machine exists, with `$INSTANCE_ID` for what only it can know.

    Scripts are shells', and the ready-made ones set the variable; see `INSTANCE_ID_FILE`.
    """
    return ProviderIdTemplate(birth.spec.provider_id_template).provider_id(
        name=birth.name, group=birth.spec.name, location=birth.location, instance_id="$INSTANCE_ID"
    )


def variable_names() -> frozenset[str]:
    """The names above, which values of the operator's must not hide."""
    spec = NodeGroupSpec(name="any", min_size=0, max_size=0, instance_type="any", image="any", locations=("any",))
    return frozenset(machine_variables(sample_birth(spec, "any")))


def sample_birth(spec: NodeGroupSpec, cluster: str) -> Birth:
    """A made-up machine of a group, to try its script on before anything is bought and the catalogue is known."""
    kind = InstanceType(
        name=spec.instance_type,
        cpus=8,
        memory_gb=Decimal(64),
        gpus=1,
        gpu_memory_gb=Decimal(80),
        gpu_name="H100 SXM5 80GB",
        model="H100",
        manufacturer="NVIDIA",
        storage_gb=None,
        on_demand_price=None,
        spot_price=None,
        currency="usd",
    )
    return Birth(
        name=f"{spec.name}-a2b3c4d5",
        spec=spec,
        kind=kind,
        contract=spec.contracts[0],
        location=spec.locations[0],
        cluster=cluster,
    )
