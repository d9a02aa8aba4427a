"""Faults of NodeGroups, NodeGroupForNode and of what counts."""

import random
from collections.abc import Callable
from typing import Any

import grpc

from app.domain.books import Books, Members
from app.domain.instance.lifecycle import InstanceState
from app.errors import NotFound
from app.reconcile.jobs.observe import Observe
from app.rpc import answers, mapping
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb

from .faults import change, fault
from .faulty import Handler, after, handler


def _shuffled(_request: Any, answer: pb.NodeGroupsResponse) -> pb.NodeGroupsResponse:
    groups = list(answer.nodeGroups)
    random.shuffle(groups)
    return pb.NodeGroupsResponse(nodeGroups=groups)


def _bare(_request: Any, answer: pb.NodeGroupForNodeResponse) -> pb.NodeGroupForNodeResponse:
    return pb.NodeGroupForNodeResponse(nodeGroup=pb.NodeGroup(id=answer.nodeGroup.id))


def _foreign_is_an_error(_request: Any, answer: pb.NodeGroupForNodeResponse) -> pb.NodeGroupForNodeResponse:
    if not answer.nodeGroup.id:
        raise NotFound("no such node")
    return answer


def _labels_decide(request: Any, answer: pb.NodeGroupForNodeResponse) -> pb.NodeGroupForNodeResponse:
    label = request.node.labels.get("verda.com/node-group")
    return pb.NodeGroupForNodeResponse(nodeGroup=pb.NodeGroup(id=label)) if label else answer


def _dangling(request: Any, answer: pb.NodeGroupForNodeResponse) -> pb.NodeGroupForNodeResponse:
    group, dash, _ = request.node.providerID.removeprefix("verda://").rpartition("-")
    return pb.NodeGroupForNodeResponse(nodeGroup=pb.NodeGroup(id=group)) if dash and group else answer


def _no_node_is_nobody(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        return old(self, request, context) if request.HasField("node") else pb.NodeGroupForNodeResponse()

    return new


def _members_only_if(keep: Callable[[Any, Any], bool]) -> Callable[[Handler], Handler]:
    """NodeGroupForNode that says "nobody's" for some of our instances."""

    def make(old: Handler) -> Handler:
        def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
            instance = self._books.find(request.node.providerID, request.node.name)
            if instance is not None and not keep(instance, self._books):
                return pb.NodeGroupForNodeResponse()
            return old(self, request, context)

        return new

    return make


def _deleted_nodes_stay(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        instance = self._books.find(request.node.providerID, request.node.name)
        if instance is not None and instance.state in {InstanceState.DELETING, InstanceState.GONE}:
            group = self._books.groups[instance.node_group]
            return pb.NodeGroupForNodeResponse(nodeGroup=mapping.node_group_message(group, self._books))
        return old(self, request, context)

    return new


def _names_ignored() -> None:
    def by_id_only(old: Callable[[Books, str, str], Any]) -> Callable[[Books, str, str], Any]:
        return lambda books, provider_id, name: old(books, provider_id, name) if provider_id else None

    change(Books, "node_key", by_id_only)()


def _counting(count: Callable[[Members], int]) -> Callable[[], None]:
    return change(Members, "target_size", lambda _old: property(count))


def _orphans_too(old: Callable[[Any, str, Members], pb.NodeGroupNodesResponse]) -> Any:
    def nodes(self: Any, group: str, members: Members) -> pb.NodeGroupNodesResponse:
        answer = pb.NodeGroupNodesResponse()
        answer.CopyFrom(old(self, group, members))
        for orphan in CloudProvider.books_of_the_fault().cloud.orphans:  # type: ignore[attr-defined] # a fault
            answer.instances.add(id=f"verda://{orphan}").status.instanceState = pb.InstanceStatus.instanceRunning
        return answer

    return nodes


def _list_orphans() -> None:
    def make(old: Callable[..., None]) -> Callable[..., None]:
        def new(self: Any, *arguments: Any) -> None:
            old(self, *arguments)
            CloudProvider.books_of_the_fault = staticmethod(lambda: self._books)  # type: ignore[attr-defined] # a fault

        return new

    change(CloudProvider, "__init__", make)()
    change(answers.Answers, "nodes", _orphans_too)()


def _offer_everything() -> None:
    def served(books: Books) -> tuple[Any, ...]:
        return tuple(books.groups[name] for name in books.group_order)

    def names(books: Books) -> frozenset[str]:
        return frozenset(books.group_order)

    change(Books, "served_groups", lambda _old: property(served))()
    change(Books, "served_names", lambda _old: property(names))()


def _drop_retired() -> None:
    def served(books: Books) -> tuple[Any, ...]:
        return tuple(
            group
            for name in books.group_order
            if not (group := books.groups[name]).retired and group.spec.instance_type in books.cloud.catalogue
        )

    change(Books, "served_groups", lambda _old: property(served))()


FAULTS = (
    fault("shuffled", "the order of the groups changes", "11", handler("NodeGroups", after(_shuffled))),
    fault("offers-everything", "groups are listed whose type nobody sells", "11 60", _offer_everything),
    fault("bare-group-id", "NodeGroupForNode fills the id alone", "13", handler("NodeGroupForNode", after(_bare))),
    fault(
        "foreign-is-an-error",
        "nodes of others are an error",
        "14 15 18",
        handler("NodeGroupForNode", after(_foreign_is_an_error)),
    ),
    fault("names-ignored", "nodes without provider id are not known by name", "15 52", _names_ignored),
    fault(
        "placeholders-unknown",
        "instances without a machine belong to no group",
        "16",
        handler("NodeGroupForNode", _members_only_if(lambda instance, _books: instance.instance_id is not None)),
    ),
    fault(
        "labels-decide",
        "a label of the node decides on its group",
        "17",
        handler("NodeGroupForNode", after(_labels_decide)),
    ),
    fault(
        "deleted-nodes-stay",
        "deleted nodes stay in their group",
        "18",
        handler("NodeGroupForNode", _deleted_nodes_stay),
    ),
    fault(
        "trouble-disowns",
        "while the cloud does not answer, nodes belong to no group",
        "18",
        handler("NodeGroupForNode", _members_only_if(lambda _instance, books: books.cloud.reachable is True)),
    ),
    fault(
        "dangling-group",
        "a node's group is read from its name, listed or not",
        "19",
        handler("NodeGroupForNode", after(_dangling)),
    ),
    fault(
        "no-node-is-nobody", "a request without node is answered", "20", handler("NodeGroupForNode", _no_node_is_nobody)
    ),
    fault(
        "deleting-counts",
        "instances being deleted count",
        "21 22 45",
        _counting(lambda it: len(it.live) + len(it.deleting)),
    ),
    fault(
        "failures-do-not-count",
        "failed creations do not count",
        "21 39",
        _counting(lambda it: sum(each.state is not InstanceState.FAILED for each in it.live.values())),
    ),
    fault(
        "losses-stay",
        "machines that are no more stay listed",
        "21 43",
        change(Observe, "_look_for_absent", lambda _old: lambda *_: None),
    ),
    fault("strangers-listed", "machines of another installation are listed", "44", _list_orphans),
    fault("retired-dropped", "groups that leave the configuration are gone at once", "70", _drop_retired),
)
