"""Which kind of file system a path is on. SQLite needs one that keeps its promises about locks and shared memory."""

import re
from pathlib import Path

from app.errors import StoreUnavailable

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK = frozenset(
    {"afs", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"}
)
"""File systems whose locks are unreliable or whose shared memory is not shared, as SQLite's own manual warns."""


def network_filesystem(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """The type of the network file system that a path is on, None on a local one or where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place = path.resolve()
    nearest, kind = -1, None
    for line in lines:
        # 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw: see proc(5)
        before, _, after = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= nearest:
            nearest, kind = len(point.parts), after.split(" ")[0]
    return kind if kind in _NETWORK else None


def refuse_network(path: Path, trusted: frozenset[str], mounts: Path = _MOUNTS) -> None:
    """Keep a database off network file systems that the operator does not answer for.

    Raises:
        StoreUnavailable: the path is on one.
    """
    kind = network_filesystem(path, mounts)
    if kind is not None and kind not in trusted:
        raise StoreUnavailable(
            f"{path.parent} is on a network file system ({kind}), where two processes may both believe to be the only "
            f"writer: use a block volume, or answer for it: database_network_filesystems: [{kind}] in the "
            f"configuration, --database-network-filesystems {kind} on the command line of restore and claim",
            filesystem=kind,
        )
