"""F70, F27, F44: Node objects whose machine is gone. Two witnesses, patience, a cap, and every removal in the log."""

from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.typing import EventDict

from app.domain.cluster.commands import AttemptNodeRemoval
from app.domain.cluster.events import NodeRemovalAbandoned, NodeRemovalAttempted, NodeRemoved
from app.domain.cluster.ghosts import ghosts
from app.domain.instance.events import End
from app.errors import ClusterConflict, ClusterForbidden, ClusterUnavailable, RuleViolation

from .yard import FIVE_MINUTES, Yard


def gone(yard: Yard) -> str:
    """A machine that we deleted; its node stays behind, silent since just now."""
    (name,) = yard.house.running()
    yard.join(name)
    yard.house.delete(name)
    yard.house.ticks(3)
    assert yard.house.state(name) == "gone"
    yard.fall_silent(name)
    return name


def evicted(yard: Yard, count: int = 1) -> tuple[str, ...]:
    """Spot machines that were taken away; their nodes are silent since just now."""
    names = yard.house.running(count, "spot")
    for name in names:
        yard.join(name)
    yard.evict(*names)
    for name in names:
        yard.fall_silent(name)
    return names


def test_a_node_whose_machine_we_deleted_goes_after_the_grace(yard: Yard) -> None:
    """Five minutes not ready, to the second; the intent is in the log before the outcome."""
    name = gone(yard)
    since = yard.house.now
    yard.house.clock.advance(FIVE_MINUTES - timedelta(seconds=1))
    yard.job.run()
    assert yard.names() == [name]
    yard.house.clock.advance(1)
    yard.job.run()
    assert yard.names() == []
    node = {"node": name, "uid": f"uid-of-{name}", "instance": name, "node_group": "h100", "end": End.DELETED}
    assert yard.events() == [NodeRemovalAttempted(**node, silent_since=since), NodeRemoved(**node)]
    yard.tend(3)
    assert len(yard.events()) == 2


def test_a_node_whose_machine_was_evicted_goes_at_once(yard: Yard) -> None:
    """Its pods wait for that; the cloud and the node controller have taken their time already."""
    evicted(yard)
    yard.job.run()
    assert yard.names() == []
    assert [event.end for event in yard.events() if isinstance(event, NodeRemoved)] == [End.VANISHED]


def test_a_ready_node_stays_whatever_the_log_says(yard: Yard) -> None:
    """Machine gone by the list, node ready: one of the two is wrong, and nobody knows which."""
    (name,) = yard.house.running()
    yard.join(name)
    yard.evict(name)
    yard.tend(600)
    assert yard.names() == [name]
    assert yard.events() == []


def test_a_ready_node_stays_however_old_its_last_report_is(yard: Yard) -> None:
    """The credentials are of another project, which has none of our machines; the kubelet is late by its own clock.

    How often it reports is set where it runs, and moved by chance; that nobody is at home is the node controller's to
    say, and it does so within a minute.
    """
    (name,) = yard.house.running()
    yard.join(name)
    yard.evict(name)
    yard.house.clock.advance(timedelta(days=1))
    yard.tend(3)
    assert yard.names() == [name]
    assert yard.events() == []
    yard.fall_silent(name)
    yard.tend()
    assert yard.names() == []


@pytest.mark.parametrize(
    ("provider_id", "node"),
    [
        ("aws:///eu-west-1a/i-0abc", None),
        ("hcloud://4711", None),
        ("verda://h100-stranger", None),
        ("", None),
        ("verda://", None),
        ("aws:///{name}", None),
        ("", "same"),
        ("verda://", "same"),
    ],
)
def test_a_node_that_is_not_ours_by_the_log_stays(yard: Yard, provider_id: str, node: str | None) -> None:
    """Another provider's, another cluster's, nobody's: not ready for a day, perhaps with a name of ours. Never."""
    name = gone(yard)
    yard.cluster.drop(name)
    stranger = name if node == "same" else "somebody"
    yard.join(stranger, provider_id=provider_id.format(name=name))
    yard.fall_silent(stranger, timedelta(days=1))
    yard.tend(3)
    assert yard.names() == [stranger]
    assert yard.events() == []


@pytest.mark.parametrize("spelled", ["verda:///{name}", "VERDA://{name}", "verda://{id}", "datacrunch://{id}"])
def test_every_spelling_of_our_provider_ids_is_known(yard: Yard, spelled: str) -> None:
    """Kubelets differ; the log decides, by the instance's name or id."""
    (name,) = yard.house.running()
    instance_id = str(yard.house.instance(name).instance_id)
    yard.join(name, provider_id=spelled.format(name=name, id=instance_id))
    yard.evict(name)
    yard.fall_silent(name, timedelta(minutes=1))
    yard.job.run()
    assert yard.names() == []


@pytest.mark.parametrize("state", ["running", "stopped", "deleting"])
def test_a_node_whose_machine_is_not_proven_gone_stays(yard: Yard, state: str) -> None:
    """Switched off by a person, rebooting, on its way out: not ready for a day is no proof."""
    (name,) = yard.house.running()
    yard.join(name)
    if state == "stopped":
        yard.house.world.change(name, "offline")
        yard.house.look()
    if state == "deleting":
        yard.house.delete(name)
    assert yard.house.state(name) == state
    yard.fall_silent(name, timedelta(days=1))
    yard.tend(3)
    assert yard.names() == [name]


def test_at_most_so_many_in_one_pass_the_lost_ones_first(yard: Yard) -> None:
    """Twelve ghosts, five a pass; among equals the longest silent first."""
    yard.most = 5
    yard.begin()
    old = gone(yard)
    names = evicted(yard, 11)
    yard.house.clock.advance(FIVE_MINUTES)
    yard.job.run()
    assert len(yard.names()) == 7
    assert old in yard.names()
    yard.job.run()
    yard.job.run()
    assert yard.names() == []
    assert yard.cluster.deleted[-1] == old
    assert sorted(yard.cluster.deleted) == sorted([old, *names])


def test_a_dry_run_only_tells_and_tells_once(yard: Yard, lines: list[EventDict]) -> None:
    """Nothing is removed, nothing is in the log of facts, since nothing has happened."""
    yard.dry_run = True
    yard.begin()
    (name,) = evicted(yard)
    yard.house.clock.advance(60)
    yard.tend(5)
    assert yard.names() == [name]
    assert yard.events() == []
    told = [line for line in lines if line["event"].startswith("dry run")]
    assert [(line["node"], line["end"]) for line in told] == [(name, "vanished")]


def test_a_machine_that_came_back_keeps_its_node(yard: Yard) -> None:
    """The cloud shows a lost machine again: it is ours again and live, so its node is none of the clean-up's."""
    (name,) = yard.house.running()
    yard.join(name)
    machine = yard.house.world.alive[name]
    yard.evict(name)
    yard.fall_silent(name, timedelta(minutes=1))
    yard.house.world.add(machine)
    yard.house.look()
    assert yard.house.state(name) == "running"
    yard.tend(3)
    assert yard.names() == [name]


def test_the_decider_believes_the_books_more_than_its_caller(yard: Yard) -> None:
    """The machine came back between the look and the intent."""
    (name,) = evicted(yard)
    owner = yard.house.instance(name)
    node = yard.cluster.node(name)
    assert node is not None
    (ghost,) = ghosts([node], lambda _: owner, yard.house.now + FIVE_MINUTES, FIVE_MINUTES)
    (live,) = yard.house.running()
    wrong = replace(ghost, instance=yard.house.instance(live))
    with pytest.raises(RuleViolation, match="is running: its node stays"):
        yard.house.execute(AttemptNodeRemoval(ghost=wrong))
    assert yard.events() == []


def test_a_live_twin_spares_both(yard: Yard) -> None:
    """Two nodes claim the machine that is gone, one of them is alive."""
    (name,) = evicted(yard)
    yard.join("other", provider_id=f"verda://{name}")
    yard.house.clock.advance(60)
    yard.tend(2)
    assert yard.names() == ["other", name]


def test_a_stale_picture_does_not_kill(yard: Yard) -> None:
    """F44. The picture is old; the node was made anew under its name, and is silent too. A fresh look decides."""
    (name,) = evicted(yard)
    yard.cluster.stale = yard.cluster.nodes()
    yard.cluster.drop(name)
    yard.join(name, uid="another")
    yard.fall_silent(name)
    yard.house.clock.advance(60)
    yard.tend(3)
    assert yard.names() == [name]
    assert yard.events() == []


def test_a_kubelet_that_came_back_unseen_is_spared(yard: Yard) -> None:
    """Same node, ready by now; the picture does not know it yet."""
    (name,) = evicted(yard)
    node = yard.cluster.node(name)
    assert node is not None
    yard.cluster.stale = yard.cluster.nodes()
    yard.house.clock.advance(60)
    yard.cluster.put(replace(node, ready=True, changed_at=yard.house.now))
    yard.tend(3)
    assert yard.names() == [name]


def test_a_conflict_leaves_the_node_and_says_so(yard: Yard) -> None:
    """It changed between the fresh look and the deletion. The next pass judges anew."""
    (name,) = evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.forbidden["delete_node"] = ClusterConflict("the node has changed")
    yard.job.run()
    assert yard.names() == [name]
    assert yard.told() == ["node-removal-attempted", "node-removal-abandoned"]
    assert yard.troubles.reasons() == ()
    yard.cluster.forbidden.clear()
    yard.fall_silent(name)
    yard.job.run()
    assert yard.names() == []
    assert yard.told()[2:] == ["node-removal-attempted", "node-removed"]


def test_what_stays_in_conflict_is_not_attempted_for_ever(yard: Yard) -> None:
    """A webhook that answers 409 whatever is asked: once for each state of the node, and the others go."""
    yard.most = 1
    yard.begin()
    first, _ = sorted(evicted(yard, 2))
    yard.house.clock.advance(60)
    yard.cluster.forbidden[f"delete_node {first}"] = ClusterConflict("409")
    yard.tend(10)
    assert yard.names() == [first]
    attempt = ["node-removal-attempted", "node-removal-abandoned"]
    assert yard.told() == [*attempt, "node-removal-attempted", "node-removed"]
    yard.fall_silent(first)
    yard.tend(10)
    assert yard.told()[4:] == attempt


def test_an_outage_in_the_middle_leaves_an_open_intent(yard: Yard) -> None:
    """Nobody knows whether it was deleted. It was: the next pass looks, and writes the outcome down."""
    (name,) = evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.forbidden["delete_node"] = ClusterUnavailable("reset")
    yard.job.run()
    assert yard.told() == ["node-removal-attempted"]
    assert list(yard.house.books.cluster.removals) == [f"uid-of-{name}"]
    yard.cluster.drop(name)
    yard.restart()
    yard.job.run()
    assert yard.told() == ["node-removal-attempted", "node-removed"]
    assert not list(yard.house.books.cluster.removals)


def test_an_open_intent_is_carried_out_after_a_restart(yard: Yard) -> None:
    """Killed between the intent and the deletion: one intent, one outcome."""
    evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.forbidden["delete_node"] = ClusterUnavailable("killed")
    yard.job.run()
    yard.cluster.forbidden.clear()
    yard.restart()
    yard.job.run()
    assert yard.names() == []
    assert yard.told() == ["node-removal-attempted", "node-removed"]


@pytest.mark.parametrize("why", ["ready again", "dry run"])
def test_an_open_intent_is_dropped_when_it_is_no_longer_right(yard: Yard, why: str) -> None:
    """The node lives again, or the operator has meanwhile asked for a dry run."""
    (name,) = evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.forbidden["delete_node"] = ClusterUnavailable("killed")
    yard.job.run()
    yard.cluster.forbidden.clear()
    if why == "dry run":
        yard.dry_run = True
    else:
        yard.join(name)
    yard.restart()
    yard.tend(2)
    assert yard.names() == [name]
    (_, abandoned) = yard.events()
    assert isinstance(abandoned, NodeRemovalAbandoned)


def test_a_ghost_of_long_ago_is_found_in_the_store(yard: Yard) -> None:
    """The machine ended last week, memory has forgotten it, the log has not. The module is new here."""
    (name,) = evicted(yard)
    yard.house.clock.advance(timedelta(days=7))
    yard.house.housekeeping.run()
    assert name not in yard.house.books.instances
    yard.job.run()
    assert yard.names() == []
    assert yard.told() == ["node-removal-attempted", "node-removed"]


# --- finalizers

FINALIZER = "wrangler.cattle.io/node"


def held(yard: Yard, count: int = 1) -> tuple[str, ...]:
    """Ghosts with the finalizer that k3s and RKE2 put on every node."""
    names = evicted(yard, count)
    for name in names:
        node = yard.cluster.node(name)
        assert node is not None
        yard.cluster.put(replace(node, finalizers=(FINALIZER,)))
    yard.house.clock.advance(60)
    return names


def test_a_node_that_a_finalizer_holds_is_deleted_once(yard: Yard) -> None:
    """One intent, and one outcome when it is really gone; the same over a restart."""
    (name,) = held(yard)
    yard.tend(3)
    yard.restart()
    yard.tend(3)
    assert yard.names() == [name]
    assert yard.cluster.asked == [name]
    assert yard.told() == ["node-removal-attempted"]
    yard.cluster.drop(name)
    yard.tend(2)
    assert yard.told() == ["node-removal-attempted", "node-removed"]
    assert not list(yard.house.books.cluster.removals)


def test_a_node_whose_machine_comes_back_while_a_finalizer_holds_it_goes_all_the_same(yard: Yard) -> None:
    """A deletion cannot be taken back: the outcome is that it is gone, not that it stays."""
    (name,) = held(yard)
    yard.tend()
    node = yard.cluster.node(name)
    assert node is not None
    yard.cluster.put(replace(node, ready=True))
    yard.tend(2)
    yard.cluster.stale = [replace(node, deleting_since=None)]
    yard.tend(2)
    assert yard.told() == ["node-removal-attempted"]
    yard.cluster.drop(name)
    yard.tend()
    assert yard.told() == ["node-removal-attempted", "node-removed"]


def test_nodes_that_are_held_take_nobodys_place(yard: Yard) -> None:
    """Two a pass, four are held: those that may go, go."""
    yard.most = 2
    yard.begin()
    stuck = held(yard, 4)
    yard.tend(4)
    assert sorted(yard.cluster.asked) == sorted(stuck)
    free = evicted(yard, 2)
    yard.tend(2)
    assert sorted(yard.cluster.deleted) == sorted(free)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_node_that_somebody_else_is_deleting_is_left_to_them(
    yard: Yard, lines: list[EventDict], *, dry_run: bool
) -> None:
    """By hand, or by a controller of the cloud's. No intent, and no other wish."""
    yard.dry_run = dry_run
    yard.begin()
    (name,) = held(yard)
    node = yard.cluster.node(name)
    assert node is not None
    yard.cluster.delete_node(node)
    yard.tend(3)
    assert yard.cluster.asked == [name]
    assert yard.events() == []
    assert [line for line in lines if line["event"].startswith("dry run")] == []


def test_a_deletion_begun_after_the_picture_was_taken_is_seen(yard: Yard) -> None:
    """The fresh look decides."""
    (name,) = held(yard)
    yard.cluster.stale = yard.cluster.nodes()
    node = yard.cluster.node(name)
    assert node is not None
    yard.cluster.delete_node(node)
    yard.tend(3)
    assert yard.cluster.asked == [name]
    assert yard.events() == []


def test_a_node_that_is_held_for_long_is_told(yard: Yard) -> None:
    """Five minutes, to the second: who holds it, since when, and what to do."""
    (name,) = held(yard)
    since = yard.house.now
    yard.job.run()
    yard.house.clock.advance(timedelta(minutes=5) - timedelta(seconds=1))
    yard.job.run()
    assert yard.troubles.reasons() == ()
    yard.house.clock.advance(1)
    yard.job.run()
    (reason,) = yard.troubles.reasons()
    assert reason.code == "cluster-refused"
    assert reason.message == (
        f"the cluster side cannot remove nodes: node {name} is being deleted since {since:%Y-%m-%d %H:%M} UTC, held by "
        f"its finalizers ({FINALIZER}): start the controller that set them, or take them off by hand; scaling goes on "
        "without it"
    )
    yard.cluster.drop(name)
    yard.job.run()
    assert yard.troubles.reasons() == ()


# --- the API server is in trouble


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (ClusterUnavailable("the API server cannot be reached"), "cluster-unavailable"),
        (ClusterForbidden("the API server refuses (403)"), "cluster-forbidden"),
    ],
)
def test_without_a_picture_nothing_is_done_and_one_reason_says_why(
    yard: Yard, lines: list[EventDict], trouble: ClusterUnavailable | ClusterForbidden, code: str
) -> None:
    """A hundred passes: one line when it begins, one when it ends; scaling goes on all the time."""
    (name,) = evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.trouble = trouble
    yard.tend(100)
    (reason,) = yard.troubles.reasons()
    assert reason.code == code
    assert reason.message == f"the cluster side cannot list nodes: {trouble.message}; scaling goes on without it"
    assert yard.names() == [name]
    assert yard.house.running(1)
    yard.cluster.trouble = None
    yard.tend(2)
    assert yard.troubles.reasons() == ()
    assert yard.names() == []
    told = [line["event"] for line in lines if line.get("job") == "cluster" and "cluster side" in line["event"]]
    assert told == ["cluster side hindered, scaling goes on", "cluster side works again"]


def test_what_is_not_granted_is_one_reason(yard: Yard, lines: list[EventDict]) -> None:
    """Nodes may be read and not deleted: told once, tried every time, and nothing stays open for ever."""
    evicted(yard)
    yard.house.clock.advance(60)
    yard.cluster.forbidden["delete_node"] = ClusterForbidden('cannot delete resource "nodes"')
    yard.tend(50)
    (reason,) = yard.troubles.reasons()
    assert reason.message.startswith('the cluster side cannot remove nodes: cannot delete resource "nodes"')
    assert len([line for line in lines if "hindered" in line["event"]]) == 1
    assert yard.told() == ["node-removal-attempted"]
    yard.cluster.forbidden.clear()
    yard.tend()
    assert yard.names() == []
    assert yard.troubles.reasons() == ()
