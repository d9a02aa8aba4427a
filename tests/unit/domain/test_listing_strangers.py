from dataclasses import replace
from decimal import Decimal

import pytest

from app.domain import observation
from app.domain.cloud import CloudUnreachable, OrphanDetected, OrphanOutcome
from app.domain.instance.events import InstanceCancelled
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import BooksReverted

from .facts import (
    A_ID,
    B_ID,
    C_ID,
    CPU,
    CPU_TYPE,
    H100,
    IMAGE,
    NEW_DATABASE,
    A,
    B,
    C,
    adopted,
    catalogue,
    claimed,
    configured,
    h100,
    machine,
    orphan,
    orphan_settled,
    retired,
    wanted,
)
from .listings import REACHABLE, SECOND, THEIRS, listing, seen, watched
from .scenario import NOON

# --- machines that are not in the books


def test_a_machine_of_ours_that_the_books_lack_is_adopted() -> None:
    """An older backup was restored: what was created since is taken in, running and all."""
    after = h100.when(listing(machine())).then(
        adopted(), seen(InstanceState.RUNNING, "running", "the cloud says running")
    )
    assert after.books.target_size("h100") == 1
    after.when(listing(machine())).then_nothing()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("running", "running"),
        ("offline", "stopped"),
        ("provisioning", "provisioning"),
        ("unknown", "provisioning"),
        ("error", "provisioning"),
    ],
)
def test_an_adopted_machine_is_in_the_state_that_the_cloud_shows(status: str, state: str) -> None:
    """A broken one fails at the next look, as any other does."""
    story = h100.given(listing(machine(status=status)))
    assert story.instance(A).state == state
    if status == "error":
        assert story.given(listing(machine(status=status))).instance(A).state is InstanceState.FAILED


def test_an_adopted_machine_of_an_unknown_group_brings_the_group_retired() -> None:
    """F51: it is served, so that the autoscaler can drain it, and never grows."""
    stranger = machine(B_ID, "old-bbbbbbbb", description="ca:v1 cluster=c1 installation=inst1 group=old")
    spec = NodeGroupSpec(
        name="old", min_size=0, max_size=0, instance_type="1H100.80S.32V", image=IMAGE, locations=("unknown",)
    )
    second = machine(C_ID, "old-cccccccc", description="ca:v1 cluster=c1 installation=inst1 group=old")
    after = h100.when(listing(stranger, second)).then(
        configured(spec),
        retired("old"),
        adopted("old-bbbbbbbb", B_ID, "old"),
        seen(InstanceState.RUNNING, "running", "the cloud says running", "old-bbbbbbbb", "old"),
        adopted("old-cccccccc", C_ID, "old"),
        seen(InstanceState.RUNNING, "running", "the cloud says running", "old-cccccccc", "old"),
    )
    assert [group.name for group in after.books.served_groups] == ["h100", "old"]
    assert after.books.size_limits(after.books.groups["old"]) == (0, 2)


def test_an_adopted_machine_answers_to_its_group_s_provider_id() -> None:
    """Its node registered with that spelling."""
    spec = H100.model_copy(update={"provider_id_template": "datacrunch://{instance_id}"})
    assert h100.given(configured(spec), listing(machine())).instance(A).provider_id == f"datacrunch://{A_ID}"


def test_the_longest_group_name_decides_not_its_prefix() -> None:
    """F13: gpu and gpu-a100 each get their own; the other cluster's is never listed, adopted or deleted."""
    gpu = CPU.model_copy(update={"name": "gpu"})
    a100 = CPU.model_copy(update={"name": "gpu-a100"})
    story = h100.given(catalogue(CPU_TYPE), configured(gpu), configured(a100))
    after = story.given(
        listing(
            machine(A_ID, "gpu-a100-abcdefgh", description="ca:v1 cluster=c1 installation=inst1 group=gpu-a100"),
            machine(B_ID, "gpu-abcdefgh", description="ca:v1 cluster=c1 installation=inst1 group=gpu"),
            machine(C_ID, "gpu-a100-zzzzzzzz", description="ca:v1 cluster=c10 installation=inst10 group=gpu-a100"),
        )
    )
    assert {name: instance.node_group for name, instance in after.books.instances.items()} == {
        "gpu-a100-abcdefgh": "gpu-a100",
        "gpu-abcdefgh": "gpu",
    }
    assert not after.books.cloud.orphans


@pytest.mark.parametrize(
    ("hostname", "group"),
    [
        ("my-workstation", "h100"),
        ("h100-aaaa", "h100"),
        ("h100-aaaaaaaa-copy", "h100"),
        ("xh100-aaaaaaaa", "h100"),
        ("h100-AAAAAAAA", "h100"),
        ("H100-aaaaaaaa", "H100"),
        ("a.b-aaaaaaaa", "a.b"),
    ],
)
def test_a_copied_mark_makes_no_machine_ours(hostname: str, group: str) -> None:
    """Somebody pasted our description: mark and name form must both fit, else it is reported and left alone."""
    mark = f"ca:v1 cluster=c1 installation=inst1 group={group}"
    outcome = h100.when(listing(machine(C_ID, hostname, description=mark)))
    assert outcome.events == (
        OrphanDetected(
            instance_id=C_ID,
            hostname=hostname,
            installation="inst1",
            node_group=group,
            price_per_hour=Decimal("2.29"),
            reason="carries our mark, but its name is not one that we gave",
        ),
    )
    outcome.after.when(listing(machine(C_ID, hostname, description=mark))).then_nothing()


def test_of_two_unknown_machines_with_one_name_the_first_made_is_adopted() -> None:
    """The database was lost while there were two: keep the first, delete the other, whatever the list's order."""
    first = machine(B_ID, created_at=NOON)
    second = machine(A_ID, created_at=NOON + SECOND)
    for order in ((first, second), (second, first)):
        after = h100.given(listing(*order))
        assert after.instance(A).instance_id == B_ID
        assert [found.instance_id for _, found in observation.surplus(after.books, order)] == [A_ID]


@pytest.mark.parametrize("status", ["discontinued", "no_capacity"])
def test_a_dead_record_of_ours_is_not_adopted(status: str) -> None:
    """Nothing runs and nothing bills; an order that was never placed is not placed again for a wish nobody knows."""
    h100.when(listing(machine(status=status))).then_nothing()


def test_the_record_of_an_order_never_placed_does_not_hide_the_machine() -> None:
    """Of those with one name the first that is a machine is adopted."""
    left = machine(A_ID, status="no_capacity", created_at=NOON)
    made = machine(B_ID, created_at=NOON + SECOND)
    assert h100.given(listing(left, made)).instance(A).instance_id == B_ID


@pytest.mark.parametrize(
    "description",
    [
        "",
        "web server",
        "ca:v1",
        "ca:v2 cluster=c1 installation=inst1 group=h100",
        "ca:v1 cluster=c10 installation=inst10 group=h100",
        "ca:v1 cluster=C1 installation=inst10 group=h100",
    ],
)
def test_machines_of_others_are_neither_listed_nor_reported(description: str) -> None:
    """Everything without our mark is none of our business."""
    h100.when(listing(machine(description=description))).then_nothing()


def test_a_machine_of_another_installation_of_our_cluster_is_reported_once_and_never_touched() -> None:
    """Two installations with one cluster name: its cost is seen, its machine is not ours to take or delete."""
    theirs = machine(C_ID, C, description=THEIRS)
    after = h100.when(listing(theirs)).then(orphan())
    after.when(listing(theirs)).then_nothing()
    assert observation.surplus(after.books, (theirs,)) == ()
    assert after.books.target_size("h100") == 0


def test_a_wish_whose_machine_is_listed_is_not_counted_among_the_forgotten() -> None:
    """The books are older than the truth: of two wishes one has come true, and the other is dropped."""
    story = h100.given(wanted(A), wanted(B))
    look = replace(listing(machine(A_ID, A), machine(C_ID, C)), began_at=story.books.position)
    events = story.when(look).events
    assert [event.dropped for event in events if isinstance(event, BooksReverted)] == [1]
    assert [event.instance for event in events if isinstance(event, InstanceCancelled)] == [B]


# --- claiming


def test_a_new_database_does_not_serve_while_machines_wait_to_be_claimed() -> None:
    """Nobody can know whether the predecessor's database was lost or another cluster has the same name."""
    theirs = machine(C_ID, C, description=THEIRS)
    after = NEW_DATABASE.when(listing(theirs)).then(orphan())
    assert after.books.cloud.first_reached_at is None
    after.when(listing(theirs)).then_nothing()


def test_a_claim_takes_the_machines_over_in_the_same_instant() -> None:
    """F51: first the claim, then the machines, then we serve."""
    theirs = machine(description=THEIRS)
    after = (
        NEW_DATABASE.given(orphan(A_ID, A))
        .when(listing(theirs, claim=True))
        .then(
            claimed("inst2"),
            adopted(),
            seen(InstanceState.RUNNING, "running", "the cloud says running"),
            orphan_settled(OrphanOutcome.ADOPTED, "0.000000", A_ID, A),
            REACHABLE,
        )
    )
    assert after.books.installation.claimed == ("inst2",)
    assert not after.books.cloud.orphans
    assert after.books.target_size("h100") == 1
    after.when(listing(theirs, claim=True)).then_nothing()


def test_a_claim_takes_every_predecessor_over() -> None:
    """The database was lost twice."""
    first = machine(A_ID, A, description="ca:v1 cluster=c1 installation=inst3 group=h100")
    second = machine(B_ID, B, description=THEIRS)
    after = NEW_DATABASE.given(listing(first, second, claim=True))
    assert after.books.installation.claimed == ("inst2", "inst3")
    assert after.books.target_size("h100") == 2


def test_another_cluster_s_machines_are_never_claimed() -> None:
    """F13: c1 never matches c10."""
    other = machine(C_ID, C, description="ca:v1 cluster=c10 installation=inst10 group=h100")
    NEW_DATABASE.when(listing(other, claim=True)).then(REACHABLE)


def test_a_database_that_has_seen_the_cloud_claims_nothing() -> None:
    """The permission was for the first look; from then on they are somebody else's."""
    h100.when(listing(machine(C_ID, C, description=THEIRS), claim=True)).then(orphan())


def test_a_new_machine_of_a_claimed_installation_is_an_alarm() -> None:
    """It proves that the other one lives: hands off."""
    story = NEW_DATABASE.given(listing(machine(description=THEIRS), claim=True))
    lives = "made by an installation that was taken over and yet goes on: two providers serve this cluster"
    story.when(listing(machine(description=THEIRS), machine(C_ID, C, description=THEIRS))).then(orphan(reason=lives))


def test_a_lost_predecessor_without_machines_keeps_nobody_waiting() -> None:
    """The first listing of a new project is empty, and then we serve."""
    NEW_DATABASE.when(listing()).then(REACHABLE)
    NEW_DATABASE.when(listing(machine(status="no_capacity", description=THEIRS))).then(REACHABLE)


# --- reachability


def test_a_listing_ends_an_outage() -> None:
    """One event for the outage, one for its end."""
    story = h100.given(CloudUnreachable(code="timeout", message="no answer"))
    after = story.when(listing()).then(REACHABLE)
    assert after.books.cloud.reachable is True
    assert after.books.cloud.first_reached_at == NOON


def test_looking_at_one_machine_does_not_end_an_outage() -> None:
    """While listing fails and look-ups work, the log must not fill with outages that end and begin."""
    story = watched().given(CloudUnreachable(code="timeout", message="no answer"))
    story.when(replace(listing(machine()), complete=False)).then_nothing()
    outcome = story.when(replace(listing(machine(status="offline")), complete=False))
    assert [event.type for event in outcome.events] == ["instance.state-observed"]
