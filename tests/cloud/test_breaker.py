from datetime import timedelta

import pytest

from app.cli.ports import free_port
from app.clock import FakeClock
from app.cloud.breaker import Breaker, BreakerState
from app.errors import NotSent

from .conftest import MakeCloud
from .toy import Reply, Toy, close, hang, html, ok, raw


class Scene:
    """A breaker that opens after three failures, for one second at first."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.breaker = Breaker(clock=self.clock, threshold=3)

    def fail(self, times: int = 1) -> None:
        """Exchanges that bring no answer."""
        for _ in range(times):
            with self.breaker.attempt():
                pass

    def succeed(self) -> None:
        """An exchange that does."""
        with self.breaker.attempt() as succeeded:
            succeeded()

    def pause_s(self) -> float:
        """Seconds until the next probe."""
        with pytest.raises(NotSent) as raised, self.breaker.attempt():
            pass
        assert raised.value.code == "circuit_open"
        assert raised.value.retry_after is not None
        return raised.value.retry_after.total_seconds()


def test_it_opens_after_failures_in_a_row_only() -> None:
    """One success in between proves that the network works."""
    scene = Scene()
    scene.fail(2)
    scene.succeed()
    scene.fail(2)
    assert scene.breaker.state is BreakerState.CLOSED
    scene.fail()
    assert (scene.breaker.state, scene.breaker.failures) == (BreakerState.OPEN, 3)
    assert scene.pause_s() == 1


def test_the_pause_doubles_up_to_half_a_minute() -> None:
    """Longer would delay deletions, and every minute of a machine costs."""
    scene = Scene()
    scene.fail(3)
    pauses = []
    for _ in range(8):
        pauses.append(scene.pause_s())
        scene.clock.advance(pauses[-1])
        scene.fail()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_one_call_probes_while_the_others_still_fail() -> None:
    """A crowd at the door would only fill up with timeouts."""
    scene = Scene()
    scene.fail(3)
    scene.clock.advance(1)
    with scene.breaker.attempt() as succeeded:
        assert scene.breaker.state is BreakerState.PROBING
        scene.pause_s()
        succeeded()
    assert (scene.breaker.state, scene.breaker.failures) == (BreakerState.CLOSED, 0)


def test_after_recovery_it_begins_anew() -> None:
    """An outage last week must not make today's pause longer."""
    scene = Scene()
    scene.fail(3)
    scene.clock.advance(1)
    scene.fail()
    scene.clock.advance(2)
    scene.succeed()
    scene.fail(3)
    assert scene.pause_s() == 1


def test_an_exception_counts_as_failure() -> None:
    """Whatever it is: a probe that never reported would keep the breaker shut for ever."""
    scene = Scene()
    for _ in range(3):
        with pytest.raises(OSError, match="broken"), scene.breaker.attempt():
            raise OSError("broken")
    assert scene.breaker.state is BreakerState.OPEN


def test_calls_that_began_before_do_not_lengthen_the_pause() -> None:
    """They say nothing new: many threads meet one outage."""
    scene = Scene()
    with scene.breaker.attempt(), scene.breaker.attempt():
        scene.fail(3)
    assert scene.pause_s() == 1


def test_a_network_that_is_down_is_not_tried_for_a_while(make_cloud: MakeCloud) -> None:
    """Nobody waits for timeouts that are known to come."""
    clock = FakeClock()
    cloud = make_cloud(clock=clock, base_url=f"http://127.0.0.1:{free_port()}/v1")
    codes = []
    for _ in range(7):
        with pytest.raises(NotSent) as raised:
            cloud.list_instances()
        codes.append(raised.value.code)
        clock.advance(0.1)
        cloud._client._authentication._failure_until = 0  # the login's own memory is tested elsewhere
    assert codes == ["connection_failed"] * 5 + ["circuit_open"] * 2
    assert cloud.breaker.state is BreakerState.OPEN


@pytest.mark.parametrize("reply", [html(502), raw(b"", 500), raw(b"Rate limit!", 429, Retry_After="0")])
def test_what_the_api_says_does_not_open_it(toy: Toy, make_cloud: MakeCloud, reply: Reply) -> None:
    """An error is an answer, and one path's trouble must not stop deletions on another."""
    clock = FakeClock()
    toy.on("GET", "/instances", reply)
    cloud = make_cloud(clock=clock, wait=clock.advance, timeout=timedelta(seconds=30))
    for _ in range(8):
        with pytest.raises(Exception, match=r"HTTP 50|rate limit"):
            cloud.list_instances()
    assert cloud.breaker.state is BreakerState.CLOSED


@pytest.mark.parametrize("reply", [close, hang])
def test_an_api_that_does_not_answer_opens_it_and_an_answer_closes_it(
    toy: Toy, make_cloud: MakeCloud, reply: Reply
) -> None:
    """Connecting is not enough: a hanging API costs the same timeouts as a dead one."""
    cloud = make_cloud(breaker_threshold=2, timeout=timedelta(seconds=0.2))
    toy.on("GET", "/instances", reply, reply, ok([]))
    for _ in range(2):
        with pytest.raises(Exception, match=r"in time|broke"):
            cloud.list_instances()
    states = [cloud.breaker.state]
    cloud.breaker._closed_again_at = 0
    assert cloud.list_instances() == []
    states.append(cloud.breaker.state)
    assert states == [BreakerState.OPEN, BreakerState.CLOSED]
