from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain import observation
from app.domain.cloud import CloudReachable, CloudUnreachable, OrphanDetected
from app.domain.envelope import Event
from app.domain.instance.commands import AttemptCreate
from app.domain.instance.events import ErrorClass, FailureCode, Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines, Readopt
from app.domain.offering import Contract

from .facts import (
    A_ID,
    B_ID,
    C_ID,
    CPU,
    CPU_TYPE,
    H100,
    IMAGE,
    LEADING_TO,
    NEW_DATABASE,
    OS_VOLUME,
    A,
    B,
    C,
    adopted,
    attempted,
    cancelled,
    catalogue,
    claimed,
    configured,
    created,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    machine,
    observed,
    orphan,
    refused,
    retired,
    ruled_out,
    running,
    surplus,
    unknown,
    wanted,
)
from .scenario import NOON, Scenario

SECOND = timedelta(seconds=1)
LAG = 90 * SECOND
REACHABLE = CloudReachable(backend="simulator")
THEIRS = "ca:v1 cluster=c1 installation=inst2 group=h100"


def listing(*machines: Machine, claim: bool = False) -> ObserveMachines:
    """A complete listing of the project."""
    return ObserveMachines(machines=machines, backend="simulator", claim=claim)


def seen(state: InstanceState, status: str, news: str, name: str = A, node_group: str = "h100") -> Event:
    """The fact that a machine as `machine()` makes them looks like this now."""
    return observed(
        state,
        status,
        name,
        node_group=node_group,
        news=news,
        contract=Contract.ON_DEMAND,
        location="FIN-01",
        price="2.29",
        created_at=NOON,
        os_volume_id=OS_VOLUME,
        volume_ids=(OS_VOLUME,),
    )


def watched(status: str = "running") -> Scenario:
    """A's machine exists and was listed with this status."""
    return h100.given(*LEADING_TO[InstanceState.PROVISIONING], listing(machine(status=status)))


# --- known machines


def test_a_machine_seen_for_the_first_time_is_news_in_full() -> None:
    """Its price and volume are the cloud's from here on."""
    h100.given(*LEADING_TO[InstanceState.PROVISIONING]).when(listing(machine(status="ordered"))).then(
        seen(
            InstanceState.PROVISIONING, "ordered", f"the cloud says ordered, OS volume {OS_VOLUME}, volumes {OS_VOLUME}"
        )
    )


def test_ten_thousand_unchanged_listings_write_nothing() -> None:
    """An observation is a fact only when it changes something."""
    story = watched()
    for _ in range(100):
        story = story.given(10 * SECOND)
        story.when(listing(machine())).then_nothing()


@pytest.mark.parametrize(
    ("changed", "news"),
    [
        (replace(machine(), status="offline"), "the cloud says offline"),
        (replace(machine(), price_per_hour=Decimal("2.10")), "price 2.10"),
        (replace(machine(), ip="10.0.0.7"), "address 10.0.0.7"),
        (replace(machine(), location="FIN-03"), "location FIN-03"),
        (replace(machine(), contract=Contract.SPOT), "contract spot"),
        (replace(machine(), os_volume_id="v2", volume_ids=("v2", "v3")), "OS volume v2, volumes v2 v3"),
    ],
)
def test_each_change_is_told_in_words(changed: Machine, news: str) -> None:
    """The log says what was new, not only what is."""
    (event,) = watched().when(listing(changed)).events
    assert event.model_dump()["news"] == news


def test_what_a_listing_leaves_out_is_no_news() -> None:
    """A replica that does not know the price yet has not made the machine free of charge."""
    bare = replace(
        machine(), price_per_hour=None, contract=None, location=None, os_volume_id=None, volume_ids=(), created_at=None
    )
    watched().when(listing(bare)).then_nothing()


@pytest.mark.parametrize(
    ("status", "provisioning", "running_", "stopped", "deleting"),
    [
        ("new", "provisioning", "running", "stopped", "deleting"),
        ("ordered", "provisioning", "running", "stopped", "deleting"),
        ("pending", "provisioning", "running", "stopped", "deleting"),
        ("provisioning", "provisioning", "running", "stopped", "deleting"),
        ("validating", "provisioning", "running", "stopped", "deleting"),
        ("running", "running", "running", "running", "deleting"),
        ("offline", "provisioning", "stopped", "stopped", "deleting"),
        ("deleting", "provisioning", "running", "stopped", "deleting"),
        ("error", "failed", "running", "stopped", "deleting"),
        ("installation_failed", "failed", "running", "stopped", "deleting"),
        ("discontinued", "provisioning", "running", "stopped", "deleting"),
        ("notfound", "provisioning", "running", "stopped", "deleting"),
        ("unknown", "provisioning", "running", "stopped", "deleting"),
        ("migrating", "provisioning", "running", "stopped", "deleting"),
    ],
)
def test_a_status_word_moves_a_machine_forward_and_never_back(
    status: str, provisioning: str, running_: str, stopped: str, deleting: str
) -> None:
    """F52: stale lists and new words change nothing for the autoscaler; deletion wins over all of them."""
    befores = (InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED, InstanceState.DELETING)
    for before, after in zip(befores, (provisioning, running_, stopped, deleting), strict=True):
        story = h100.given(*LEADING_TO[before], listing(machine(status=status)))
        assert story.instance(A).state == after
        assert story.instance(A).machine_status == status


def test_an_unknown_word_is_one_event_and_changes_no_state() -> None:
    """F52: ten minutes of `migrating`, then running again."""
    story = watched()
    (event,) = story.when(listing(machine(status="migrating"))).events
    story = story.given(event)
    assert story.instance(A).state is InstanceState.RUNNING
    story.when(listing(machine(status="migrating"))).then_nothing()
    assert story.given(listing(machine())).instance(A).machine_status == "running"


def test_a_stale_listing_does_not_take_running_back() -> None:
    """One replica lags: the node has joined and must not become a creating one."""
    assert watched().given(listing(machine(status="provisioning"))).instance(A).state is InstanceState.RUNNING


def test_a_machine_that_breaks_while_it_is_made_has_failed() -> None:
    """The autoscaler is told at once and deletes it; it exists, so its deletion reaches the cloud."""
    story = watched("provisioning")
    after = story.when(listing(machine(status="installation_failed"))).then(
        seen(InstanceState.PROVISIONING, "installation_failed", "the cloud says installation_failed"),
        failed(
            A,
            ErrorClass.OTHER,
            FailureCode.MACHINE_ERROR,
            "Verda accepted the order and then reported the machine as installation_failed",
        ),
    )
    assert after.instance(A).may_exist
    after.when(listing(machine(status="installation_failed"))).then_nothing()


# --- accepted, then no capacity


def test_an_order_taken_and_never_placed_is_a_stock_out_like_any_other() -> None:
    """F19: the second of the two signals: 202 and then no_capacity; the next place is tried, the record deleted."""
    words = "Verda accepted the order and then reported the machine as no_capacity; add locations or another group"
    after = (
        watched("ordered")
        .when(listing(machine(status="no_capacity")))
        .then(
            seen(InstanceState.PROVISIONING, "no_capacity", "the cloud says no_capacity"),
            surplus(A_ID, A, "never placed"),
            refused(message=words),
        )
    )
    wish = after.instance(A)
    assert (wish.state, wish.instance_id, wish.created_at) == (InstanceState.REQUESTED, None, None)
    assert wish.cost_until(NOON + timedelta(hours=1)) is None
    after.when(AttemptCreate(instance=A)).then(attempted(attempt=2, location="FIN-03"))


def test_the_record_that_was_never_placed_is_not_taken_for_the_next_attempt_s_machine() -> None:
    """It stays listed for a while, under the same host name."""
    story = watched("ordered").given(listing(machine(status="no_capacity")), AttemptCreate(instance=A))
    story.when(listing(machine(status="no_capacity"))).then_nothing()
    story = story.given(created(A, B_ID))
    after = story.given(listing(machine(status="no_capacity"), machine(B_ID, status="running")))
    assert after.instance(A).state is InstanceState.RUNNING
    assert after.instance(A).instance_id == B_ID


def test_the_last_place_without_stock_fails_the_wish() -> None:
    """F19: out of resources; the record is deleted when the autoscaler collects the failure."""
    one_place = H100.model_copy(update={"locations": ("FIN-01",)})
    story = watched("ordered").given(configured(one_place), listing(machine(status="no_capacity")))
    wish = story.instance(A)
    assert (wish.state, wish.error_class, wish.error_code) == (
        InstanceState.FAILED,
        ErrorClass.OUT_OF_RESOURCES,
        FailureCode.OUT_OF_STOCK,
    )
    assert wish.instance_id == A_ID


def test_an_adopted_machine_that_was_never_placed_fails() -> None:
    """Whoever ordered it knew the ladder; we do not."""
    story = h100.given(adopted(), observed(InstanceState.PROVISIONING, "ordered"))
    story = story.given(listing(machine(status="no_capacity")))
    assert story.instance(A).state is InstanceState.FAILED
    assert story.instance(A).error_class is ErrorClass.OUT_OF_RESOURCES


# --- machines whose create call was not answered


@pytest.mark.parametrize(
    "past",
    [
        (wanted(), attempted()),
        (wanted(), attempted(), unknown()),
        (wanted(), attempted(), unknown(), ruled_out()),
    ],
    ids=["not answered yet", "unknown", "ruled out too early"],
)
def test_a_machine_is_found_by_host_name_and_mark(past: tuple[Event, ...]) -> None:
    """F46: a crash between the order and its record neither loses nor doubles the machine."""
    story = h100.given(*past)
    after = story.when(listing(machine(status="ordered"))).then(created(found=Found.LOOKED_UP))
    assert after.instance(A).state is InstanceState.PROVISIONING


def test_a_machine_found_for_a_wish_being_deleted_stays_deleting() -> None:
    """Deleted while submitting: now there is something to delete."""
    after = h100.given(wanted(), attempted(), unknown(), delete_requested()).given(listing(machine()))
    assert after.instance(A).state is InstanceState.DELETING
    assert after.instance(A).instance_id == A_ID


def test_a_machine_found_for_a_failed_wish_stays_failed() -> None:
    """The failure was told; now its deletion reaches the cloud."""
    after = h100.given(wanted(), attempted(), unknown(), failed()).given(listing(machine()))
    assert (after.instance(A).state, after.instance(A).instance_id) == (InstanceState.FAILED, A_ID)


@pytest.mark.parametrize("description", ["", "my own h100", THEIRS], ids=["none", "a human's", "another's"])
def test_the_host_name_alone_makes_no_machine_ours(description: str) -> None:
    """Humans copy names; never adopt by name alone."""
    story = h100.given(orphan(A_ID), wanted(), attempted(), unknown())
    story.when(listing(machine(description=description))).then_nothing()


def test_of_two_machines_for_one_order_the_first_made_is_kept() -> None:
    """An unknown create that was executed twice."""
    first = machine(B_ID, created_at=NOON)
    second = machine(A_ID, created_at=NOON + SECOND)
    after = h100.given(wanted(), attempted(), unknown()).given(listing(second, first))
    assert after.instance(A).instance_id == B_ID
    (found,) = observation.surplus(after.books, (second, first))
    assert found == (after.instance(A), second)


@pytest.mark.parametrize("status", ["discontinued", "notfound", "deleted"])
def test_a_record_of_a_machine_that_is_no_more_is_not_the_order_s_machine(status: str) -> None:
    """Where one of two is dead, the living one is kept; where only a dead one is, there is none."""
    story = h100.given(wanted(), attempted(), unknown())
    dead = machine(A_ID, status=status, created_at=NOON)
    story.when(listing(dead)).then_nothing()
    assert story.given(listing(dead, machine(B_ID, created_at=NOON + SECOND))).instance(A).instance_id == B_ID


def test_a_machine_too_many_is_not_found_again() -> None:
    """It is on its way out already."""
    story = h100.given(*LEADING_TO[InstanceState.CANCELLED], surplus(A_ID, A, "released"))
    story.when(listing(machine())).then_nothing()
    story = h100.given(surplus(A_ID, A, "duplicate"), wanted(), attempted(), unknown())
    story.when(listing(machine())).then_nothing()


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


def test_a_dead_record_of_ours_is_not_adopted() -> None:
    """Nothing runs and nothing bills."""
    h100.when(listing(machine(status="discontinued"))).then_nothing()


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
            REACHABLE,
        )
    )
    assert after.books.installation.claimed == ("inst2",)
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
    story.when(listing(machine(description=THEIRS), machine(C_ID, C, description=THEIRS))).then(orphan())


def test_a_lost_predecessor_without_machines_keeps_nobody_waiting() -> None:
    """The first listing of a new project is empty, and then we serve."""
    NEW_DATABASE.when(listing()).then(REACHABLE)


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


# --- what is missing


def test_a_machine_missing_from_one_listing_is_named_and_nothing_more() -> None:
    """F25: absence is not evidence; the job looks closer."""
    story = watched()
    story.when(listing()).then_nothing()
    assert observation.absent(story.books, (), NOON, LAG) == (story.instance(A),)
    assert observation.absent(story.books, (machine(),), NOON, LAG) == ()


@pytest.mark.parametrize("status", ["discontinued", "notfound"])
def test_a_machine_listed_as_no_more_counts_as_missing(status: str) -> None:
    """F27: the list itself says that it was evicted; the look-up has the last word."""
    story = watched()
    assert observation.absent(story.books, (machine(status=status),), NOON, LAG) == (story.instance(A),)


def test_a_newborn_is_not_missed_before_lists_may_be_expected_to_show_it() -> None:
    """F48: the list lags by a minute or so."""
    story = h100.given(*LEADING_TO[InstanceState.PROVISIONING])
    assert observation.absent(story.books, (), NOON + 89 * SECOND, LAG) == ()
    assert observation.absent(story.books, (), NOON + 90 * SECOND, LAG) == (story.instance(A),)


@pytest.mark.parametrize(
    "state",
    [
        InstanceState.REQUESTED,
        InstanceState.SUBMITTING,
        InstanceState.FAILED,
        InstanceState.GONE,
        InstanceState.LOST,
        InstanceState.CANCELLED,
    ],
)
def test_what_has_no_machine_or_has_ended_is_not_missed(state: InstanceState) -> None:
    """A failed one stays listed until it is collected, whatever its machine does."""
    story = h100.given(*LEADING_TO[state])
    assert observation.absent(story.books, (), NOON + timedelta(hours=1), LAG) == ()


def test_a_deleting_machine_is_missed_at_once_after_it_was_listed() -> None:
    """Its absence is what we are waiting for."""
    story = watched().given(delete_requested())
    assert observation.absent(story.books, (), NOON, LAG) == (story.instance(A),)


# --- what is there too often


@pytest.mark.parametrize(
    "past", [(*LEADING_TO[InstanceState.CANCELLED],), (*LEADING_TO[InstanceState.GONE],)], ids=["cancelled", "gone"]
)
def test_a_machine_of_a_name_that_was_let_go_is_one_too_many(past: tuple[Event, ...]) -> None:
    """A released slot produced a machine after all, or a deleted one is back: named, and only looked at closer."""
    story = h100.given(*past)
    story.when(listing(machine())).then_nothing()
    assert observation.surplus(story.books, (machine(),)) == ((story.instance(A), machine()),)


def test_an_instance_s_own_machine_is_not_one_too_many() -> None:
    """Nor one whose own is still being looked for."""
    assert observation.surplus(watched().books, (machine(),)) == ()
    story = h100.given(wanted(), attempted(), unknown())
    assert observation.surplus(story.books, (machine(),)) == ()


def test_a_machine_without_our_mark_is_never_one_too_many() -> None:
    """A human's machine with a copied host name is not deleted."""
    assert observation.surplus(watched().books, (machine(B_ID, description=""),)) == ()
    assert observation.surplus(watched().books, (machine(B_ID, description=THEIRS),)) == ()


def test_what_is_known_to_be_too_many_is_not_named_again() -> None:
    """Its deletion is under way."""
    story = watched().given(surplus(B_ID, A, "duplicate"))
    assert observation.surplus(story.books, (machine(B_ID),)) == ()


# --- what came back


def test_a_machine_believed_lost_and_listed_again_is_named() -> None:
    """A stale list, or a human who restored it; dead records are not a return."""
    story = h100.given(*LEADING_TO[InstanceState.LOST])
    story.when(listing(machine())).then_nothing()
    assert observation.returned(story.books, (machine(),)) == ((story.instance(A), machine()),)
    assert observation.returned(story.books, (machine(status="discontinued"),)) == ()
    assert observation.returned(story.books, (machine(B_ID),)) == ()
    assert observation.returned(watched().books, (machine(),)) == ()


def test_a_returned_machine_is_taken_back_under_the_id_that_kubernetes_knows() -> None:
    """It runs, costs money and may carry pods; with another provider id its node would look unregistered."""
    story = h100.given(*running(), learned("verda:///h100-aaaaaaaa"), lost())
    after = story.when(Readopt(instance=A, machine=machine())).then(
        adopted(provider_id="verda:///h100-aaaaaaaa"), seen(InstanceState.RUNNING, "running", "the cloud says running")
    )
    assert after.instance(A).provider_id == "verda:///h100-aaaaaaaa"
    assert after.books.target_size("h100") == 1
    assert after.instance(A).end_reason is None


@pytest.mark.parametrize("state", [state for state in InstanceState if state is not InstanceState.LOST])
def test_only_what_was_lost_is_taken_back(state: InstanceState) -> None:
    """What we deleted stays deleted."""
    h100.given(*LEADING_TO[state]).when(Readopt(instance=A, machine=machine())).then_nothing()
    h100.when(Readopt(instance=A, machine=machine())).then_nothing()


def test_the_books_stay_right_through_loss_return_and_deletion() -> None:
    """Each step moves the instance to exactly one place."""
    story = h100.given(*running(), lost(), Readopt(instance=A, machine=machine()), delete_requested())
    assert story.books.target_size("h100") == 0
    assert [instance.name for instance in story.books.members("h100").listed] == [A]
    assert story.given(gone()).books.members("h100").is_empty
    assert story.given(cancelled()).books.members("h100").is_empty


# --- what is in doubt


def test_an_order_in_doubt_is_unseen_until_a_machine_of_its_name_is_listed() -> None:
    """Whoever made that machine: nothing is ruled out while there may be one."""
    story = h100.given(wanted(), attempted(), unknown())
    assert observation.unseen(story.books, (), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(B_ID, B),), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(),), NOON) == ()
    assert observation.unseen(story.books, (machine(description=""),), NOON) == ()


def test_a_listing_taken_before_the_doubt_says_nothing_about_it() -> None:
    """It was under way when the order was made."""
    story = h100.given(wanted(), attempted(), SECOND, unknown())
    assert observation.unseen(story.books, (), NOON) == ()
    assert observation.unseen(story.books, (), NOON + SECOND) == (story.instance(A),)


def test_a_dead_record_or_one_that_is_known_to_be_another_s_hides_nothing() -> None:
    """The record that was never placed stays listed under the same name."""
    story = h100.given(wanted(), attempted(), unknown(), surplus(B_ID, A, "never placed"))
    shown = (machine(status="discontinued"), machine(B_ID, status="no_capacity"))
    assert observation.unseen(story.books, shown, NOON) == (story.instance(A),)


@pytest.mark.parametrize("state", InstanceState)
def test_only_doubt_is_unseen(state: InstanceState) -> None:
    """An order under way is waited for; all others have an answer."""
    assert observation.unseen(h100.given(*LEADING_TO[state]).books, (), NOON) == ()
