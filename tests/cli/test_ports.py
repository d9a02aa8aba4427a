"""Ports that are handed out before anybody listens on them."""

import itertools
import socket
from pathlib import Path

import pytest

from app.cli import ports
from app.cli.ports import free_port, undisturbed_ports


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of most machines, whatever this one has."""
    told = tmp_path / "usual"
    told.write_text("32768\t60999\n")
    monkeypatch.setattr(ports, "_OUTGOING", told)


@pytest.mark.usefixtures("usual")
def test_no_port_is_one_of_those_for_outgoing_connections() -> None:
    """A connection of anybody's would take it before the process that is told of it listens."""
    assert undisturbed_ports() == range(10_000, 32_768)
    given = [free_port() for _ in range(200)]
    assert len(set(given)) == 200
    assert all(10_000 <= port < 32_768 for port in given)


@pytest.mark.usefixtures("usual")
def test_a_port_in_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is taken."""
    first = free_port()
    with socket.create_server(("127.0.0.1", first)):
        monkeypatch.setattr(ports, "_turns", iter([first - 10_000, first - 9_999, first - 9_998, first - 9_997]))
        assert first < free_port() <= first + 3


@pytest.mark.usefixtures("usual")
def test_where_none_can_be_had_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is tried once, not for ever."""
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        only = range(taken.getsockname()[1], taken.getsockname()[1] + 1)
        monkeypatch.setattr(ports, "undisturbed_ports", lambda: only)
        monkeypatch.setattr(ports, "_turns", itertools.count())
        with pytest.raises(OSError, match="no port of"):
            free_port()


@pytest.mark.parametrize("said", ["1024\t65535\n", None])
def test_where_there_is_no_such_range_the_system_chooses(
    said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A narrow machine, or one that is no Linux."""
    told = tmp_path / "range"
    if said is not None:
        told.write_text(said)
    monkeypatch.setattr(ports, "_OUTGOING", told)
    assert undisturbed_ports() == range(0)
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] > 0
