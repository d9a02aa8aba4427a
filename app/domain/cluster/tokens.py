"""Join tokens: short-lived ones that are made for one machine each, and an operator's own that are about to end.

The log knows a token by its id, which Kubernetes calls public; its secret half is nowhere but in the cluster and in the
script of the machine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.domain.books import Books
from app.domain.cluster.events import (
    JoinTokenAttempted,
    JoinTokenDoubted,
    JoinTokenMinted,
    JoinTokenRevoked,
    JoinTokenTrusted,
    TokenEnd,
)
from app.domain.cluster.state import JoinToken
from app.domain.envelope import Decision, Event
from app.domain.instance.lifecycle import InstanceState
from app.errors import RuleViolation

_AHEAD: Final = timedelta(hours=6)
"""A quarter of the life that kubeadm gives a token: time for a person to renew it."""

_NEEDS_IT: Final = frozenset(
    {InstanceState.SUBMITTING, InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptJoinToken:
    """A token of this id is about to be made for a machine that is being ordered or fetches its script."""

    token_id: str
    instance: str
    ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJoinTokenMinted:
    """The cluster has taken it."""

    token_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJoinTokenRevoked:
    """It is not in the cluster."""

    token_id: str
    reason: TokenEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingToken:
    """An operator's own token, and the groups whose scripts hold it. `expires_at` is None if it never ends."""

    token_id: str
    node_groups: tuple[str, ...]
    exists: bool
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveJoinTokens:
    """The tokens in the scripts of the configuration; of those in `unseen` nobody could learn anything."""

    tokens: tuple[StandingToken, ...]
    unseen: frozenset[str] = frozenset()


TokenCommand = AttemptJoinToken | RecordJoinTokenMinted | RecordJoinTokenRevoked | ObserveJoinTokens


def attempt_join_token(command: AttemptJoinToken, books: Books, now: datetime) -> Decision:
    """Write down the intent, so that whatever happens next the token will be looked for and deleted.

    Raises:
        RuleViolation: the machine is not wanted, or there is a token of that id.
    """
    instance = books.instances.get(command.instance)
    if instance is None or instance.state not in _NEEDS_IT:
        raise RuleViolation("nobody wants this machine any more", instance=command.instance)
    if command.token_id in books.cluster.tokens:
        raise RuleViolation(f"there is a join token {command.token_id}", instance=command.instance)
    attempted = JoinTokenAttempted(
        token_id=command.token_id,
        instance=instance.name,
        node_group=instance.node_group,
        attempt=instance.attempt,
        expires_at=now + command.ttl,
    )
    return Decision((attempted,))


def record_join_token_minted(command: RecordJoinTokenMinted, books: Books) -> Decision:
    """The outcome, once."""
    token = books.cluster.tokens.get(command.token_id)
    if token is None or token.minted_at is not None:
        return Decision()
    minted = JoinTokenMinted(token_id=token.token_id, instance=token.instance, node_group=token.node_group)
    return Decision((minted,))


def record_join_token_revoked(command: RecordJoinTokenRevoked, books: Books) -> Decision:
    """The end, once."""
    token = books.cluster.tokens.get(command.token_id)
    if token is None:
        return Decision()
    revoked = JoinTokenRevoked(
        token_id=token.token_id, instance=token.instance, node_group=token.node_group, reason=command.reason
    )
    return Decision((revoked,))


def over(books: Books, now: datetime, under_way: Iterable[str]) -> Mapping[str, TokenEnd]:
    """The tokens that nobody needs any more, and why; `under_way` are those that are being made at this moment."""
    busy = frozenset(under_way)
    found = {token.token_id: _end_of(token, books, now) for token in books.cluster.tokens.values()}
    return {token_id: end for token_id, end in found.items() if end is not None and token_id not in busy}


def _end_of(token: JoinToken, books: Books, now: datetime) -> TokenEnd | None:
    if token.minted_at is None:
        return TokenEnd.INTERRUPTED
    if now >= token.expires_at:
        return TokenEnd.EXPIRED
    instance = books.instances.get(token.instance)
    if instance is None or instance.state not in _NEEDS_IT or instance.attempt != token.attempt:
        return TokenEnd.NO_LONGER_NEEDED
    return TokenEnd.JOINED if instance.node_registered_at is not None else None


def observe_join_tokens(command: ObserveJoinTokens, books: Books, now: datetime) -> Decision:
    """Which of an operator's tokens are about to end or have ended, told once; and which of those are renewed."""
    doubtful = {token.token_id: token for token in command.tokens if _is_doubtful(token, now)}
    events: list[Event] = []
    for token_id, token in sorted(doubtful.items()):
        known = books.cluster.doubtful_tokens.get(token_id)
        doubted = JoinTokenDoubted(
            token_id=token_id, node_groups=token.node_groups, expires_at=token.expires_at, message=_words(token)
        )
        if known is None or known.message != doubted.message:
            events.append(doubted)
    renewed = set(books.cluster.doubtful_tokens) - doubtful.keys() - command.unseen
    events.extend(JoinTokenTrusted(token_id=token_id) for token_id in sorted(renewed))
    return Decision(tuple(events))


def _is_doubtful(token: StandingToken, now: datetime) -> bool:
    return not token.exists or (token.expires_at is not None and token.expires_at - now < _AHEAD)


def _words(token: StandingToken) -> str:
    groups = ", ".join(token.node_groups)
    what = f"join token {token.token_id} in the startup script of {groups}"
    remedy = "make another, with kubeadm token create, and put it where the script's value comes from"
    if not token.exists:
        return f"{what} is not in the cluster, so no new machine can join: {remedy}"
    return f"{what} ends at {token.expires_at:%Y-%m-%d %H:%M} UTC, and no machine can join from then on: {remedy}"
