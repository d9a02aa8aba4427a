"""The witness: what was promised to the autoscaler and what the log has said, kept apart from the program's own books.

Its own small fold is what invariants about single facts are held against, so a mistake in the program's fold cannot
excuse itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.envelope import Event, InstanceEvent, Recorded
from app.domain.instance.events import (
    CancelReason,
    CreateAttempted,
    CreateFailed,
    CreateOutcomeUnknown,
    CreateRefused,
    CreateRuledOut,
    DeleteAttempted,
    DeleteRequested,
    InstanceAdopted,
    InstanceCancelled,
    InstanceCreated,
    InstanceGone,
    InstanceLost,
    InstanceRequested,
    InstanceStateObserved,
)
from app.domain.nodegroup.events import NodeGroupConfigured, NodeGroupRetired


@dataclass(slots=True, kw_only=True)
class Story:
    """One instance as the log tells it, by the simplest reading there is.

    `called`: the call of the last attempt has left; a process may die between the two. `dropped`: it was a wish when an
    older backup was put back, and nobody knows what became of it since.
    """

    node_group: str
    requested: bool = False
    open_attempt: CreateAttempted | None = None
    attempts: int = 0
    called: bool = False
    unknown_at: datetime | None = None
    machine: str | None = None
    had: set[str] = field(default_factory=set)
    failed_at: datetime | None = None
    delete_requested: bool = False
    delete_attempts: set[str] = field(default_factory=set)
    closed: set[tuple[str, str]] = field(default_factory=set)
    tried: tuple[str, str] | None = None
    state: str = ""
    ended: str = ""
    dropped: bool = False

    @property
    def is_given_back(self) -> bool:
        """The log says that nobody wants it any more."""
        return self.delete_requested or (self.ended == InstanceCancelled.type and not self.dropped)


@dataclass(slots=True, kw_only=True)
class Witness:
    """Everything that was published, and everything that was promised."""

    log: list[Recorded[Event]] = field(default_factory=list)
    stories: dict[str, Story] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    spelled: dict[str, str] = field(default_factory=dict)
    learnt: set[str] = field(default_factory=set)
    maxima: dict[str, int] = field(default_factory=dict)

    @property
    def position(self) -> int:
        """The last position of the log that was seen."""
        return len(self.log)

    def take(self, item: Recorded[Event]) -> None:
        """One more fact."""
        self.log.append(item)
        event = item.event
        if isinstance(event, InstanceEvent):
            story = self.stories.setdefault(event.instance, Story(node_group=event.node_group))
            _tell(story, event, item.recorded_at)
        elif isinstance(event, NodeGroupConfigured):
            self.maxima[event.node_group] = event.max_size
        elif isinstance(event, NodeGroupRetired):
            self.maxima[event.node_group] = 0

    def go_back_to(self, log: Sequence[Recorded[Event]]) -> None:
        """An older backup is put back: nobody can know any more what came behind the end of its log."""
        self.log, self.stories, self.maxima = [], {}, {}
        for item in log:
            self.take(item)
        self.promised = {name for name in self.promised if name in self.stories}
        self.released = {name for name in self.released if name in self.stories and self.stories[name].is_given_back}
        self.spelled, self.learnt = {}, set()

    def call(self, hostname: str) -> None:
        """The create call for a host name leaves now."""
        if hostname in self.stories:
            self.stories[hostname].called = True

    def open_orders(self) -> Sequence[str]:
        """Names of instances with a create call whose outcome is not in the log."""
        return [name for name, story in self.stories.items() if story.open_attempt is not None]


def _tell(story: Story, event: InstanceEvent, at: datetime) -> None:  # noqa: C901, PLR0912 - a fold
    match event:
        case InstanceRequested():
            story.requested = True
        case CreateAttempted():
            story.open_attempt, story.unknown_at = event, None
            story.attempts += 1
            story.called = False
            story.tried = (event.location, event.contract)
        case CreateOutcomeUnknown():
            story.unknown_at = at
        case InstanceCreated():
            story.machine, story.open_attempt, story.unknown_at = event.instance_id, None, None
            story.had.add(event.instance_id)
        case CreateRefused():
            story.machine, story.open_attempt, story.unknown_at = None, None, None
            if event.rung_closed and story.tried is not None:
                story.closed.add(story.tried)
        case CreateRuledOut():
            story.open_attempt, story.unknown_at = None, None
        case CreateFailed():
            story.failed_at = at
        case InstanceAdopted():
            story.machine, story.ended, story.state, story.dropped = event.instance_id, "", "", False
            story.tried = None
        case InstanceStateObserved():
            story.state = event.state
            if story.tried is None and event.location is not None and event.contract is not None:
                story.tried = (event.location, event.contract)
        case DeleteRequested():
            story.delete_requested = True
        case DeleteAttempted():
            story.delete_attempts.add(event.instance_id)
        case InstanceCancelled():
            story.ended, story.dropped = event.type, event.reason is CancelReason.BOOKS_REVERTED
        case InstanceGone() | InstanceLost():
            story.ended = event.type
        case _:
            return
