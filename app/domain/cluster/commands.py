"""What the jobs of the cluster side tell the books."""

from dataclasses import dataclass

from app.domain.cluster.ghosts import Ghost


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNodeRemoval:
    """This Node object is about to be removed."""

    ghost: Ghost


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordNodeRemoved:
    """The Node object is no more."""

    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonNodeRemoval:
    """The Node object has changed since it was judged, and stays."""

    uid: str
    reason: str
