"""How the picture is kept over lines that are cut: by proxies all the time, by a server that is going down, at once."""

from collections.abc import Iterator, Mapping, Sequence

import httpx2
import pytest

from app.clock import FakeClock
from app.errors import ClusterDown, ClusterError, ClusterForbidden, ClusterUnavailable
from app.kube.api import Api, Expired, Json, Limits
from app.kube.watch import NODES, NodeWatch

from .apiserver import node_json

OPENED: Json = {"type": "OPENED"}
BOOKMARK: Json = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
ODD: Json = {"type": "MODIFIED", "object": {"kind": "Node", "metadata": {"name": "gpu-a"}}}
CUT = ClusterDown("the API server cannot be reached: RemoteProtocolError")

Told = Json | ClusterError | float


class Line(Api):
    """A cluster of one node, and one watch after the other: what each tells, how it breaks, seconds that pass."""

    def __init__(self, clock: FakeClock) -> None:
        self._time = clock
        super().__init__(httpx2.Client(), clock, Limits())
        self.script: list[Sequence[Told]] = []

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """The list."""
        assert (path, params) == (NODES, {"limit": "500"})
        node = node_json("gpu-a")
        node["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        return {"metadata": {"resourceVersion": "5"}, "items": [node]}

    def watch(self, path: str, params: Mapping[str, str]) -> Iterator[Json]:
        """The next of the script, from what was told last."""
        assert (path, params["resourceVersion"]) in {(NODES, "5"), (NODES, "7")}
        for told in self.script.pop(0):
            if isinstance(told, ClusterError):
                raise told
            if isinstance(told, float):
                self._time.advance(told)
            else:
                yield told


class Keeper:
    """A picture and the line it is kept over."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.line = Line(self.clock)
        self.watch = NodeWatch(self.line, self.clock)

    def keep(self, *told: Told) -> float:
        """One watch; how long to wait for the next."""
        self.line.script.append(told)
        self.watch._keep()
        return self.watch._pause_s()

    def trouble(self) -> ClusterError | None:
        """What those are told who ask for the picture."""
        try:
            assert [node.name for node in self.watch.nodes()] == ["gpu-a"]
        except ClusterError as error:
            return error
        return None


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """Nothing was listed yet."""
    keeper = Keeper()
    yield keeper
    keeper.line.close()


def test_a_watch_that_told_something_may_be_cut_as_often_as_it_likes(keeper: Keeper) -> None:
    """A proxy ends every connection in the middle: it is opened again at once, and nobody is troubled."""
    for _ in range(20):
        assert keeper.keep(OPENED, BOOKMARK, CUT) == 0.0
        assert keeper.trouble() is None
    assert keeper.watch.lists == 1


def test_a_quiet_watch_that_is_cut_after_a_while_is_no_failure(keeper: Keeper) -> None:
    """A load balancer's idle time-out of half a minute, in a cluster in which nothing happens before a bookmark."""
    for _ in range(20):
        assert keeper.keep(OPENED, 30.0, CUT) == 0.0
        assert keeper.trouble() is None


def test_a_quiet_watch_that_ends_after_a_while_is_no_failure(keeper: Keeper) -> None:
    """As one that is left because nothing was heard for too long."""
    assert [keeper.keep(OPENED, 90.0) for _ in range(9)] == [0.0] * 9


def test_what_failed_before_is_forgotten_by_a_watch_that_told_something(keeper: Keeper) -> None:
    """Pauses begin anew, however that watch ends; trouble is told when it cannot be opened again."""
    assert [keeper.keep(CUT) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert keeper.trouble() is CUT
    assert keeper.keep(OPENED, BOOKMARK, CUT) == 0.0
    assert keeper.trouble() is None
    assert keeper.keep(CUT) == 0.5
    assert keeper.trouble() is CUT


@pytest.mark.parametrize("end", [(CUT,), ()], ids=["cut", "ended"])
def test_a_watch_that_is_over_at_once_is_a_failure(keeper: Keeper, end: Sequence[Told]) -> None:
    """It was opened, and told nothing: not again at full speed."""
    assert [keeper.keep(OPENED, *end) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert keeper.trouble() is (CUT if end else None)


@pytest.mark.parametrize("refusal", [CUT, ClusterForbidden("cannot watch")], ids=["slow", "forbidden"])
def test_time_before_a_watch_is_open_is_not_its_life(keeper: Keeper, refusal: ClusterError) -> None:
    """A server that takes its time to refuse."""
    assert [keeper.keep(20.0, refusal) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert keeper.trouble() is refusal


def test_a_change_that_cannot_be_read_is_told(keeper: Keeper) -> None:
    """After others: the watch begins again behind them, and meets it first."""
    assert keeper.keep(OPENED, BOOKMARK, ODD) == 0.0
    assert [keeper.keep(OPENED, ODD) for _ in range(2)] == [0.5, 1.0]
    assert type(keeper.trouble()) is ClusterUnavailable


def test_a_version_that_is_too_old_is_listed_anew(keeper: Keeper) -> None:
    """Also at the end of a watch that told something, and after a pause that is short then."""
    assert [keeper.keep(OPENED, Expired("too old")) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert keeper.keep(OPENED, BOOKMARK, Expired("too old")) == 0.5
    assert keeper.watch.lists == 4
    assert keeper.trouble() is None
    assert keeper.keep(OPENED, BOOKMARK) == 0.0
    assert keeper.watch.lists == 5
