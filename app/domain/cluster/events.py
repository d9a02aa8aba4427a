"""Facts about the cluster's nodes that are not facts about one of our instances in its life."""

from datetime import datetime
from typing import ClassVar

from app.domain.envelope import ClusterEvent
from app.domain.instance.events import End


class NodeRemovalAttempted(ClusterEvent):
    """The intent: the very next thing is the removal of this Node object, whose machine is proven gone."""

    type: ClassVar[str] = "cluster.node-removal-attempted"
    words: ClassVar[str] = "removing node {node}: its machine was {end}, and it is silent since {silent_since}"
    node: str
    uid: str
    instance: str
    node_group: str
    end: End
    silent_since: datetime


class NodeRemoved(ClusterEvent):
    """The Node object is no more; pods that were bound to it are made anew elsewhere."""

    type: ClassVar[str] = "cluster.node-removed"
    words: ClassVar[str] = "node {node} is removed: its machine was {end}"
    node: str
    uid: str
    instance: str
    node_group: str
    end: End


class NodeRemovalAbandoned(ClusterEvent):
    """The Node object stays: it has changed since it was judged."""

    type: ClassVar[str] = "cluster.node-removal-abandoned"
    words: ClassVar[str] = "node {node} stays: {reason}"
    node: str
    uid: str
    instance: str
    node_group: str
    reason: str


AnyClusterEvent = NodeRemovalAttempted | NodeRemoved | NodeRemovalAbandoned
