"""Network file systems, where a lock may be held twice: told from the system's list of mounts."""

from pathlib import Path

import pytest

from app.errors import StoreUnavailable
from app.store.mounts import network_filesystem, refuse_network
from app.store.store import Store

from .harness import LONG_AGO

MOUNTS = """\
21 1 0:20 / / rw,relatime - overlay overlay rw,lowerdir=/l
22 21 0:21 / /proc rw,nosuid shared:5 - proc proc rw
30 21 8:1 / /data rw,relatime shared:1 - ext4 /dev/sda1 rw
31 30 0:50 / /data/nfs rw,relatime shared:2 master:1 - nfs4 server:/export rw,vers=4.2
32 31 8:2 / /data/nfs/local rw - xfs /dev/sdb1 rw
33 21 0:51 / /mnt/my\\040share rw - cifs //server/share rw
34 21 0:52 / /mnt/\u00fcber rw - fuse.sshfs user@host: rw
35 21 0:53 / /mnt/over rw - nfs server:/x rw
36 35 8:3 / /mnt/over rw - ext4 /dev/sdc1 rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """A list of mounts as the kernel writes it."""
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/provider.db", None),
        ("/data/provider.db", None),
        ("/data/nfs/provider.db", "nfs4"),
        ("/data/nfs/deep/er/provider.db", "nfs4"),
        ("/data/nfs2/provider.db", None),
        ("/data/nfs/local/provider.db", None),
        ("/mnt/my share/provider.db", "cifs"),
        ("/mnt/\u00fcber/provider.db", "fuse.sshfs"),
        ("/mnt/over/provider.db", None),
    ],
)
def test_the_mount_nearest_to_the_path_counts(mounts: Path, path: str, kind: str | None) -> None:
    """Of two mounted over each other, the later one."""
    assert network_filesystem(Path(path), mounts) == kind


def test_a_network_file_system_is_refused_with_the_reason(mounts: Path) -> None:
    """F54: on it SQLite says 'database is locked' for ever, or never when it should."""
    with pytest.raises(StoreUnavailable, match=r"/data/nfs is on a network file system \(nfs4\).*use a block volume"):
        refuse_network(Path("/data/nfs/provider.db"), frozenset(), mounts)


def test_an_operator_may_answer_for_a_network_file_system(mounts: Path) -> None:
    """By its type, so that answering for one is not answering for all."""
    refuse_network(Path("/data/nfs/provider.db"), frozenset({"nfs4"}), mounts)
    with pytest.raises(StoreUnavailable):
        refuse_network(Path("/data/nfs/provider.db"), frozenset({"nfs"}), mounts)


def test_a_system_that_does_not_tell_is_believed(tmp_path: Path) -> None:
    """Not every kernel has the list."""
    assert network_filesystem(tmp_path, tmp_path / "nothing") is None


def test_the_disk_of_this_test_is_local(tmp_path: Path) -> None:
    """The real list can be read, and a start passes."""
    store = Store(tmp_path / "provider.db")
    assert store.open("the test", LONG_AGO).position == 0
    store.close()
