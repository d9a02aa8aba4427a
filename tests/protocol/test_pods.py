"""What a pod requests, reckoned as the scheduler does."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rpc.gen import kubernetes_pb2 as kube
from app.rpc.kubernetes_codec import decode_pod_requests

MIB = 2**20

Requests = dict[str, str]


def container(requests: Requests, *, limits: Requests | None = None, restart: str = "") -> kube.Container:
    """A container of a pod."""
    return kube.Container(
        name="c",
        resources=kube.ResourceRequirements(
            requests={name: kube.Quantity(string=text) for name, text in requests.items()},
            limits={name: kube.Quantity(string=text) for name, text in (limits or {}).items()},
        ),
        restartPolicy=restart,
    )


def requests_of(spec: kube.PodSpec) -> dict[str, Decimal]:
    """Through the wire, as a request brings it."""
    return decode_pod_requests(kube.Pod(spec=spec).SerializeToString())


def test_containers_add_up() -> None:
    """They run at the same time."""
    spec = kube.PodSpec(containers=[container({"cpu": "500m", "memory": "1Gi"}), container({"cpu": "2"})])
    assert requests_of(spec) == {"cpu": Decimal("2.5"), "memory": 1024 * MIB}


def test_of_init_containers_only_the_largest_counts() -> None:
    """One after the other, before the containers: the larger of that and the sum, resource by resource."""
    spec = kube.PodSpec(
        containers=[container({"cpu": "1", "memory": "256Mi"})],
        initContainers=[container({"cpu": "500m", "memory": "512Mi"}), container({"cpu": "3", "memory": "128Mi"})],
    )
    assert requests_of(spec) == {"cpu": 3, "memory": 512 * MIB}


def test_sidecars_run_beside_everything_after_them() -> None:
    """An init container that is always restarted: 1 with the containers (2 + 1), 4 + 1 with the one after it."""
    spec = kube.PodSpec(
        containers=[container({"cpu": "2"})],
        initContainers=[
            container({"cpu": "3500m"}),
            container({"cpu": "1"}, restart="Always"),
            container({"cpu": "4"}),
        ],
    )
    assert requests_of(spec) == {"cpu": 5}


def test_sidecars_count_with_the_containers() -> None:
    """Two sidecars of 1 and containers of 2: four in all."""
    sidecar = container({"cpu": "1"}, restart="Always")
    spec = kube.PodSpec(containers=[container({"cpu": "2"})], initContainers=[sidecar, sidecar])
    assert requests_of(spec) == {"cpu": 4}


def test_overhead_comes_on_top() -> None:
    """A sandboxed runtime takes 250m and 120Mi per pod, also of a pod that names no memory."""
    spec = kube.PodSpec(
        containers=[container({"cpu": "1"})],
        overhead={"cpu": kube.Quantity(string="250m"), "memory": kube.Quantity(string="120Mi")},
    )
    assert requests_of(spec) == {"cpu": Decimal("1.25"), "memory": 120 * MIB}


def test_requests_of_the_whole_pod_replace_the_sum() -> None:
    """Kubernetes 1.32 and later, for CPU, memory and huge pages alone; overhead still comes on top."""
    spec = kube.PodSpec(
        containers=[container({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"})],
        resources=container({"cpu": "6", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}).resources,
        overhead={"cpu": kube.Quantity(string="1")},
    )
    assert requests_of(spec) == {"cpu": 7, "memory": 1024 * MIB, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 * MIB}


def test_limits_are_not_requests() -> None:
    """The API server copies limits into missing requests before anybody sees the pod."""
    spec = kube.PodSpec(containers=[container({"cpu": "1"}, limits={"cpu": "8", "memory": "1Ti"})])
    assert requests_of(spec) == {"cpu": 1}


def test_a_pod_of_nothing_requests_nothing() -> None:
    """Best effort."""
    assert requests_of(kube.PodSpec(containers=[container({})])) == {}


def test_an_empty_quantity_is_zero() -> None:
    """Go writes a zero quantity as "0", but a missing string must not fail the request."""
    assert requests_of(kube.PodSpec(containers=[container({"cpu": ""})])) == {"cpu": 0}


@pytest.mark.parametrize("data", [b"not a pod", b"\x0a\xff", b"k8s\x00\x0a\x04", b"\x12\x02\x12\x05"])
def test_garbage_is_a_value_error(data: bytes) -> None:
    """The handler answers INVALID_ARGUMENT; nothing else may escape."""
    with pytest.raises(ValueError, match="Pod"):
        decode_pod_requests(data)


def test_a_malformed_quantity_is_named() -> None:
    """The message shows what was wrong."""
    with pytest.raises(ValueError, match="16GB"):
        requests_of(kube.PodSpec(containers=[container({"memory": "16GB"})]))


@given(st.binary(max_size=200))
def test_any_bytes_are_requests_or_a_value_error(data: bytes) -> None:
    """They come from the network."""
    try:
        requests = decode_pod_requests(data)
    except ValueError:
        return
    assert all(isinstance(amount, Decimal) for amount in requests.values())
