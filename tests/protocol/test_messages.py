"""The messages that are the same in all generations, and the service."""

import pytest
from google.protobuf.descriptor import Descriptor

from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen import externalgrpc_pb2_grpc

from .clients import PACKAGE, Client

METHODS = {
    "NodeGroups": ("NodeGroupsRequest", "NodeGroupsResponse"),
    "NodeGroupForNode": ("NodeGroupForNodeRequest", "NodeGroupForNodeResponse"),
    "PricingNodePrice": ("PricingNodePriceRequest", "PricingNodePriceResponse"),
    "PricingPodPrice": ("PricingPodPriceRequest", "PricingPodPriceResponse"),
    "GPULabel": ("GPULabelRequest", "GPULabelResponse"),
    "GetAvailableGPUTypes": ("GetAvailableGPUTypesRequest", "GetAvailableGPUTypesResponse"),
    "Cleanup": ("CleanupRequest", "CleanupResponse"),
    "Refresh": ("RefreshRequest", "RefreshResponse"),
    "NodeGroupTargetSize": ("NodeGroupTargetSizeRequest", "NodeGroupTargetSizeResponse"),
    "NodeGroupIncreaseSize": ("NodeGroupIncreaseSizeRequest", "NodeGroupIncreaseSizeResponse"),
    "NodeGroupDeleteNodes": ("NodeGroupDeleteNodesRequest", "NodeGroupDeleteNodesResponse"),
    "NodeGroupDecreaseTargetSize": ("NodeGroupDecreaseTargetSizeRequest", "NodeGroupDecreaseTargetSizeResponse"),
    "NodeGroupNodes": ("NodeGroupNodesRequest", "NodeGroupNodesResponse"),
    "NodeGroupTemplateNodeInfo": ("NodeGroupTemplateNodeInfoRequest", "NodeGroupTemplateNodeInfoResponse"),
    "NodeGroupGetOptions": ("NodeGroupAutoscalingOptionsRequest", "NodeGroupAutoscalingOptionsResponse"),
}

UNCHANGED = {
    "NodeGroup": {"id": 1, "minSize": 2, "maxSize": 3, "debug": 4},
    "ExternalGrpcNode": {"providerID": 1, "name": 2, "labels": 3, "annotations": 4},
    "NodeGroupsResponse": {"nodeGroups": 1},
    "NodeGroupForNodeRequest": {"node": 1},
    "NodeGroupForNodeResponse": {"nodeGroup": 1},
    "PricingNodePriceResponse": {"price": 1},
    "PricingPodPriceResponse": {"price": 1},
    "GPULabelResponse": {"label": 1},
    "GetAvailableGPUTypesResponse": {"gpuTypes": 1},
    "NodeGroupTargetSizeRequest": {"id": 1},
    "NodeGroupTargetSizeResponse": {"targetSize": 1},
    "NodeGroupIncreaseSizeRequest": {"delta": 1, "id": 2},
    "NodeGroupDeleteNodesRequest": {"nodes": 1, "id": 2},
    "NodeGroupDecreaseTargetSizeRequest": {"delta": 1, "id": 2},
    "NodeGroupNodesRequest": {"id": 1},
    "NodeGroupNodesResponse": {"instances": 1},
    "Instance": {"id": 1, "status": 2},
    "InstanceStatus": {"instanceState": 1, "errorInfo": 2},
    "InstanceErrorInfo": {"errorCode": 1, "errorMessage": 2, "instanceErrorClass": 3},
    "NodeGroupTemplateNodeInfoRequest": {"id": 1},
    "NodeGroupAutoscalingOptionsRequest": {"id": 1, "defaults": 2},
    "NodeGroupAutoscalingOptionsResponse": {"nodeGroupAutoscalingOptions": 1},
}


def numbers(message: Descriptor) -> dict[str, int]:
    """The fields of a message and their numbers."""
    return {field.name: field.number for field in message.fields}


def test_the_service_has_the_fifteen_methods_and_no_other() -> None:
    """The path of a call is made of these names; none ever changed from 1.25 on."""
    service = pb.DESCRIPTOR.services_by_name["CloudProvider"]
    assert service.full_name == f"{PACKAGE}.CloudProvider"
    assert {method.name: (method.input_type.name, method.output_type.name) for method in service.methods} == METHODS


def test_the_generated_stub_calls_the_paths_every_release_calls() -> None:
    """The HTTP/2 path is the service's full name and the method's; the servicer must offer each."""
    paths: list[str] = []

    class Channel:
        def unary_unary(self, path: str, **_: object) -> None:
            paths.append(path)

    externalgrpc_pb2_grpc.CloudProviderStub(Channel())  # type: ignore[no-untyped-call]  # generated without types
    assert paths == [f"/{PACKAGE}.CloudProvider/{method}" for method in METHODS]
    assert set(METHODS) <= set(vars(externalgrpc_pb2_grpc.CloudProviderServicer))


def test_all_calls_are_unary() -> None:
    """The client knows no streams."""
    methods = pb.DESCRIPTOR.services_by_name["CloudProvider"].methods
    assert not any(method.client_streaming or method.server_streaming for method in methods)


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged_messages_have_the_numbers_of_every_release(name: str) -> None:
    """In three requests the group's id is field 2, behind `delta` or `nodes`."""
    assert numbers(pb.DESCRIPTOR.message_types_by_name[name]) == UNCHANGED[name]


@pytest.mark.parametrize("name", sorted({name for pair in METHODS.values() for name in pair} - set(UNCHANGED)))
def test_other_messages_are_empty_or_change_between_releases(name: str) -> None:
    """Nothing is forgotten in the table above."""
    changing = {"PricingNodePriceRequest", "PricingPodPriceRequest", "NodeGroupTemplateNodeInfoResponse"}
    assert (not pb.DESCRIPTOR.message_types_by_name[name].fields) == (name not in changing)


def test_instance_states_are_the_autoscalers_numbers() -> None:
    """The client casts the number without looking."""
    states = pb.InstanceStatus.InstanceState
    assert dict(states.items()) == {
        "unspecified": 0,
        "instanceRunning": 1,
        "instanceCreating": 2,
        "instanceDeleting": 3,
    }


def test_a_full_instance_list_reads_the_same_everywhere(client: Client) -> None:
    """Running, creating, deleting, and a creation that failed for want of resources."""
    failed = pb.InstanceErrorInfo(errorCode="no-capacity", errorMessage="none in stock", instanceErrorClass=1)
    sent = pb.NodeGroupNodesResponse(
        instances=[
            pb.Instance(
                id="verda://gpu-aaaaaaaa", status=pb.InstanceStatus(instanceState=pb.InstanceStatus.instanceRunning)
            ),
            pb.Instance(
                id="verda://gpu-bbbbbbbb",
                status=pb.InstanceStatus(instanceState=pb.InstanceStatus.instanceCreating, errorInfo=failed),
            ),
            pb.Instance(
                id="verda://gpu-cccccccc", status=pb.InstanceStatus(instanceState=pb.InstanceStatus.instanceDeleting)
            ),
        ]
    )
    got = client.NodeGroupNodesResponse.FromString(sent.SerializeToString())
    assert [(instance.id, instance.status.instanceState) for instance in got.instances] == [
        ("verda://gpu-aaaaaaaa", 1),
        ("verda://gpu-bbbbbbbb", 2),
        ("verda://gpu-cccccccc", 3),
    ]
    assert got.instances[1].status.errorInfo.errorCode == "no-capacity"
    assert got.instances[1].status.errorInfo.instanceErrorClass == 1
    assert not got.instances[0].status.HasField("errorInfo")


def test_node_groups_read_the_same_everywhere(client: Client) -> None:
    """Minimum and maximum come from here and from nowhere else."""
    group = pb.NodeGroup(id="gpu", minSize=1, maxSize=8, debug="8H100.80S.176V in FIN-01")
    listed = client.NodeGroupsResponse.FromString(pb.NodeGroupsResponse(nodeGroups=[group]).SerializeToString())
    found = client.NodeGroupForNodeResponse.FromString(pb.NodeGroupForNodeResponse(nodeGroup=group).SerializeToString())
    for got in (listed.nodeGroups[0], found.nodeGroup):
        assert (got.id, got.minSize, got.maxSize, got.debug) == ("gpu", 1, 8, "8H100.80S.176V in FIN-01")


def test_an_unmanaged_node_is_an_answer_without_a_group(client: Client) -> None:
    """That, not an error, is how "none of ours" is said."""
    got = client.NodeGroupForNodeResponse.FromString(pb.NodeGroupForNodeResponse().SerializeToString())
    assert got.nodeGroup.id == ""


def test_requests_of_every_release_are_understood(client: Client) -> None:
    """The invented node of a failed creation, as 1.25 and 1.37 send it alike."""
    node = client.ExternalGrpcNode(
        providerID="verda://gpu-bbbbbbbb",
        name="verda://gpu-bbbbbbbb",
        annotations={"k8s.io/cluster-autoscaler/fake-node-reason": "create-error"},
    )
    sent = client.NodeGroupDeleteNodesRequest(id="gpu", nodes=[node])
    got = pb.NodeGroupDeleteNodesRequest.FromString(sent.SerializeToString())
    assert got.id == "gpu"
    assert got.nodes[0].providerID == got.nodes[0].name == "verda://gpu-bbbbbbbb"
    assert got.nodes[0].annotations["k8s.io/cluster-autoscaler/fake-node-reason"] == "create-error"
    assert not got.nodes[0].labels


def test_a_negative_delta_takes_ten_bytes() -> None:
    """A negative int32 is written as a 64-bit two's complement: nine bytes of ones and a last bit."""
    wire = bytes.fromhex("08 fe ff ff ff ff ff ff ff ff 01 12 03 67 70 75")
    assert pb.NodeGroupDecreaseTargetSizeRequest(delta=-2, id="gpu").SerializeToString() == wire
    assert pb.NodeGroupDecreaseTargetSizeRequest.FromString(wire).delta == -2


def test_gpu_types_are_map_keys_with_empty_values(client: Client) -> None:
    """Only keys are read; the value is an empty Any: 0a 08 (entry) 0a 04 "h100" 12 00."""
    sent = pb.GetAvailableGPUTypesResponse()
    sent.gpuTypes.get_or_create("h100")
    assert sent.SerializeToString() == bytes.fromhex("0a 08 0a 04 68 31 30 30 12 00")
    got = client.GetAvailableGPUTypesResponse.FromString(sent.SerializeToString())
    assert list(got.gpuTypes) == ["h100"]


def test_fields_of_a_future_release_are_ignored() -> None:
    """Field 99 of a target size request, a string: the request means the same without it."""
    future = bytes.fromhex("0a 03 67 70 75  9a 06 03 6e 65 77")
    assert pb.NodeGroupTargetSizeRequest.FromString(future).id == "gpu"
