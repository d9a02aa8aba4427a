"""The states of an instance, and what the cloud's status words mean for them."""

from enum import StrEnum


class InstanceState(StrEnum):
    """Where an instance stands; finer than what the autoscaler's wire can say."""

    REQUESTED = "requested"
    SUBMITTING = "submitting"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    DELETING = "deleting"
    GONE = "gone"
    LOST = "lost"
    CANCELLED = "cancelled"

    @property
    def is_live(self) -> bool:
        """Counts in the target size."""
        return self in _LIVE

    @property
    def is_ended(self) -> bool:
        """Finished for ever and no longer listed."""
        return self in _ENDED


_ENDED = frozenset({InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED})
_LIVE = frozenset(InstanceState) - _ENDED - {InstanceState.DELETING}


class Phase(StrEnum):
    """What a status word of the cloud means."""

    CREATING = "creating"
    RUNNING = "running"
    STOPPED = "stopped"
    BROKEN = "broken"
    NO_CAPACITY = "no-capacity"
    ENDED = "ended"
    UNCHANGED = "unchanged"


# Verda's API declares its status an open set: clients must tolerate new words. An unknown word means that the machine
# exists and may bill, and says nothing about its state. `deleting` without our asking is somebody else's deletion: the
# machine is ours until it is proven gone.
_PHASES = {
    "new": Phase.CREATING,
    "ordered": Phase.CREATING,
    "pending": Phase.CREATING,
    "provisioning": Phase.CREATING,
    "validating": Phase.CREATING,
    "running": Phase.RUNNING,
    "offline": Phase.STOPPED,
    "hibernating": Phase.STOPPED,
    "error": Phase.BROKEN,
    "installation_failed": Phase.BROKEN,
    "no_capacity": Phase.NO_CAPACITY,
    "discontinued": Phase.ENDED,
    "deleted": Phase.ENDED,
    "notfound": Phase.ENDED,
}


NO_MACHINE = frozenset({Phase.ENDED, Phase.NO_CAPACITY})
"""It is no more, or was never placed: nothing that could be taken over. An order that was never placed is for its own
wish to repeat; a record of one whose wish is forgotten must not become one more purchase."""


def is_unheard_of(status: str | None) -> bool:
    """A word that nobody has told us about: what it means for the machine has to be found out by a person."""
    return status is not None and status not in _PHASES and status != "deleting"


def phase_of(status: str) -> Phase:
    """The meaning of a status word; UNCHANGED for words nobody has told us about."""
    return _PHASES.get(status, Phase.UNCHANGED)
