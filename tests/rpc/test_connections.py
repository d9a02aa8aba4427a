"""Connections that are kept for hours, as the autoscaler keeps its own."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from app.rpc.server import RpcServer
from tests.store.harness import opened

from .serving import serving

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _PING, _GOAWAY = 4, 6, 7
"""Types of HTTP/2 frames, RFC 9113, section 6."""
_ACK: Final = 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RpcServer]:
    """A server on an empty database."""
    with opened(tmp_path / "provider.db") as ledger, serving(ledger) as server:
        yield server


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A frame of the connection itself, without flags."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, 0, 0) + payload


def frames(connection: socket.socket) -> Iterator[tuple[int, int]]:
    """Kind and flags of every frame that comes in."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(9)) == 9:
            (length,) = struct.unpack(">I", b"\0" + head[:3])
            stream.read(length)
            yield head[3], head[4]


def test_pings_on_an_idle_connection_do_not_end_it(server: RpcServer) -> None:
    """F18: servers that police pings say GOAWAY at the third, and the call that comes after the pause fails."""
    pings = 20
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(_PREFACE + frame(_SETTINGS))
        connection.sendall(frame(_PING, b"are you?"))
        answered = 0
        for kind, flags in frames(connection):
            assert kind != _GOAWAY, f"the server hangs up after {answered} pings"
            if kind == _PING and flags & _ACK:
                answered += 1
                if answered == pings:
                    break
                connection.sendall(frame(_PING, b"are you?"))
    assert answered == pings
