"""The cluster as the log tells it: what we are doing to its nodes."""

from __future__ import annotations  # HashTrieMap cannot be subscripted at run time

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from rpds import HashTrieMap

from app.domain.cluster.events import (
    AnyClusterEvent,
    AnyTokenEvent,
    JoinTokenAttempted,
    JoinTokenDoubted,
    JoinTokenMinted,
    JoinTokenRevoked,
    JoinTokenTrusted,
    NodeRemovalAbandoned,
    NodeRemovalAttempted,
    NodeRemoved,
    TemplateLearned,
    TemplatesDiscarded,
)
from app.domain.cluster.node import Figures
from app.domain.envelope import Recorded
from app.domain.instance.events import End


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A Node object that is being removed."""

    uid: str
    node: str
    instance: str
    node_group: str
    end: End
    silent_since: datetime
    attempted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What real nodes of a kind have, and the node that said so last."""

    kind: str
    node: str
    figures: Figures
    learned_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """A token for one attempt to order a machine, which is in the cluster or may be: `minted_at` says that it was."""

    token_id: str
    instance: str
    node_group: str
    attempt: int
    expires_at: datetime
    attempted_at: datetime
    minted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulToken:
    """A token of the operator's own that a person should renew."""

    token_id: str
    expires_at: datetime | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Open removals by the node's uid, intents whose outcome is not known yet; what was learned by kind of node.

    `tokens` are join tokens of ours and `doubtful_tokens` such of the operator's, by id.
    """

    removals: HashTrieMap[str, Removal] = field(default_factory=HashTrieMap)
    learned: HashTrieMap[str, Learned] = field(default_factory=HashTrieMap)
    tokens: HashTrieMap[str, JoinToken] = field(default_factory=HashTrieMap)
    doubtful_tokens: HashTrieMap[str, DoubtfulToken] = field(default_factory=HashTrieMap)
    version: int = 0


def evolve(view: ClusterView, recorded: Recorded[AnyClusterEvent]) -> ClusterView:
    """Fold one event of the stream `cluster`."""
    event = recorded.event
    view = replace(view, version=recorded.version)
    match event:
        case NodeRemovalAttempted():
            removal = Removal(
                uid=event.uid,
                node=event.node,
                instance=event.instance,
                node_group=event.node_group,
                end=event.end,
                silent_since=event.silent_since,
                attempted_at=recorded.recorded_at,
            )
            return replace(view, removals=view.removals.insert(event.uid, removal))
        case NodeRemoved() | NodeRemovalAbandoned():
            return replace(view, removals=view.removals.discard(event.uid))
        case TemplateLearned():
            learned = Learned(kind=event.kind, node=event.node, figures=event.figures, learned_at=recorded.recorded_at)
            return replace(view, learned=view.learned.insert(event.kind, learned))
        case TemplatesDiscarded():
            return replace(view, learned=HashTrieMap())
        case JoinTokenAttempted() | JoinTokenMinted() | JoinTokenRevoked():
            return replace(view, tokens=_evolve_tokens(view.tokens, event, recorded.recorded_at))
        case JoinTokenDoubted():
            doubt = DoubtfulToken(token_id=event.token_id, expires_at=event.expires_at, message=event.message)
            return replace(view, doubtful_tokens=view.doubtful_tokens.insert(event.token_id, doubt))
        case JoinTokenTrusted():
            return replace(view, doubtful_tokens=view.doubtful_tokens.discard(event.token_id))
        case _:
            assert_never(event)


def _evolve_tokens(
    tokens: HashTrieMap[str, JoinToken], event: AnyTokenEvent, at: datetime
) -> HashTrieMap[str, JoinToken]:
    match event:
        case JoinTokenAttempted():
            token = JoinToken(
                token_id=event.token_id,
                instance=event.instance,
                node_group=event.node_group,
                attempt=event.attempt,
                expires_at=event.expires_at,
                attempted_at=at,
            )
            return tokens.insert(event.token_id, token)
        case JoinTokenMinted():
            known = tokens.get(event.token_id)
            return tokens if known is None else tokens.insert(event.token_id, replace(known, minted_at=at))
        case JoinTokenRevoked():
            return tokens.discard(event.token_id)
        case _:
            assert_never(event)
