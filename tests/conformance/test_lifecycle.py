"""Section 6 of the statements, last part: GPUs, prices, Refresh, Cleanup, and groups that leave the configuration."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from .autoscaler import CREATING, Autoscaler, refused
from .cloud import Cloud
from .scenes import Blackout, Hanging, Retired, Revived, grow, template_bytes
from .service import Lease, Service
from .settings import GPU_LABEL, KINDS, name_for
from .until import until

LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

HOURLY: Mapping[str, float] = {
    "gpu": 1.29,
    "spot": 0.8015,
    "small": 0.0279,
    "base": 0.0558,
    "zoned": 6.412,
}
"""Verda's price of a whole machine for an hour, under the contract that is tried first."""


def test_065_the_gpu_label_is_a_label_key_and_never_changes(ca: Autoscaler) -> None:
    """Statement 65: the autoscaler remembers it for its life; an empty one switches its guard for GPUs off."""
    label = ca.call("GPULabel").label
    assert LABEL_KEY.fullmatch(label)
    assert {ca.call("GPULabel").label for _ in range(5)} == {label}


def test_065_the_gpu_label_survives_a_restart(revived: Revived, visit: Callable[[str], Autoscaler]) -> None:
    """Statement 65: it is the configuration's."""
    assert visit(revived.stage.address).call("GPULabel").label == revived.label == GPU_LABEL


@pytest.mark.usefixtures("stage")
def test_066_the_gpu_types_are_the_values_of_the_label(ca: Autoscaler) -> None:
    """Statement 66: of all models on sale, for groups may be added while the autoscaler remembers the answer."""
    types = ca.call("GetAvailableGPUTypes").gpuTypes
    used = {ca.template(group).metadata.labels[GPU_LABEL] for group in ca.groups() if KINDS_WITH_GPU & {group}}
    assert used == {"a100", "h100", "gb300", "rtx-a6000", "l40s"}
    assert used <= set(types)
    assert set(types) == {
        "a100",
        "b200",
        "b300",
        "gb300",
        "h100",
        "h200",
        "l40s",
        "rtx-6000-ada",
        "rtx-a6000",
        "rtx-pro-6000",
        "v100",
    }


KINDS_WITH_GPU = {kind for kind, group in KINDS.items() if not group["instance_type"].startswith(("CPU", "9X"))}


def test_066_every_gpu_type_can_be_a_label_value(ca: Autoscaler) -> None:
    """Statement 66: each is a key with an empty value beside it, which is all that is read of it."""
    types = ca.call("GetAvailableGPUTypes").gpuTypes
    assert all(LABEL_VALUE.fullmatch(name) for name in types)
    assert all(not types[name].ByteSize() for name in types)


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("kind", HOURLY)
def test_067_a_template_node_costs_what_its_machine_costs(ca: Autoscaler, kind: str) -> None:
    """Statement 67, F30: it has a made-up name, no provider id, and the labels of the template."""
    node = ca.node(name=f"template-node-for-{kind}-4711", labels=dict(ca.template(kind).metadata.labels))
    assert ca.node_price(node, hours=1) == pytest.approx(HOURLY[kind])
    assert ca.node_price(node, hours=2.5) == pytest.approx(HOURLY[kind] * 2.5)


@pytest.mark.usefixtures("stage")
def test_067_the_instance_type_label_alone_will_do(ca: Autoscaler) -> None:
    """Statement 67: names are made up by the autoscaler and may change."""
    node = ca.node(name="x", labels={"node.kubernetes.io/instance-type": "8H100.80S.176V"})
    assert ca.node_price(node) == pytest.approx(18.32)


@pytest.mark.usefixtures("stage")
def test_067_without_times_an_hour_is_assumed(ca: Autoscaler) -> None:
    """Statement 67, F02: never a price of zero."""
    node = ca.node(name="template-node-for-gpu-4711")
    assert ca.call("PricingNodePrice", node=node).price == pytest.approx(1.29)
    pod = ca.pod(cpu="1")
    values = {"pod": pod} if ca.knows("PricingPodPriceRequest", "pod") else {"pod_bytes": pod.SerializeToString()}
    assert ca.call("PricingPodPrice", **values).price > 0


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(("requests", "price"), [({"gpu": "1", "cpu": "8"}, 0.49), ({"cpu": "2"}, 0.014)])
def test_067_a_pod_costs_its_share_of_the_cheapest_node(ca: Autoscaler, requests: dict[str, str], price: float) -> None:
    """Statement 67, F30: the autoscaler divides by it; the pod comes embedded or as bytes.

    One GPU is all of an A6000 at 0.49 an hour; two cores are half of four at 0.0279, a little more for what the kubelet
    holds back.
    """
    hour = ca.pod_price(ca.pod(**requests))
    assert hour == pytest.approx(price, rel=0.05)
    assert ca.pod_price(ca.pod(**requests), hours=3) == pytest.approx(3 * hour)


def test_067_both_prices_or_none(ca: Autoscaler, lease: Lease, service: Service) -> None:
    """Statement 67: one without the other makes the expander drop every option."""
    calls = ca.harmless(lease())
    missing = [
        ca.status(method, calls[method]) is grpc.StatusCode.UNIMPLEMENTED
        for method in ("PricingNodePrice", "PricingPodPrice")
    ]
    assert missing in ([True, True], [False, False])
    assert service.is_external or not any(missing)


def test_068_refresh_changes_nothing(ca: Autoscaler, lease: Lease) -> None:
    """Statement 68: it comes every loop."""
    group = lease()
    ca.increase(group, 2)
    for _ in range(5):
        began = time.monotonic()
        ca.call("Refresh")
        assert time.monotonic() - began < 1.0
    assert ca.target(group) == len(ca.live(group)) == 2


@pytest.mark.parametrize("trouble", ["hang", "error"])
def test_068_refresh_is_quick_while_the_cloud_is_in_trouble(
    hanging: Hanging, visit: Callable[[str], Autoscaler], trouble: str
) -> None:
    """Statement 68: an error or a delay would be the end of the autoscaler's loop."""
    hanging.trouble(trouble)
    visit(hanging.stage.address).raw("Refresh", timeout=1.0)


def test_068_refresh_works_while_the_cloud_is_away(blackout: Blackout, visit: Callable[[str], Autoscaler]) -> None:
    """Statement 68: the same when it does not answer at all."""
    visit(blackout.stage.address).raw("Refresh", timeout=1.0)


def test_068_refresh_goes_with_anything_else(ca: Autoscaler, lease: Lease) -> None:
    """Statement 68: the background thread of the autoscaler does not wait for its loop."""
    group = lease()
    together = threading.Barrier(16)

    def call(number: int) -> object:
        together.wait(30)
        if number == 0:
            return ca.call("NodeGroupIncreaseSize", id=group, delta=1)
        return ca.call("Refresh") if number % 2 else ca.sizes(group)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(call, range(16)))
    assert ca.target(group) == 1


def test_069_cleanup_cleans_nothing_up(ca: Autoscaler, lease: Lease) -> None:
    """Statement 69, F16: the autoscaler goes away, at each of its restarts; the cluster stays."""
    group = lease()
    ca.increase(group, 2)
    before = ca.target(group), ca.live(group)
    ca.call("Cleanup")
    ca.call("Cleanup")
    assert (ca.target(group), ca.live(group)) == before
    assert ca.groups()


def test_069_no_machine_is_deleted_by_cleanup(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 69: not even later."""
    group = lease("gpu")
    grow(ca, group, 1)
    ca.call("Cleanup")
    listings = cloud.listings()
    until("the machines were listed twice", lambda: cloud.listings() > listings + 1)
    assert [machine["delete_requests"] for machine in cloud.alive(group)] == [0]


def test_070_a_group_with_machines_that_left_the_configuration_can_only_shrink(
    retired: Retired, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 70, F12: it is served until its last machine is gone, and then disappears everywhere at once."""
    ca, group, machines = visit(retired.stage.address), name_for("gpu", generation), retired.machines[generation]
    first, second = machines
    assert (ca.groups()[group].minSize, ca.groups()[group].maxSize) == (0, 2)
    assert set(ca.live(group)) == set(machines)
    assert ca.target(group) == 2
    assert ca.group_of(ca.real(first)) == ca.groups()[group]
    assert ca.template(group).status.allocatable
    assert not ca.call("NodeGroupGetOptions", id=group, defaults=ca.flags()).HasField("nodeGroupAutoscalingOptions")
    with refused(grpc.StatusCode.FAILED_PRECONDITION):
        ca.increase(group, 1)
    with refused(grpc.StatusCode.FAILED_PRECONDITION):
        ca.decrease(group, -1)
    assert {machine["delete_requests"] for machine in retired.stage.cloud.alive(group)} == {0}
    ca.delete(group, [ca.real(first)])
    assert (ca.groups()[group].minSize, ca.groups()[group].maxSize) == (0, 1)
    ca.delete(group, [ca.real(second)])
    until("the group is gone", lambda: _has_gone(ca, group, second))
    for method in ("TargetSize", "Nodes", "TemplateNodeInfo"):
        with refused(grpc.StatusCode.NOT_FOUND):
            ca.call(f"NodeGroup{method}", id=group)


def _has_gone(ca: Autoscaler, group: str, instance_id: str) -> bool:
    """Whether the group is no longer listed; a group that is listed after a call must have been served by it."""
    status = ca.status("NodeGroupTargetSize", ca.request("NodeGroupTargetSize", id=group).SerializeToString())
    assert not ca.group_of(ca.real(instance_id)).id
    listed = group in ca.groups()
    assert not (listed and status is not grpc.StatusCode.OK)
    return not listed


def test_070_an_empty_group_that_left_the_configuration_is_gone_at_once(
    retired: Retired, visit: Callable[[str], Autoscaler]
) -> None:
    """Statement 70: while the others stay as they are."""
    ca = visit(retired.stage.address)
    assert "small" not in ca.groups()
    assert "base" in ca.groups()
    with refused(grpc.StatusCode.NOT_FOUND):
        ca.target("small")
    assert template_bytes(ca, "base")
    assert CREATING not in ca.states("base").values()
