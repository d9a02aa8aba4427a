"""Join tokens made for one machine each. Whatever crashes, none outlives its time: the cluster itself sees to that."""

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from app.clock import Clock, Ids
from app.domain.cluster.events import TokenEnd
from app.domain.cluster.tokens import AttemptJoinToken, RecordJoinTokenMinted, RecordJoinTokenRevoked
from app.domain.envelope import Cause
from app.errors import ClusterConflict, ClusterRefused
from app.kube.port import BootstrapToken, Cluster
from app.ledger.ledger import Ledger

_ACTOR = "kube/tokens"
_ID_LENGTH = 6
_TRIES = 3


@dataclass(slots=True, kw_only=True)
class Mint:
    """Intent, deed and outcome for each token, with the id alone in the log. May be called from several threads.

    `groups` are what the tokens let their bearers be.
    """

    ledger: Ledger
    cluster: Cluster
    clock: Clock
    ids: Ids
    groups: tuple[str, ...]
    _under_way: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def under_way(self) -> Collection[str]:
        """The ids of the tokens that are being made at this moment."""
        with self._guard:
            return frozenset(self._under_way)

    def mint(self, instance: str, ttl: timedelta) -> str:
        """A new token for the machine.

        Raises:
            ClusterError: it is not there, or nobody knows: then its intent stays open, and it will be deleted.
            RuleViolation: the machine is not wanted any more.
        """
        cause = Cause(actor=_ACTOR, correlation_id=self.ids.token())
        for _ in range(_TRIES):
            token_id = self.ids.token()[:_ID_LENGTH]
            if token_id in self.ledger.books.cluster.tokens:
                continue
            with self._guard:
                self._under_way.add(token_id)
            try:
                return self._make(token_id, instance, ttl, cause)
            except ClusterConflict:
                continue  # somebody has a token of that id
            finally:
                with self._guard:
                    self._under_way.discard(token_id)
        raise ClusterConflict("no join token could be made: its id was taken, again and again")

    def _make(self, token_id: str, instance: str, ttl: timedelta, cause: Cause) -> str:
        self.ledger.execute(AttemptJoinToken(token_id=token_id, instance=instance, ttl=ttl), cause)
        secret = self.ids.token()
        token = BootstrapToken(
            token_id=token_id,
            secret=secret,
            description=f"lets {instance} join, made by verda-cloud-provider",
            groups=self.groups,
            expires_at=self.ledger.books.cluster.tokens[token_id].expires_at,
        )
        try:
            self.cluster.create_token(token)
        except (ClusterConflict, ClusterRefused):
            self.ledger.execute(RecordJoinTokenRevoked(token_id=token_id, reason=TokenEnd.NEVER_MADE), cause)
            raise
        self.ledger.execute(RecordJoinTokenMinted(token_id=token_id), cause)
        return f"{token_id}.{secret}"
