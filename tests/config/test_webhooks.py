"""Machines of our own in the configuration: groups of kind webhook, and the power controller's two forms."""

from decimal import Decimal

from app.cloud.own import switches
from app.config.convert import from_file, report
from app.config.load import load, load_given
from app.config.specs import to_specs

from .harness import Desk

GROUP = """\
node_groups:
  old-boxes:
    kind: webhook
    labels: {example.com/rack: "7"}
    machines:
    - name: big
      gpu_count: 8
      scale_up_endpoint: "http://p/big/start"
      scale_down_endpoint: "http://p/big/stop"
      resources: {cpu: "64", memory: 256Gi}
    - name: Small-1
      gpu_count: 4
      scale_up_endpoint: "http://p/s/start"
      scale_down_endpoint: "http://p/s/stop"
      resources: {cpu: "32", memory: 128Gi}
"""
ENVIRON = {
    "GPU_NODE_2_NAME": "gpu-worker-2",
    "GPU_NODE_2_GPU_COUNT": "8",
    "GPU_NODE_2_SCALE_UP_ENDPOINT": "http://power/2/start",
    "GPU_NODE_2_SCALE_DOWN_ENDPOINT": "http://power/2/stop",
    "GPU_NODE_10_NAME": "gpu-worker-10",
    "GPU_NODE_10_GPU_COUNT": "4",
    "GPU_NODE_10_SCALE_UP_ENDPOINT": "http://power/10/start",
    "GPU_NODE_10_SCALE_DOWN_ENDPOINT": "http://power/10/stop",
}
HELM = """\
replicaCount: 1
nodeGroups:
- {name: gpu-worker-1, gpuCount: 4, scaleUpEndpoint: "http://power/1/start", scaleDownEndpoint: "http://power/1/stop"}
- {name: gpu-worker-2, gpuCount: 8, scaleUpEndpoint: "http://power/2/start", scaleDownEndpoint: "http://power/2/stop"}
"""


def test_machines_are_places_and_the_smallest_stands_for_all(desk: Desk) -> None:
    """Their number is the maximum; what is promised is what the smallest has."""
    config = desk.load(GROUP).config
    (spec,) = to_specs(config)
    assert (spec.kind, spec.min_size, spec.max_size) == ("webhook", 0, 2)
    assert spec.locations == ("Small-1", "big")
    assert (spec.instance_type, spec.provider_id_template) == ("webhook.old-boxes", "webhook://{group}/{location}")
    assert spec.resources == {"cpu": "32", "memory": "128Gi"}
    group = switches(config)["old-boxes"]
    assert (group.kind.cpus, group.kind.memory_gb, group.kind.gpus) == (32, Decimal(128), 4)
    assert group.switches["big"].scale_down_endpoint == "http://p/big/stop"


def test_a_machine_is_named_once(desk: Desk) -> None:
    """In any case: nodes and provider ids would be mixed up."""
    ((line, path, message),) = desk.told(GROUP.replace("Small-1", "BIG"))
    assert (line, path) == (5, "node_groups.old-boxes.machines")
    assert "must not name big twice" in message


def test_the_controller_s_variables_are_a_group(desk: Desk) -> None:
    """Counted, not sorted as text; a file beside them may say the rest, and none is needed."""
    config = desk.load("cluster_name: prod\nnode_groups: {}\n", environ=ENVIRON).config
    (spec,) = to_specs(config)
    assert (spec.name, spec.locations, spec.max_size) == ("gpu-nodes", ("gpu-worker-10", "gpu-worker-2"), 2)
    assert switches(config)["gpu-nodes"].switches["gpu-worker-2"].scale_up_endpoint == "http://power/2/start"


def test_the_controller_s_variables_need_no_file(desk: Desk, monkeypatch: object) -> None:
    """As it was started before."""
    monkeypatch.chdir(desk.directory)  # type: ignore[attr-defined] # pytest's
    assert [spec.name for spec in to_specs(load_given(None, (), environ=ENVIRON).config)] == ["gpu-nodes"]


def test_a_variable_that_is_missing_is_told(desk: Desk) -> None:
    """By its machine."""
    environ = {name: value for name, value in ENVIRON.items() if name != "GPU_NODE_10_SCALE_UP_ENDPOINT"}
    (problem,) = desk.problems("node_groups: {}\n", environ=environ)
    assert problem.path == "node_groups.gpu-nodes.machines[1].scale_up_endpoint"
    assert problem.message.startswith("is missing")


def test_its_helm_values_become_a_group(desk: Desk) -> None:
    """Each of its groups is one machine; what belonged to its deployment is told."""
    path = desk.write(HELM, "values.yaml")
    converted = from_file(path, {})
    ours = desk.write(converted.text, "ours.yaml")
    (spec,) = to_specs(load(ours, environ={}).config)
    assert (spec.name, spec.locations) == ("gpu-nodes", ("gpu-worker-1", "gpu-worker-2"))
    lines = list(report(converted.steps))
    assert "nodeGroups[1].gpuCount -> node_groups.gpu-nodes.machines[1].gpu_count" in lines
    assert lines[-1] == "replicaCount -> (nothing): belongs to the other tool's deployment"
