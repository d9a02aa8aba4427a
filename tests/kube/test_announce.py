"""What `kubectl get events` shows: few facts, on the object an operator would look at, each once."""

from datetime import timedelta

from app.domain.cloud import RecordUnreachable
from app.errors import ClusterForbidden

from .yard import US, Yard


def told(yard: Yard) -> list[tuple[str, str, bool]]:
    """Object, reason, and whether it is a warning."""
    return [(one.subject.name, one.reason, one.is_warning) for one in yard.cluster.announced]


def test_a_lost_machine_and_its_node(yard: Yard) -> None:
    """In the words of the log."""
    (name,) = yard.house.running()
    yard.join(name)
    yard.evict(name)
    yard.fall_silent(name)
    yard.tend(3)
    assert told(yard) == [(name, "MachineLost", True), (name, "NodeRemoved", False)]
    assert yard.cluster.announced[1].message == f"node {name} is removed: its machine was vanished"


def test_what_concerns_no_node_is_on_the_provider(yard: Yard) -> None:
    """The cloud is out of reach."""
    yard.house.execute(RecordUnreachable(code="timeout", message="no answer"))
    yard.tend()
    (one,) = yard.cluster.announced
    assert (one.subject, one.reason, one.is_warning) == (US, "CloudUnreachable", True)
    assert one.message == "the cloud does not answer, timeout: no answer"


def test_everyday_facts_are_not_announced(yard: Yard) -> None:
    """Wishes, orders, machines that run: that is what the log is for."""
    (name,) = yard.house.running()
    yard.join(name)
    yard.tend(5)
    assert told(yard) == []


def test_without_the_right_they_wait_and_the_rest_is_done(yard: Yard) -> None:
    """One reason says why; the newest two hundred are kept."""
    yard.cluster.forbidden["announce"] = ClusterForbidden("cannot create events")
    (name,) = yard.house.running()
    yard.join(name)
    yard.evict(name)
    yard.fall_silent(name, timedelta(minutes=1))
    yard.tend(3)
    assert yard.names() == []
    (reason,) = yard.troubles.reasons()
    assert reason.message.startswith("the cluster side cannot write events: cannot create events")
    yard.cluster.forbidden.clear()
    yard.tend()
    assert told(yard) == [(name, "MachineLost", True), (name, "NodeRemoved", False)]
    for _ in range(150):
        yard.house.execute(RecordUnreachable(code="timeout", message="no answer"))
        yard.house.look()
    assert len(yard.announce._waiting) == 200
