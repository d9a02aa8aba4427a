"""Given, when, then for the pure domain: facts are folded by the real fold, commands decided by the real deciders.

Positions, versions and times are what the ledger would give; time stands still until a `timedelta` is given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from app.domain.books import Books, evolve
from app.domain.decide import Command, decide
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.state import Instance
from app.errors import ProviderError

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
CAUSE = Cause(actor="cluster-autoscaler", correlation_id="c-1")

Past = Event | Command | timedelta
"""A fact, a command whose facts are taken over whatever they are, or time going by."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The books after a story. Immutable: a story can be continued in many ways."""

    books: Books = field(default_factory=Books)
    now: datetime = NOON
    versions: Mapping[str, int] = field(default_factory=dict)

    def given(self, *past: Past) -> "Scenario":
        """The story goes on with this."""
        story = self
        for item in past:
            if isinstance(item, timedelta):
                story = replace(story, now=story.now + item)
            elif isinstance(item, Event):
                story = story.recorded(item)
            else:
                story = story.when(item).after
        return story

    def when(self, command: Command) -> "Outcome":
        """Let the real deciders decide."""
        try:
            decision = decide(command, self.books, self.now)
        except ProviderError as refusal:
            return Outcome(before=self, events=(), refusal=refusal)
        return Outcome(before=self, events=decision.events, refusal=decision.refusal)

    def recorded(self, *events: Event) -> "Scenario":
        """Put facts into the log and fold them."""
        books, versions = self.books, dict(self.versions)
        for event in events:
            versions[event.stream] = versions.get(event.stream, 0) + 1
            item = Recorded(
                position=books.position + 1,
                stream=event.stream,
                version=versions[event.stream],
                recorded_at=self.now,
                cause=CAUSE,
                event=event,
            )
            books = evolve(books, item)
        return replace(self, books=books, versions=versions)

    def instance(self, name: str) -> Instance:
        """The instance of that name."""
        return self.books.instances[name]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command came to."""

    before: Scenario
    events: tuple[Event, ...]
    refusal: ProviderError | None

    @property
    def after(self) -> Scenario:
        """The story with the command's facts in it."""
        return self.before.recorded(*self.events)

    def then(self, *events: Event) -> Scenario:
        """Exactly these facts, no refusal."""
        assert self.refusal is None, self.refusal
        assert self.events == events
        return self.after

    def then_nothing(self) -> Scenario:
        """Already so: no facts, no refusal."""
        return self.then()

    def then_refused(self, refusal: type[ProviderError], *recorded: Event) -> ProviderError:
        """Refused like this, with at most these facts in the log, and no size or instance changed by them."""
        assert type(self.refusal) is refusal, self.refusal
        assert self.events == recorded
        assert self.after.books.instances == self.before.books.instances
        assert self.after.books.members_by_group == self.before.books.members_by_group
        return self.refusal
