"""Ports for processes that are told theirs before they start."""

import contextlib
import itertools
import secrets
import socket
from pathlib import Path

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Where Linux takes the local ports of outgoing connections from (ip(7)): lowest and highest."""

_LOWEST = 10_000
_FEWEST = 1_000
_turns = itertools.count(secrets.randbelow(1 << 16))
"""Each port in its turn, from a start of its own for every process: two do not hand out the same one at a time."""


def undisturbed_ports() -> range:
    """Ports that no outgoing connection gets by chance; none where the system does not say, or leaves too few."""
    try:
        end = int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except OSError:
        return range(0)
    return range(_LOWEST, end) if end - _LOWEST >= _FEWEST else range(0)


def free_port() -> int:
    """A loopback port that nobody listens on, for a process that is told of it and listens later.

    A port that the system chooses is one of those for outgoing connections, and can be gone a moment later; that is
    what it comes to only where `undisturbed_ports` has none.

    Raises:
        OSError: there is none.
    """
    ports = undisturbed_ports()
    for _ in range(max(len(ports), 1)):
        candidate = ports[next(_turns) % len(ports)] if ports else 0
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", candidate)) as probe:
            port: int = probe.getsockname()[1]
            return port
    raise OSError("no port of 127.0.0.1 can be listened on")
