"""Releases of Cluster Autoscaler, and every difference between them that a provider can notice."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Change(Enum):
    """What a release did differently from those before it: the minor release that brought it, and what it is."""

    EXPECTS_ONLY_SOUND_INSTANCES = (
        28,
        "instances in state Deleting, or with an error, no longer count as unregistered",
    )
    FORGIVES_YOUNG_UNREGISTERED = (28, "the size fixer subtracts unregistered instances before it calls a size wrong")
    ONE_REMOVAL_A_GROUP = (28, "unregistered instances of a group go in one call, as many as the minimum size allows")
    KNOWS_UNIMPLEMENTED = (29, "status UNIMPLEMENTED of an optional RPC means: not offered")
    SAYS_GOODBYE = (29, "Cleanup is called when the process ends")
    GUARDS_DELETION = (30, "a node that became unmanaged before its deletion is an error; 1.28 and 1.29 crash")
    REMEMBERS_BACKOFF = (30, "a finished scale-up no longer clears the history of back-offs")
    ASKS_BEFORE_UNTAINTING = (30, "the first loop asks for the group of every node, and untaints only nodes of groups")
    GOES_ON_AFTER_FAILED_CREATIONS = (31, "a loop that deleted failed creations goes on instead of ending")
    FAILURES_KNOW_THEIR_GROUP = (31, "failed creations go from the group that lists them; before, it was asked for")
    SURVIVES_TEMPLATE_ERRORS = (31, "a group whose template cannot be had is left out; before, the loop failed")
    GOES_ON_AFTER_SCALE_UP = (34, "a loop that scaled up, or failed to, still plans the scale-down")
    SURVIVES_UNKNOWN_NODES = (
        34,
        "an error of NodeGroupForNode leaves the node out of templates; before, the loop failed",
    )
    STARTUP_TIME_IS_AN_OPTION = (35, "the time to become ready is an option, which the protocol does not carry")
    FREQUENT_LOOPS = (35, "after a loop that scaled up or down the next one starts at once")
    TEMPLATES_FROM_UNREADY = (35, "templates are made of unready nodes too, as a last resort")
    UPCOMING_NEEDS_A_REQUEST = (36, "upcoming nodes count only with an open scale-up request and without back-off")
    FINISHED_MEANS_NOTHING_UPCOMING = (36, "a scale-up is finished when nothing is upcoming; ghosts no longer count")
    REVERTS_TIMED_OUT = (36, "a scale-up that timed out is taken back by DecreaseTargetSize")

    def __init__(self, minor: int, words: str) -> None:
        self.minor = minor
        self.words = words


@dataclass(frozen=True, slots=True)
class Release:
    """The newest patch of a minor release, and the generation of the protocol that it speaks."""

    minor: int
    generation: str

    def __str__(self) -> str:
        return f"1.{self.minor}"

    @property
    def crashes_on_unmanaged_deletion(self) -> bool:
        """1.27 looked before it followed the pointer, 1.30 does again."""
        return self.minor >= _LOST_ITS_GUARD and not self.has(Change.GUARDS_DELETION)

    def has(self, change: Change) -> bool:
        """Whether it behaves in the newer way."""
        return self.minor >= change.minor


_LOST_ITS_GUARD: Final = 28
_GENERATIONS: Final = {25: "A", 29: "B", 33: "C", 34: "D", 35: "E"}
"""The minor releases with which a generation of the protocol began."""


def release(minor: int) -> Release:
    """Release 1.`minor`."""
    return Release(minor, _GENERATIONS[max(first for first in _GENERATIONS if first <= minor)])


RELEASES: Final = tuple(release(minor) for minor in (27, 28, 31, 33, 34, 35, 36))
"""Every generation of the protocol, and both sides of nearly every change."""

ENDS: Final = (release(28), release(36))
"""An old and a new one, where what lies between makes no difference."""
