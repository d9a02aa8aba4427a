"""The messages as the autoscaler's own releases know them, so that our answers can be read with their eyes.

One definition per generation, written for these tests from what each release reads and writes, compiled when the tests
run. They share nothing with `proto/`, and unlike ours embed the Kubernetes types, as the releases up to 1.34 do.
"""

from importlib import resources
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc  # type: ignore[import-untyped]  # ships neither types nor stubs

PACKAGE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc"
KUBERNETES: Final = "k8s.io.client"
GENERATIONS: Final = ("A", "B", "C", "D", "E")

_KUBERNETES = f"""
syntax = "proto2";
package {KUBERNETES};

message Time {{ optional int64 seconds = 1; optional int32 nanos = 2; }}
message Duration {{ optional int64 duration = 1; }}
message Quantity {{ optional string string = 1; }}
message ObjectMeta {{
  optional string name = 1; optional string generateName = 2; optional string namespace = 3; optional string uid = 5;
  optional Time creationTimestamp = 8; map<string, string> labels = 11; map<string, string> annotations = 12;
}}
message Taint {{
  optional string key = 1; optional string value = 2; optional string effect = 3; optional Time timeAdded = 4;
}}
message NodeSpec {{
  optional string podCIDR = 1; optional string providerID = 3; optional bool unschedulable = 4;
  repeated Taint taints = 5;
}}
message NodeCondition {{
  optional string type = 1; optional string status = 2; optional Time lastHeartbeatTime = 3; optional string reason = 5;
}}
message NodeSystemInfo {{ optional string operatingSystem = 9; optional string architecture = 10; }}
message NodeStatus {{
  map<string, Quantity> capacity = 1; map<string, Quantity> allocatable = 2; optional string phase = 3;
  repeated NodeCondition conditions = 4; optional NodeSystemInfo nodeInfo = 7;
}}
message Node {{ optional ObjectMeta metadata = 1; optional NodeSpec spec = 2; optional NodeStatus status = 3; }}
message ResourceRequirements {{ map<string, Quantity> limits = 1; map<string, Quantity> requests = 2; }}
message Container {{
  optional string name = 1; optional string image = 2; repeated string command = 3;
  optional ResourceRequirements resources = 8; optional string restartPolicy = 24;
}}
message PodSpec {{
  repeated Container containers = 2; optional string restartPolicy = 3; map<string, string> nodeSelector = 7;
  repeated Container initContainers = 20; map<string, Quantity> overhead = 32;
  optional ResourceRequirements resources = 40;
}}
message PodStatus {{ optional string phase = 1; }}
message Pod {{ optional ObjectMeta metadata = 1; optional PodSpec spec = 2; optional PodStatus status = 3; }}
"""

_COMMON = f"""
syntax = "proto3";
package {PACKAGE};
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "kubernetes.proto";

message NodeGroup {{ string id = 1; int32 minSize = 2; int32 maxSize = 3; string debug = 4; }}
message ExternalGrpcNode {{
  string providerID = 1; string name = 2; map<string, string> labels = 3; map<string, string> annotations = 4;
}}
message NodeGroupsRequest {{}}
message NodeGroupsResponse {{ repeated NodeGroup nodeGroups = 1; }}
message NodeGroupForNodeRequest {{ ExternalGrpcNode node = 1; }}
message NodeGroupForNodeResponse {{ NodeGroup nodeGroup = 1; }}
message PricingNodePriceResponse {{ double price = 1; }}
message PricingPodPriceResponse {{ double price = 1; }}
message GPULabelRequest {{}}
message GPULabelResponse {{ string label = 1; }}
message GetAvailableGPUTypesRequest {{}}
message GetAvailableGPUTypesResponse {{ map<string, google.protobuf.Any> gpuTypes = 1; }}
message CleanupRequest {{}}
message CleanupResponse {{}}
message RefreshRequest {{}}
message RefreshResponse {{}}
message NodeGroupTargetSizeRequest {{ string id = 1; }}
message NodeGroupTargetSizeResponse {{ int32 targetSize = 1; }}
message NodeGroupIncreaseSizeRequest {{ int32 delta = 1; string id = 2; }}
message NodeGroupIncreaseSizeResponse {{}}
message NodeGroupDeleteNodesRequest {{ repeated ExternalGrpcNode nodes = 1; string id = 2; }}
message NodeGroupDeleteNodesResponse {{}}
message NodeGroupDecreaseTargetSizeRequest {{ int32 delta = 1; string id = 2; }}
message NodeGroupDecreaseTargetSizeResponse {{}}
message NodeGroupNodesRequest {{ string id = 1; }}
message NodeGroupNodesResponse {{ repeated Instance instances = 1; }}
message Instance {{ string id = 1; InstanceStatus status = 2; }}
message InstanceStatus {{
  enum InstanceState {{ unspecified = 0; instanceRunning = 1; instanceCreating = 2; instanceDeleting = 3; }}
  InstanceState instanceState = 1; InstanceErrorInfo errorInfo = 2;
}}
message InstanceErrorInfo {{ string errorCode = 1; string errorMessage = 2; int32 instanceErrorClass = 3; }}
message NodeGroupTemplateNodeInfoRequest {{ string id = 1; }}
message NodeGroupAutoscalingOptionsRequest {{ string id = 1; NodeGroupAutoscalingOptions defaults = 2; }}
message NodeGroupAutoscalingOptionsResponse {{ NodeGroupAutoscalingOptions nodeGroupAutoscalingOptions = 1; }}
"""

_NODE_PRICE_OLD = f"{KUBERNETES}.Time startTime = 2; {KUBERNETES}.Time endTime = 3;"
_NODE_PRICE_NEW = "google.protobuf.Timestamp startTimestamp = 4; google.protobuf.Timestamp endTimestamp = 5;"
_POD_PRICE_OLD = f"{KUBERNETES}.Pod pod = 1; {KUBERNETES}.Time startTime = 2; {KUBERNETES}.Time endTime = 3;"
_POD_PRICE_NEW = (
    "bytes pod_bytes = 4; google.protobuf.Timestamp startTimestamp = 5; google.protobuf.Timestamp endTimestamp = 6;"
)
_TEMPLATE_OLD = f"{KUBERNETES}.Node nodeInfo = 1;"
_TEMPLATE_NEW = "bytes nodeBytes = 2;"
_THRESHOLDS = "double scaleDownUtilizationThreshold = 1; double scaleDownGpuUtilizationThreshold = 2;"
_UNNEEDED_OLD = f"{KUBERNETES}.Duration scaleDownUnneededTime = 3; {KUBERNETES}.Duration scaleDownUnreadyTime = 4;"
_PROVISION_OLD = f"{KUBERNETES}.Duration MaxNodeProvisionTime = 5;"
_SWITCHES = "bool zeroOrMaxNodeScaling = 6; bool ignoreDaemonSetsUtilization = 7;"
_DURATIONS_NEW = (
    "google.protobuf.Duration scaleDownUnneededDuration = 8; google.protobuf.Duration scaleDownUnreadyDuration = 9; "
    "google.protobuf.Duration MaxNodeProvisionDuration = 10;"
)

_OLD_PRICES_AND_TEMPLATE = (_NODE_PRICE_OLD, _POD_PRICE_OLD, _TEMPLATE_OLD)
_FIELDS = {
    "A": (*_OLD_PRICES_AND_TEMPLATE, _THRESHOLDS + _UNNEEDED_OLD),
    "B": (*_OLD_PRICES_AND_TEMPLATE, _THRESHOLDS + _UNNEEDED_OLD + _PROVISION_OLD),
    "C": (*_OLD_PRICES_AND_TEMPLATE, _THRESHOLDS + _UNNEEDED_OLD + _PROVISION_OLD + _SWITCHES),
    "D": (
        _NODE_PRICE_OLD + _NODE_PRICE_NEW,
        _POD_PRICE_OLD + _POD_PRICE_NEW,
        _TEMPLATE_OLD + _TEMPLATE_NEW,
        _THRESHOLDS + _UNNEEDED_OLD + _PROVISION_OLD + _SWITCHES + _DURATIONS_NEW,
    ),
    "E": (_NODE_PRICE_NEW, _POD_PRICE_NEW, _TEMPLATE_NEW, _THRESHOLDS + _SWITCHES + _DURATIONS_NEW),
}


class Client:
    """The messages of one generation, by their short names: `client.NodeGroup(id="gpu")`."""

    def __init__(self, generation: str, pool: DescriptorPool) -> None:
        self.generation = generation
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return self._message(f"{PACKAGE}.{name}")

    def kubernetes(self, name: str) -> Any:
        """A Kubernetes message, as the autoscaler marshals it."""
        return self._message(f"{KUBERNETES}.{name}")

    def knows(self, message: str, field: str) -> bool:
        """Whether this generation has the field."""
        return field in self._pool.FindMessageTypeByName(f"{PACKAGE}.{message}").fields_by_name

    def _message(self, name: str) -> type[Message]:
        return GetMessageClass(self._pool.FindMessageTypeByName(name))


def compile_client(generation: str, directory: Path) -> Client:
    """Compile a generation's definition into messages that live beside ours without meeting them."""
    node_price, pod_price, template, options = _FIELDS[generation]
    changed = (
        f"message PricingNodePriceRequest {{ ExternalGrpcNode node = 1; {node_price} }}\n"
        f"message PricingPodPriceRequest {{ {pod_price} }}\n"
        f"message NodeGroupTemplateNodeInfoResponse {{ {template} }}\n"
        f"message NodeGroupAutoscalingOptions {{ {options} }}\n"
    )
    directory.mkdir(exist_ok=True)
    (directory / "kubernetes.proto").write_text(_KUBERNETES, encoding="utf-8")
    (directory / "client.proto").write_text(_COMMON + changed, encoding="utf-8")
    compiled = directory / "client.binpb"
    well_known = resources.files("grpc_tools") / "_proto"
    flags = (f"-I{directory}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={compiled}")
    status = protoc.main(["protoc", *flags, str(directory / "client.proto")])
    assert status == 0, f"generation {generation} does not compile"
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(compiled.read_bytes()).file:
        pool.Add(file)
    return Client(generation, pool)
