"""What the cluster does not let be done to one object holds up nothing else: neither other objects nor other work."""

from datetime import timedelta

import pytest

from app.clock import FakeClock
from app.errors import ClusterConflict, ClusterDown, ClusterError, ClusterForbidden, ClusterRefused, ClusterUnavailable
from app.kube.jobs.turns import Turns
from tests.reconcile.house import spec

from .yard import Yard

WEBHOOK = "the API server refuses (400): admission webhook denied the request"
TROUBLES = [
    ClusterRefused(WEBHOOK),
    ClusterForbidden("the API server refuses (403): denied by a policy"),
    ClusterUnavailable("the API server answers 500: failed calling webhook"),
    ClusterDown("the API server is too slow: PATCH"),
]
ROLE = "node-role.kubernetes.io/gpu"


def nameless(yard: Yard, count: int) -> tuple[str, ...]:
    """Machines whose nodes have no provider id."""
    names = yard.house.running(count)
    for name in names:
        yard.join(name, provider_id="", boot_id="b007")
    return names


def evicted(yard: Yard, count: int) -> tuple[str, ...]:
    """Spot machines that were taken away; their nodes are silent since just now."""
    names = yard.house.running(count, "spot")
    for name in names:
        yard.join(name)
    yard.evict(*names)
    for name in names:
        yard.fall_silent(name)
    return names


def provider_ids(yard: Yard) -> dict[str, str]:
    """Of the nodes there are."""
    return {node.name: node.provider_id for node in yard.cluster.nodes()}


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: type(trouble).__name__)
def test_changes_that_are_refused_stop_no_other_work(yard: Yard, trouble: ClusterError) -> None:
    """Nobody may patch a node, pass after pass; ghosts go all the same, events are written, tokens deleted."""
    (name,) = nameless(yard, 1)
    (ghost,) = evicted(yard, 1)
    yard.cluster.forbidden["change_node"] = trouble
    yard.mint.mint(name, timedelta(minutes=1))
    yard.house.clock.advance(60)
    yard.tend(2)
    (reason,) = yard.troubles.reasons()
    assert reason.message == f"the cluster side cannot set provider ids: {trouble.message}; scaling goes on without it"
    assert yard.cluster.deleted == [ghost]
    assert "NodeRemoved" in [one.reason for one in yard.cluster.announced]
    assert yard.cluster.tokens == {}


@pytest.mark.parametrize("trouble", TROUBLES[:3], ids=lambda trouble: type(trouble).__name__)
def test_a_node_that_may_not_be_given_its_provider_id_stops_no_other(yard: Yard, trouble: ClusterError) -> None:
    """The first of three."""
    first, *others = nameless(yard, 3)
    yard.cluster.forbidden[f"change_node {first}"] = trouble
    yard.tend()
    assert provider_ids(yard) == {first: ""} | {name: f"verda://{name}" for name in others}
    assert [reason.code for reason in yard.troubles.reasons()] == [trouble.code]
    yard.cluster.forbidden.clear()
    yard.tend()
    assert provider_ids(yard)[first] == f"verda://{first}"
    assert yard.troubles.reasons() == ()


@pytest.mark.parametrize("trouble", TROUBLES[:3], ids=lambda trouble: type(trouble).__name__)
def test_a_node_that_may_not_be_prepared_stops_no_other(yard: Yard, trouble: ClusterError) -> None:
    """The first of two."""
    yard.labels = True
    yard.begin()
    yard.house.configure(spec(labels={ROLE: ""}), yard.house.books.groups["spot"].spec)
    first, second = yard.house.running(2)
    for name in (first, second):
        yard.join(name)
    yard.cluster.forbidden[f"change_node {first}"] = trouble
    yard.tend(2)
    assert {node.name for node in yard.cluster.nodes() if ROLE in node.labels} == {second}
    assert [reason.code for reason in yard.troubles.reasons()] == [trouble.code]


@pytest.mark.parametrize("trouble", TROUBLES[:3], ids=lambda trouble: type(trouble).__name__)
def test_a_ghost_that_may_not_be_removed_stops_no_other(yard: Yard, trouble: ClusterError) -> None:
    """One a pass: the intent of the first stays open, is tried in its turn, and takes nobody's place."""
    yard.most = 1
    yard.begin()
    first, *others = sorted(evicted(yard, 3))
    yard.house.clock.advance(60)
    yard.cluster.forbidden[f"delete_node {first}"] = trouble
    yard.tend(3)
    assert yard.cluster.deleted == others
    assert [reason.code for reason in yard.troubles.reasons()] == []
    yard.tend()
    assert [reason.code for reason in yard.troubles.reasons()] == [trouble.code]
    assert yard.told() == ["node-removal-attempted"] + ["node-removal-attempted", "node-removed"] * 2
    yard.cluster.forbidden.clear()
    yard.tend()
    assert yard.cluster.deleted == [*others, first]
    assert yard.told()[5:] == ["node-removed"]


def test_a_token_and_an_event_that_are_refused_stop_no_others(yard: Yard) -> None:
    """The first of two, each."""
    first, second = yard.house.running(2)
    tokens = [yard.mint.mint(name, timedelta(minutes=1))[:6] for name in (first, second)]
    yard.cluster.forbidden[f"delete_token {tokens[0]}"] = ClusterRefused(WEBHOOK)
    yard.cluster.forbidden[f"announce {first}"] = ClusterRefused(WEBHOOK)
    yard.evict(first, second)
    yard.tend()
    assert list(yard.cluster.tokens) == tokens[:1]
    assert [one.subject.name for one in yard.cluster.announced] == [second]
    yard.cluster.forbidden.clear()
    yard.tend()
    assert yard.cluster.tokens == {}
    assert [one.subject.name for one in yard.cluster.announced] == [second, first]


def test_a_token_that_is_refused_was_not_made(yard: Yard) -> None:
    """Proven, so that nothing is left to look for."""
    (name,) = yard.house.running()
    yard.cluster.forbidden["create_token"] = ClusterRefused(WEBHOOK)
    with pytest.raises(ClusterRefused):
        yard.mint.mint(name, timedelta(hours=1))
    assert yard.told() == ["join-token-attempted", "join-token-revoked"]


# --- the row


class Row:
    """Things in a row, some of which are refused; `seen` is the order in which they had their turn."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.turns = Turns(clock=self.clock)
        self.refused: dict[str, ClusterError] = {}
        self.takes = 0
        self.seen: list[str] = []

    def serve(self, names: str, most: int = 10) -> str:
        """Each letter is a thing; who had a turn."""
        self.seen = []
        self.turns.serve({name: name for name in names}, most, self._act)
        return "".join(self.seen)

    def refuse(self, names: str, most: int = 10) -> str:
        """As `serve`, and something is refused."""
        with pytest.raises(ClusterError) as caught:
            self.serve(names, most)
        assert caught.value in self.refused.values()
        return "".join(self.seen)

    def _act(self, name: str) -> None:
        self.seen.append(name)
        self.clock.advance(self.takes)
        if name in self.refused:
            raise self.refused[name]


def test_who_was_refused_goes_to_the_end_of_the_row() -> None:
    """However many are refused for good, everybody else has a turn, and they have theirs again."""
    row = Row()
    row.refused = {name: ClusterRefused(name) for name in "ab"}
    assert row.refuse("abcd", 2) == "ab"
    assert row.serve("abcd", 2) == "cd"
    assert row.refuse("abe", 2) == "ea"
    assert row.refuse("ab", 1) == "b"
    row.refused = {}
    assert row.serve("ab") == "ab"
    assert row.serve("ab") == "ab"


def test_nobody_waits_in_vain_when_nobody_answers() -> None:
    """The rest of the row is not tried; next time it comes first."""
    row = Row()
    row.refused = {"a": ClusterDown("a")}
    assert row.refuse("abc") == "a"
    assert row.refuse("abc") == "bca"


def test_a_row_of_refusals_that_take_long_ends() -> None:
    """A webhook that hangs for ten seconds: those that are left come first next time."""
    row = Row()
    row.takes = 10
    row.refused = {name: ClusterUnavailable(name) for name in "abcdef"}
    assert row.refuse("abcdef") == "abcd"
    assert row.refuse("abcdef") == "efab"


def test_a_row_of_slow_answers_ends() -> None:
    """A webhook that lets everything pass after ten seconds: what is left waits for the next picture."""
    row = Row()
    row.takes = 10
    assert row.serve("abcdef") == "abcd"


def test_a_lost_race_is_no_trouble_and_keeps_its_place() -> None:
    """Somebody was faster: that says nothing about the next time."""
    row = Row()
    row.refused = {"a": ClusterConflict("a")}
    assert row.serve("abc") == "abc"
    assert row.serve("abc") == "abc"
