"""The autoscaler's own client: one method an RPC, and the caches between the core and the wire."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .flags import Options
from .messages import Messages
from .objects import Node
from .releases import Change, Release
from .wire import NotOffered, Rpc, RpcFailed, Wire

RUNNING, CREATING, DELETING = 1, 2, 3
OUT_OF_RESOURCES, OTHER = 1, 99
_UNIMPLEMENTED: Final = "UNIMPLEMENTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """Why an instance could not be created."""

    code: str
    error_class: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An entry of NodeGroupNodes. Without a state it counts as running, whatever error came with it."""

    id: str
    state: int | None
    error: ErrorInfo | None

    @property
    def failed_to_be_created(self) -> bool:
        """Only an error in state Creating is one that the core acts on."""
        return self.state == CREATING and self.error is not None

    @property
    def is_expected_to_register(self) -> bool:
        """It will become a node unless something goes wrong."""
        return self.state is None or (self.state != DELETING and self.error is None)


class Provider:
    """What the core calls the cloud provider."""

    def __init__(self, messages: Messages, wire: Wire, release: Release) -> None:
        self.release = release
        self.messages = messages
        self.rpcs: list[Rpc] = []
        self._wire = wire
        self._groups: list[NodeGroup] | None = None
        self._group_of_node: dict[str, NodeGroup] = {}
        self._gpu_label: str | None = None
        self._gpu_types: frozenset[str] | None = None

    def refresh(self) -> None:
        """Begin a loop. The caches are dropped first, whatever the answer is. Raises: RpcFailed."""
        self._groups = None
        self._group_of_node = {}
        self.ask("Refresh")

    def node_groups(self) -> Sequence["NodeGroup"]:
        """All groups until the next refresh. An error is swallowed: then there are none, for this once."""
        if self._groups is None:
            try:
                answer = self.ask("NodeGroups")
            except RpcFailed:
                return ()
            self._groups = [self._group(one) for one in answer.nodeGroups]
        return self._groups

    def node_group_for_node(self, node: Node) -> "NodeGroup | None":
        """The group of a node, kept until the next refresh; None, which is never kept, if it is not managed.

        Raises:
            RpcFailed: nobody knows.
        """
        key = node.name + node.provider_id
        if key not in self._group_of_node:
            answer = self.ask("NodeGroupForNode", node=self.messages.node(node))
            if not answer.nodeGroup.id:
                return None
            self._group_of_node[key] = self._group(answer.nodeGroup)
        return self._group_of_node[key]

    def gpu_label(self) -> str:
        """The key that marks nodes with GPUs, kept for ever once it was told; empty after an error."""
        if self._gpu_label is None:
            try:
                self._gpu_label = self.ask("GPULabel").label
            except RpcFailed:
                return ""
        return self._gpu_label

    def gpu_types(self) -> frozenset[str]:
        """Values of the GPU label, kept for ever once they were told; empty after an error."""
        if self._gpu_types is None:
            try:
                self._gpu_types = frozenset(self.ask("GetAvailableGPUTypes").gpuTypes)
            except RpcFailed:
                return frozenset()
        return self._gpu_types

    def ask(self, method: str, **values: Any) -> Any:
        """One call. Raises: RpcFailed."""
        data = self._send(method, str(values.get("id", "")), self.messages.request(method, **values))
        return self.messages.response(method, data)

    def send_optional(self, method: str, group: str, request: bytes) -> bytes:
        """One call of a method that a provider may lack. Raises: RpcFailed, NotOffered."""
        try:
            return self._send(method, group, request)
        except RpcFailed as error:
            if error.code == _UNIMPLEMENTED and self.release.has(Change.KNOWS_UNIMPLEMENTED):
                raise NotOffered(method) from error
            raise

    def _send(self, method: str, group: str, request: bytes) -> bytes:
        try:
            data = self._wire.call(method, request)
        except RpcFailed as error:
            self.rpcs.append(Rpc(method, group, error.code))
            raise
        self.rpcs.append(Rpc(method, group, "OK"))
        return data

    def _group(self, message: Any) -> "NodeGroup":
        return NodeGroup(id=message.id, min_size=message.minSize, max_size=message.maxSize, provider=self)


@dataclass(slots=True, kw_only=True)
class NodeGroup:
    """A node group as an answer told it. Its limits and its template live as long as the object, a loop at most."""

    id: str
    min_size: int
    max_size: int
    provider: Provider
    _template: Node | None = field(default=None)

    def target_size(self) -> int:
        """Asked anew each time. Raises: RpcFailed."""
        return int(self.provider.ask("NodeGroupTargetSize", id=self.id).targetSize)

    def instances(self) -> tuple[Instance, ...]:
        """What NodeGroupNodes lists. Raises: RpcFailed."""
        return tuple(_instance(one) for one in self.provider.ask("NodeGroupNodes", id=self.id).instances)

    def increase_size(self, delta: int) -> None:
        """Raises: RpcFailed."""
        self.provider.ask("NodeGroupIncreaseSize", id=self.id, delta=delta)

    def decrease_target_size(self, delta: int) -> None:
        """`delta` is negative. Raises: RpcFailed."""
        self.provider.ask("NodeGroupDecreaseTargetSize", id=self.id, delta=delta)

    def delete_nodes(self, nodes: Sequence[Node]) -> None:
        """Raises: RpcFailed."""
        self.provider.ask("NodeGroupDeleteNodes", id=self.id, nodes=[self.provider.messages.node(one) for one in nodes])

    def template(self) -> Node:
        """The node of an empty machine. Raises: RpcFailed, NotOffered, AutoscalerCrashed."""
        if self._template is None:
            messages = self.provider.messages
            request = messages.request("NodeGroupTemplateNodeInfo", id=self.id)
            data = self.provider.send_optional("NodeGroupTemplateNodeInfo", self.id, request)
            self._template = messages.template(messages.response("NodeGroupTemplateNodeInfo", data))
        return self._template

    def options(self, defaults: Options) -> Options:
        """The group's options, else the defaults. Asked anew each time. Raises: RpcFailed, AutoscalerCrashed."""
        messages = self.provider.messages
        request = messages.options_request(self.id, defaults)
        try:
            data = self.provider.send_optional("NodeGroupGetOptions", self.id, request)
        except NotOffered:
            return defaults
        return messages.options(messages.response("NodeGroupGetOptions", data)) or defaults


def _instance(message: Any) -> Instance:
    if not message.status.instanceState:
        return Instance(id=message.id, state=None, error=None)
    error = message.status.errorInfo
    info = ErrorInfo(code=error.errorCode, error_class=error.instanceErrorClass, message=error.errorMessage)
    return Instance(id=message.id, state=message.status.instanceState, error=info if error.errorCode else None)
