"""The stage: one world, one clock, one database, and one life of the provider after the other."""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from app.clock import FakeClock, SeededIds
from app.domain.books import Books
from app.domain.envelope import Cause, Event, Recorded
from app.domain.ids import Mark
from app.domain.startup import RecordRestore
from app.errors import StoreCorrupt, StoreError
from app.ledger.ledger import Ledger
from app.ledger.serving import obstacles
from app.simulator.records import InstanceRecord
from app.simulator.world import World
from app.store import backup
from app.store import restore as restoring
from app.store.backup import BackupReason
from app.store.store import Store
from tests.simulation import setting
from tests.simulation.agenda import Agenda
from tests.simulation.chance import Chance
from tests.simulation.cloud import MoodyCloud
from tests.simulation.effects import Crash, Disk, Effects
from tests.simulation.life import Life
from tests.simulation.picture import Picture, take_picture
from tests.simulation.rpc import PATIENCE_S, Rpc
from tests.simulation.strands import Crew
from tests.simulation.violation import Violated
from tests.simulation.witness import Witness

Facts = Sequence[Recorded[Event]]


class PutBack(StrEnum):
    """How an older state of the database comes back."""

    RESTORED = "restored"
    COPIED = "copied over it by hand"


class Stage:
    """Everything a story needs. Nothing here judges; `Inspector` does."""

    def __init__(self, seed: int, directory: Path, template: Path, crew: Crew) -> None:
        self.seed = seed
        self.path = directory / "books.db"
        shutil.copyfile(template, self.path)
        self.clock = FakeClock()
        self.chance = Chance(seed)
        self.ids = SeededIds(seed)
        self.agenda = Agenda(self.clock, self.chance, crew)
        self.effects = Effects()
        self.disk = Disk()
        self.world = World(setting.world_config(seed), self.clock)
        self.cloud = MoodyCloud(self.world, self.agenda, self.chance, self.effects)
        self.witness = Witness()
        self.listener: Callable[[Facts], None] = lambda _: None
        self.configuration = 0
        self.clock_slack_s = 0.0
        self.cloud_slack_s = 0.0
        self.lives = 0
        self.copies: list[tuple[Path, Facts]] = []
        self.times_put_back = 0
        self._copies = directory / "copies"
        self._looks = SeededIds(-1)
        self._after_crash_s = 0.0
        self._life: Life | None = None
        self._pictured: tuple[Books, Picture] | None = None

    @property
    def life(self) -> Life:
        """The process that lives now."""
        assert self._life is not None
        return self._life

    @property
    def books(self) -> Books:
        """The books of the living process."""
        return self.life.ledger.books

    @property
    def is_serving(self) -> bool:
        """RPCs are answered."""
        return not obstacles(self.books)

    @property
    def machines(self) -> Sequence[InstanceRecord]:
        """Machines that we ordered and that cost money now, as far as anybody can know that they are ours."""
        return [
            item
            for item in self.world.state.instances.values()
            if is_billed(item) and not item.foreign and not self._is_beyond_recognition(item)
        ]

    def _is_beyond_recognition(self, item: InstanceRecord) -> bool:
        """Somebody has edited its mark away, and the older books that were put back never knew its id."""
        is_unmarked = Mark.parse(item.description) is None
        return bool(self.times_put_back) and is_unmarked and self.books.find_by_key(item.id) is None

    def start(self) -> None:
        """A process starts, and again if it dies at that. Raises: Violated, if it refuses to and the disk works."""
        while not self._is_started():
            pass
        self._looking = Rpc(self.life.ledger, self.clock, self._looks)

    def _is_started(self) -> bool:
        self._life = life = Life(
            path=self.path,
            clock=self.clock,
            ids=self.ids,
            cloud=self.cloud,
            agenda=self.agenda,
            effects=self.effects,
            disk=self.disk,
        )
        self.lives += 1
        strikes = self.disk.strikes
        try:
            life.start(setting.CONFIGURATIONS[self.configuration], self._on_recorded)
        except Crash:
            life.die()
            return False
        except StoreError as error:
            life.die()
            if self.disk.strikes == strikes:
                raise Violated("the_provider_starts", f"life {self.lives}: {error}") from error
            return False
        return True

    def _on_recorded(self, recorded: Facts) -> None:
        missed = recorded[0].position - self.witness.position - 1
        if missed > 0:  # committed by a process that died before it could tell
            found = Store.events_after(self.life.store, self.witness.position)
            self.listener(found[:missed])
        self.listener(recorded)

    def crash(self, down_s: float = 0.0) -> None:
        """The process is killed, nothing runs for a while, another one starts."""
        self.life.die()
        self._be_down(down_s)
        self.start()

    def restart(self, configuration: int, down_s: float) -> None:
        """The process is stopped as it should be, and another one starts, perhaps with another configuration."""
        self.life.stop()
        self.configuration = configuration
        self._be_down(down_s)
        self.start()

    def copy(self) -> None:
        """A scheduled copy of the database is made."""
        with contextlib.suppress(StoreCorrupt):  # there is nothing in it yet
            made = backup.take(self.path, self._copies, self.clock.now(), BackupReason.SCHEDULED)
            if made.manifest.position == self.witness.position:  # else nobody was told yet what it holds
                self.copies.append((made.path, tuple(self.witness.log)))

    def put_back(self, age: int, how: PutBack, down_s: float) -> None:
        """The process is killed, one of the copies takes the place of the database, another process starts.

        Raises: Violated.
        """
        if not self.copies:
            return
        self.life.die()
        copy, log = self.copies[-1 - age % len(self.copies)]
        if how is PutBack.RESTORED:
            once_reached = restoring.position_of(self.path)
            try:
                restoring.restore(copy, self.path, "operator", self.clock.now(), partial(self._note, once_reached))
            except StoreCorrupt as error:
                raise Violated("a_copy_can_be_put_back", str(error)) from error
        else:
            for companion in ("-wal", "-shm"):
                self.path.with_name(self.path.name + companion).unlink(missing_ok=True)
            shutil.copyfile(copy, self.path)
        self.witness.go_back_to(log)
        self.times_put_back += 1
        self._be_down(down_s)
        self.start()

    def _note(self, once_reached: int | None, incoming: Path) -> None:
        ledger = Ledger(Store(incoming), self.clock)
        ledger.open("operator")
        try:
            cause = Cause(actor="operator", correlation_id=self.ids.token())
            ledger.execute(RecordRestore(once_reached=once_reached), cause)
        finally:
            ledger.close()

    def configure(self, configuration: int) -> None:
        """The operator changes the configuration of the living process, which may fail to write it down."""
        try:
            self.life.configure(setting.CONFIGURATIONS[configuration])
        except StoreError:
            return
        except Crash:
            self.configuration = configuration
            self.crash(self._after_crash_s)
        self.configuration = configuration

    def _be_down(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.world.catch_up()

    def arm(self, after: int, down_s: float) -> None:
        """Let the process die at the effect after so many others, and stay down so long."""
        self._after_crash_s = down_s
        self.effects.arm(after)

    def set_wall_clock(self, by_s: float) -> None:
        """The wall clock is wrong by so much more; what is measured by it may be wrong by as much."""
        self.clock.step_wall(timedelta(seconds=by_s))
        self.clock_slack_s += abs(by_s)

    def pass_time(self, seconds: float) -> None:
        """Time goes by, whatever happens in it."""
        end_ms = self.agenda.now_ms + round(seconds * 1000)
        while (left_ms := end_ms - self.agenda.now_ms) > 0:
            try:
                self.agenda.pass_time(left_ms / 1000)
            except Crash:
                self.crash(self._after_crash_s)

    def ask(self, method: str, request: Any, patience_s: float = PATIENCE_S) -> Any:
        """The autoscaler asks; None if the process died before it could answer. Raises: Refused."""
        try:
            answer = self.life.rpc.call(method, request, patience_s)
            self.effects.at("before an answer")
        except Crash:
            self.crash(self._after_crash_s)
            return None
        return answer

    def look(self, method: str, request: Any) -> Any:
        """Somebody looks, and nothing comes of it. Raises: Refused."""
        return self._looking.look(method, request)

    def picture(self) -> Picture:
        """What the autoscaler sees now; nothing while RPCs are not answered."""
        books = self.books
        if self._pictured is None or self._pictured[0] is not books:
            self._pictured = books, take_picture(self.look) if self.is_serving else Picture()
        return self._pictured[1]


def is_billed(item: InstanceRecord) -> bool:
    """The machine costs money."""
    return item.meter.stopped_ms is None


def make_template(directory: Path) -> Path:
    """A database without events, to begin every story with."""
    path = directory / "template.db"
    store = Store(path)
    store.open("template", FakeClock().now())
    store.close()
    return path
