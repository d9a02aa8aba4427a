"""Delete join tokens that nobody needs any more; look whether the operator's own are about to end."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from app.clock import Clock
from app.domain.cluster.events import JoinTokenDoubted, TokenEnd
from app.domain.cluster.node import Node
from app.domain.cluster.tokens import ObserveJoinTokens, RecordJoinTokenRevoked, StandingToken, over
from app.domain.envelope import Cause
from app.errors import ClusterForbidden
from app.kube.jobs.bench import Bench
from app.kube.jobs.turns import Turns
from app.log import get_logger

_LOOK_EVERY_S: Final = 300.0
_MOST_IN_A_PASS: Final = 200

_log = get_logger(job="cluster")

StandingTokens = Callable[[], Mapping[str, tuple[str, ...]]]
"""The ids of the operator's own tokens, with the node groups whose scripts hold them."""


@dataclass(slots=True, kw_only=True)
class RevokeJoinTokens:
    """Also those that a crash left between intent and outcome. `under_way` tells which are only just being made."""

    name: ClassVar[str] = "delete join tokens"
    bench: Bench
    under_way: Callable[[], Collection[str]]
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        """Nothing was refused yet."""
        self._turns = Turns(clock=self.bench.clock)

    def run(self, _nodes: Sequence[Node], cause: Cause) -> None:
        """Delete those that are over."""
        # Books, then who is busy, then books again: one that is made meanwhile must not look like one that was left.
        known = self.bench.books.cluster.tokens
        busy = self.under_way()
        ended = over(self.bench.books, self.bench.clock.now(), busy).items()
        due = {token_id: (token_id, reason) for token_id, reason in ended if token_id in known}
        self._turns.serve(due, _MOST_IN_A_PASS, lambda ended: self._revoke(*ended, cause))

    def _revoke(self, token_id: str, reason: TokenEnd, cause: Cause) -> None:
        """Delete, then write it down: a token that was deleted twice is gone all the same."""
        self.bench.cluster.delete_token(token_id)
        self.bench.record(RecordJoinTokenRevoked(token_id=token_id, reason=reason), cause)


@dataclass(slots=True, kw_only=True)
class WatchJoinTokens:
    """Looks at the tokens in scripts now and then. Where that is not granted, it is no trouble: nothing is said."""

    name: ClassVar[str] = "look at join tokens"
    bench: Bench
    standing: StandingTokens
    _looked_at: float | None = field(default=None)

    def run(self, _nodes: Sequence[Node], cause: Cause) -> None:
        """Look, and record what is new."""
        clock: Clock = self.bench.clock
        if self._looked_at is not None and clock.monotonic() - self._looked_at < _LOOK_EVERY_S:
            return
        tokens, unseen = [], set()
        for token_id, node_groups in self.standing().items():
            try:
                seen = self.bench.cluster.token(token_id)
            except ClusterForbidden:
                unseen.add(token_id)
                continue
            expires_at = None if seen is None else seen.expires_at
            exists = seen is not None
            tokens.append(
                StandingToken(token_id=token_id, node_groups=node_groups, exists=exists, expires_at=expires_at)
            )
        for item in self.bench.record(ObserveJoinTokens(tokens=tuple(tokens), unseen=frozenset(unseen)), cause):
            if isinstance(item.event, JoinTokenDoubted):
                _log.warning("join token about to end", problem=item.event.message)
        self._looked_at = clock.monotonic()
