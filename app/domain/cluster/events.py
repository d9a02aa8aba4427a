"""Facts about the cluster's nodes that are not facts about one of our instances in its life."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import NonNegativeInt

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


class TokenEnd(StrEnum):
    """Why a join token that was made for a machine is no more."""

    JOINED = "joined"
    NO_LONGER_NEEDED = "no-longer-needed"
    EXPIRED = "expired"
    INTERRUPTED = "interrupted"
    NEVER_MADE = "never-made"


class JoinTokenAttempted(ClusterEvent):
    """The intent: the very next thing is to make a join token for one machine; its id is no secret."""

    type: ClassVar[str] = "cluster.join-token-attempted"
    words: ClassVar[str] = "making join token {token_id} for {instance}, good until {expires_at}"
    token_id: str
    instance: str
    node_group: str
    attempt: NonNegativeInt
    expires_at: datetime


class JoinTokenMinted(ClusterEvent):
    """The cluster has taken the token."""

    type: ClassVar[str] = "cluster.join-token-minted"
    words: ClassVar[str] = "{instance} may join with token {token_id}"
    token_id: str
    instance: str
    node_group: str


class JoinTokenRevoked(ClusterEvent):
    """The token is not in the cluster any more, or never was."""

    type: ClassVar[str] = "cluster.join-token-revoked"
    words: ClassVar[str] = "join token {token_id} of {instance} is gone ({reason})"
    token_id: str
    instance: str
    node_group: str
    reason: TokenEnd


class JoinTokenDoubted(ClusterEvent):
    """A token of the operator's own, in the scripts of these groups, is about to end or has ended."""

    type: ClassVar[str] = "cluster.join-token-doubted"
    words: ClassVar[str] = "{message}"
    token_id: str
    node_groups: tuple[str, ...]
    expires_at: datetime | None
    message: str


class JoinTokenTrusted(ClusterEvent):
    """That token was renewed, or is in no script any more."""

    type: ClassVar[str] = "cluster.join-token-trusted"
    words: ClassVar[str] = "join token {token_id} is no longer a worry"
    token_id: str


AnyTokenEvent = JoinTokenAttempted | JoinTokenMinted | JoinTokenRevoked
AnyClusterEvent = (
    NodeRemovalAttempted
    | NodeRemoved
    | NodeRemovalAbandoned
    | TemplateLearned
    | TemplatesDiscarded
    | JoinTokenAttempted
    | JoinTokenMinted
    | JoinTokenRevoked
    | JoinTokenDoubted
    | JoinTokenTrusted
)
