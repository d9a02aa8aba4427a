"""Between the domain and the wire; total, in both directions."""

from app.domain.books import Books
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.rpc.gen import externalgrpc_pb2 as pb

_RUNNING = pb.InstanceStatus.instanceRunning
_CREATING = pb.InstanceStatus.instanceCreating
_DELETING = pb.InstanceStatus.instanceDeleting

_LONGEST_MESSAGE = 500
"""Cluster Autoscaler cuts error messages here."""

_STATES = {
    InstanceState.REQUESTED: _CREATING,
    InstanceState.SUBMITTING: _CREATING,
    InstanceState.PROVISIONING: _CREATING,
    InstanceState.RUNNING: _RUNNING,
    InstanceState.STOPPED: _RUNNING,
    InstanceState.FAILED: _CREATING,
    InstanceState.DELETING: _DELETING,
}
"""Every listed state; the autoscaler treats an instance without a state as running and never cleans it up."""


def node_group_message(group: NodeGroup, books: Books) -> pb.NodeGroup:
    """A node group with the limits that the autoscaler decides by."""
    smallest, largest = books.size_limits(group)
    return pb.NodeGroup(id=group.name, minSize=smallest, maxSize=largest, debug=_debug(group, books))


def _debug(group: NodeGroup, books: Books) -> str:
    contracts = " then ".join(group.spec.contracts)
    places = ", ".join(group.spec.locations)
    retired = "; left the configuration" if group.retired else ""
    target = books.target_size(group.name)
    return f"{group.spec.instance_type} {contracts} in {places}; target size {target}{retired}"


def instance_message(instance: Instance) -> pb.Instance:
    """A listed instance. Error information goes only with the state creating: elsewhere it would never be collected."""
    status = pb.InstanceStatus(instanceState=_STATES[instance.state])
    if instance.state is InstanceState.FAILED and instance.error_class is not None:
        status.errorInfo.errorCode = instance.error_code or "unknown"
        status.errorInfo.errorMessage = (instance.error_message or "")[:_LONGEST_MESSAGE]
        status.errorInfo.instanceErrorClass = int(instance.error_class)
    return pb.Instance(id=instance.provider_id, status=status)
