"""Steps of time and of the provider's own life."""

from dataclasses import dataclass

from tests.simulation.effects import DiskTrouble
from tests.simulation.stage import PutBack, Stage

_PACES = ((120.0, 1), (1000.0, 3), (float("inf"), 400))


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes, and the jobs do their work."""

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g} s pass"

    def act(self, stage: Stage) -> None:
        """Let it pass; the jobs come round less often in a long wait, so that it does not take for ever."""
        stage.agenda.set_pace(next(pace for longest, pace in _PACES if self.seconds <= longest))
        stage.pass_time(self.seconds)
        stage.agenda.set_pace(1)


@dataclass(frozen=True, slots=True)
class Kill:
    """The process dies between two steps, with calls under way."""

    down_s: float

    def __str__(self) -> str:
        return f"the provider is killed and starts again {self.down_s:g} s later"

    def act(self, stage: Stage) -> None:
        """Kill it."""
        stage.crash(self.down_s)


@dataclass(frozen=True, slots=True)
class KillAtEffect:
    """The process dies at some effect from now on: around a commit, around a call, before an answer."""

    after: int
    down_s: float

    def __str__(self) -> str:
        return f"the provider will be killed after {self.after} more effects, to start again {self.down_s:g} s later"

    def act(self, stage: Stage) -> None:
        """Prepare it."""
        stage.arm(self.after, self.down_s)


@dataclass(frozen=True, slots=True)
class Restart:
    """The operator restarts the provider, perhaps with another configuration."""

    configuration: int
    down_s: float

    def __str__(self) -> str:
        return (
            f"the provider is stopped and starts again {self.down_s:g} s later with configuration {self.configuration}"
        )

    def act(self, stage: Stage) -> None:
        """Stop and start."""
        stage.restart(self.configuration, self.down_s)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the database is made, beside the work."""

    def __str__(self) -> str:
        return "a copy of the database is made"

    def act(self, stage: Stage) -> None:
        """Make it."""
        stage.copy()


@dataclass(frozen=True, slots=True)
class PutCopyBack:
    """The provider is killed, and finds an older state of its database when it starts again."""

    age: int
    how: PutBack
    down_s: float

    def __str__(self) -> str:
        return f"the provider is killed, an older copy of its database is {self.how}, down for {self.down_s:g} s"

    def act(self, stage: Stage) -> None:
        """Put it back."""
        stage.put_back(self.age, self.how, self.down_s)


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """The operator changes the configuration, and the provider reads it again."""

    configuration: int

    def __str__(self) -> str:
        return f"the provider reads configuration {self.configuration}"

    def act(self, stage: Stage) -> None:
        """Apply it."""
        stage.configure(self.configuration)


@dataclass(frozen=True, slots=True)
class BadDisk:
    """Commits fail, or seem to."""

    trouble: DiskTrouble
    times: int
    blind_reads: int

    def __str__(self) -> str:
        blind = f", and the next {self.blind_reads} looks at the log fail" if self.blind_reads else ""
        return f"the next {self.times} commits are {self.trouble}{blind}"

    def act(self, stage: Stage) -> None:
        """Prepare it."""
        stage.disk.troubles.extend([self.trouble] * self.times)
        stage.disk.blind_reads += self.blind_reads


@dataclass(frozen=True, slots=True)
class WallClock:
    """A time server corrects the wall clock."""

    seconds: float

    def __str__(self) -> str:
        return f"the wall clock is set by {self.seconds:+g} s"

    def act(self, stage: Stage) -> None:
        """Set it."""
        stage.set_wall_clock(self.seconds)
