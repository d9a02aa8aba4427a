"""The template node: written once, found by every generation where it looks."""

from decimal import Decimal
from typing import Any

import pytest

from app.domain.nodegroup.spec import NodeGroupSpec, Taint, TaintEffect
from app.domain.offering import Contract, InstanceType
from app.domain.template import TemplateNode, build_template
from app.rpc.gen import kubernetes_pb2 as kube
from app.rpc.generation import template_response
from app.rpc.kubernetes_codec import encode_node

from .clients import Client

V100 = InstanceType(
    name="1V100.6V",
    cpus=6,
    memory_gb=Decimal(23),
    gpus=1,
    gpu_memory_gb=Decimal(16),
    gpu_name="Tesla V100 16GB",
    model="Tesla V100",
    manufacturer="NVIDIA",
    storage_gb=Decimal(225),
    on_demand_price=Decimal("0.1381"),
    spot_price=Decimal("0.04830"),
    currency="usd",
)
SPEC = NodeGroupSpec(
    name="gpu",
    min_size=0,
    max_size=4,
    instance_type="1V100.6V",
    image="ubuntu-24.04",
    locations=("FIN-01",),
    labels={"team": "ml"},
    taints=(
        Taint(key="nvidia.com/gpu", value="present", effect=TaintEffect.NO_SCHEDULE),
        Taint(key="dedicated", effect=TaintEffect.NO_EXECUTE),
    ),
)
LABELS = {
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": "gpu-template",
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": "1V100.6V",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.family": "volta",
    "nvidia.com/gpu.memory": "16384",
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB",
    "team": "ml",
    "topology.kubernetes.io/region": "FIN",
    "topology.kubernetes.io/zone": "FIN-01",
    "verda.com/contract": "spot",
    "verda.com/gpu": "v100",
}


def node_as_read_by(client: Client, response: bytes) -> Any:
    """What a client takes from the answer: field 2 if it knows it and finds something there, else field 1."""
    got = client.NodeGroupTemplateNodeInfoResponse.FromString(response)
    if client.knows("NodeGroupTemplateNodeInfoResponse", "nodeBytes") and got.nodeBytes:
        return client.kubernetes("Node").FromString(got.nodeBytes)
    return got.nodeInfo


def test_the_answer_is_the_same_bytes_twice() -> None:
    """A node named `a` with a capacity of 8 CPUs, worked out by hand from the wire format.

    Metadata (1): name (1) "a". Status (3): one entry of capacity (1), key (1) "cpu", value (2): a Quantity with the
    string (1) "8".
    """
    by_hand = bytes.fromhex("0a 03 0a 01 61  1a 0c 0a 0a 0a 03 63 70 75 12 03 0a 01 38")
    node = kube.Node(
        metadata=kube.ObjectMeta(name="a"), status=kube.NodeStatus(capacity={"cpu": kube.Quantity(string="8")})
    )
    assert node.SerializeToString() == by_hand
    assert template_response(by_hand).SerializeToString() == b"\x0a\x13" + by_hand + b"\x12\x13" + by_hand


def test_every_generation_reads_the_whole_node(client: Client) -> None:
    """F02, F33: a client that finds nothing crashes; one that finds half of it never scales from zero.

    23 GiB * 0.93 are 22429040.64 KiB; held back of it: 1 + 0.8 + 0.8 + 6 % of what is above 16 GiB (5651824 KiB), that
    is 2726297.6 + 339109.44 KiB, and 102400. Of 6 cores 0.085. Of 225 GB 95 % are 208740234.375 KiB.
    """
    response = template_response(encode_node(build_template(SPEC, V100, Contract.SPOT, None)))
    node = node_as_read_by(client, response.SerializeToString())
    assert node.metadata.name == "gpu-template"
    assert dict(node.metadata.labels) == LABELS
    assert {resource: quantity.string for resource, quantity in node.status.capacity.items()} == {
        "cpu": "6",
        "memory": "22429040Ki",
        "ephemeral-storage": "208740234Ki",
        "pods": "110",
        "nvidia.com/gpu": "1",
    }
    assert {resource: quantity.string for resource, quantity in node.status.allocatable.items()} == {
        "cpu": "5915m",
        "memory": "19261232Ki",
        "ephemeral-storage": "187866210Ki",
        "pods": "110",
        "nvidia.com/gpu": "1",
    }
    assert [(taint.key, taint.value, taint.effect) for taint in node.spec.taints] == [
        ("nvidia.com/gpu", "present", "NoSchedule"),
        ("dedicated", "", "NoExecute"),
    ]
    assert node.spec.unschedulable is False
    assert [(condition.type, condition.status) for condition in node.status.conditions] == [("Ready", "True")]
    assert node.status.nodeInfo.operatingSystem == "linux"
    assert node.status.nodeInfo.architecture == "amd64"


def test_the_same_node_is_always_the_same_bytes() -> None:
    """Conformance: deterministic between calls, whatever the order of the maps."""
    node = build_template(SPEC, V100, Contract.SPOT, None)
    turned = TemplateNode(
        name=node.name,
        labels=dict(reversed([*node.labels.items()])),
        capacity=dict(reversed([*node.capacity.items()])),
        allocatable=dict(reversed([*node.allocatable.items()])),
        taints=node.taints,
    )
    assert list(turned.labels) != list(node.labels)
    assert encode_node(turned) == encode_node(node)


def test_the_bytes_have_no_envelope() -> None:
    """What the API server sends begins with `k8s` and a zero byte; the client could not read that here."""
    assert encode_node(build_template(SPEC, V100, Contract.SPOT, None))[:1] == b"\x0a"


def test_an_empty_node_never_leaves() -> None:
    """It would crash every generation of the client."""
    with pytest.raises(ValueError, match="crash"):
        template_response(b"")
