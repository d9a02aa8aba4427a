"""Killed at any instant: the log has no gap, the chain holds, and what was acknowledged is there."""

import multiprocessing
import random
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from app.store.reading import reading
from app.store.verify import verify

from . import doomed
from .harness import CA, one_more, opened, reopened, rows

Acknowledged = list[tuple[int, str]]
KILLS = 30


@pytest.fixture(scope="module")
def processes() -> Iterator[multiprocessing.context.ForkServerContext]:
    """Processes that are born with everything imported, so that thirty of them take no minute."""
    context = multiprocessing.get_context("forkserver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        context.set_forkserver_preload([doomed.__name__])
        yield context


def begun(
    processes: multiprocessing.context.ForkServerContext,
    target: Callable[[Path, int, Connection], None],
    path: Path,
    number: int,
) -> tuple[ForkServerProcess, Connection]:
    """A doomed process, and the pipe through which it acknowledges."""
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=target, args=(path, number, there))
    process.start()
    there.close()
    return process, here


def last_words(process: ForkServerProcess, pipe: Connection) -> Acknowledged:
    """Everything that was acknowledged before the end."""
    heard: Acknowledged = []
    with pipe:
        try:
            while True:
                heard.append(pipe.recv())
        except EOFError:
            process.join(20)
    return heard


def findings(path: Path) -> list[str]:
    """What `verify` says."""
    with reading(path) as connection:
        return list(verify(connection))


def test_a_writer_may_be_killed_at_any_instant(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """F49: thirty times in a row on one database, the instants from a seed, each time wherever it happened to be."""
    path, chance = tmp_path / "provider.db", random.Random(49)  # noqa: S311 - reproducible on purpose
    killed = 0
    for number in range(KILLS):
        process, pipe = begun(processes, doomed.tell_for_ever, path, number)
        assert pipe.poll(30)
        process.join(chance.uniform(0, 0.08))
        process.kill()
        heard = last_words(process, pipe)
        killed += process.exitcode == -signal.SIGKILL
        books = reopened(path)
        position, digest = heard[-1]
        assert books.position >= position
        assert rows(path, "SELECT hash FROM events WHERE position = ?", position) == [(digest,)]
        assert rows(path, "SELECT count(*), max(position) FROM events") == [(books.position, books.position)]
        assert findings(path) == []
    assert killed == KILLS


def test_the_first_start_may_be_killed_at_any_statement(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """F59: the next start makes the database as if nothing had been there, whatever half of it was."""
    path, statement, survivors = tmp_path / "provider.db", 1, 0
    while not survivors:
        process, pipe = begun(processes, doomed.die_opening, path, statement)
        survivors = len(last_words(process, pipe))
        assert process.exitcode == (0 if survivors else -signal.SIGKILL)
        statement += 1 + statement // 3
    assert statement > 30
    assert reopened(path).position == 0
    assert findings(path) == []


def test_a_first_start_that_was_killed_is_completed_by_the_next(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """F59: one killed start, then a good one, for instants spread over all of the first."""
    for statement in (1, 2, 10, 25, 40):
        path = tmp_path / str(statement) / "provider.db"
        process, pipe = begun(processes, doomed.die_opening, path, statement)
        assert last_words(process, pipe) == []
        assert process.exitcode == -signal.SIGKILL
        assert reopened(path).position == 0
        assert findings(path) == []


def test_a_command_killed_at_any_statement_happened_wholly_or_not_at_all(
    processes: multiprocessing.context.ForkServerContext, started: Path
) -> None:
    """Events and projections stand or fall together, and nothing was acknowledged that is not there."""
    statement, heard, lengths = 1, Acknowledged(), []
    while not heard:
        process, pipe = begun(processes, doomed.die_appending, started, statement)
        heard = last_words(process, pipe)
        assert findings(started) == []
        lengths.append(reopened(started).position)
        statement += 1
    assert lengths == [6] * (len(lengths) - 1) + [8]
    assert len(lengths) > 8


def test_life_goes_on_after_a_kill(processes: multiprocessing.context.ForkServerContext, started: Path) -> None:
    """The next process serves and writes on from there."""
    process, pipe = begun(processes, doomed.die_appending, started, 5)
    last_words(process, pipe)
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        assert ledger.books.target_size("gpu") == 1
