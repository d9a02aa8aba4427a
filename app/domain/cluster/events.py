"""Facts about the cluster's nodes that are not facts about one of our instances in its life."""

from datetime import datetime
from typing import ClassVar

from app.domain.cluster.node import Figures
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


class TemplateLearned(ClusterEvent):
    """A ready node corrects the template of its kind; `differences` is where it has less than had been promised."""

    type: ClassVar[str] = "cluster.template-learned"
    words: ClassVar[str] = "node {node} shows what {kind} has: {differences}"
    kind: str
    node: str
    instance: str
    figures: Figures
    differences: tuple[str, ...]


class TemplatesDiscarded(ClusterEvent):
    """Templates are what is computed again."""

    type: ClassVar[str] = "cluster.templates-discarded"
    words: ClassVar[str] = "templates of {kinds} are computed again, not as real nodes were"
    kinds: tuple[str, ...]


AnyClusterEvent = NodeRemovalAttempted | NodeRemoved | NodeRemovalAbandoned | TemplateLearned | TemplatesDiscarded
