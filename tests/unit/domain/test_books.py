from datetime import timedelta

import pytest

from app.domain.books import Books, evolve
from app.domain.envelope import CloudEvent, Event, InstanceEvent, NodeGroupEvent, Recorded, ServiceEvent
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.commands import IncreaseSize

from .facts import (
    A_ID,
    B_ID,
    CPU,
    CPU_TYPE,
    H100,
    LEADING_TO,
    NEW_DATABASE,
    A,
    B,
    C,
    adopted,
    attempted,
    cancelled,
    catalogue,
    configured,
    created,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    observed,
    refused,
    retired,
    running,
    wanted,
)
from .scenario import CAUSE, NOON


def test_empty_books_know_nothing() -> None:
    """And answer so, without errors."""
    books = Books()
    assert (books.position, books.served_groups, books.served_names) == (0, (), frozenset())
    assert (books.target_size("h100"), list(books.listed_instances())) == (0, [])
    assert books.find("verda://h100-aaaaaaaa", "h100-aaaaaaaa") is None


def test_the_target_size_is_the_number_of_live_instances() -> None:
    """Never a counter of its own: wishes, failures and machines count, deletions and ends do not."""
    story = h100.given(
        wanted(A),
        *running(B, B_ID),
        wanted(C),
        attempted(C),
        refused(C),
        failed(C),
    )
    assert story.books.target_size("h100") == 3
    assert story.given(delete_requested(B)).books.target_size("h100") == 2
    assert story.given(delete_requested(B), gone(B), cancelled(A)).books.target_size("h100") == 1


def test_instances_are_listed_oldest_wish_first() -> None:
    """In an order that never changes, deleting ones among the others."""
    story = h100.given(wanted(B), wanted(A), wanted(C), attempted(A), created(A), delete_requested(A))
    assert [instance.name for instance in story.books.members("h100").listed] == [B, A, C]


def test_what_has_ended_is_not_listed_and_still_found() -> None:
    """A repeated deletion must find it."""
    story = h100.given(*LEADING_TO[InstanceState.GONE])
    assert story.books.members("h100").is_empty
    found = story.books.find(f"verda://{A}", A)
    assert found is not None
    assert found.state is InstanceState.GONE


def test_an_ended_instance_can_be_dropped_from_memory() -> None:
    """By name and by id it is unknown then; the store remembers."""
    books = h100.given(*LEADING_TO[InstanceState.GONE], wanted(B)).books.without_instance(A)
    assert books.find_by_key(A) is None
    assert books.find_by_key(A_ID) is None
    assert [instance.name for instance in books.listed_instances()] == [B]


@pytest.mark.parametrize(
    ("provider_id", "node_name"),
    [
        (f"verda://{A}", A),
        (f"verda:///{A}", "ip-10-0-0-7"),
        (f"VERDA://{A.upper()}", ""),
        (f"verda://{A_ID}", ""),
        (f"datacrunch://{A_ID.upper()}", "x"),
        (f"verda://pending/{A}", f"verda://pending/{A}"),
        ("", A),
        ("verda://", A),
        (A, A),
    ],
)
def test_an_instance_is_found_by_any_of_its_spellings(provider_id: str, node_name: str) -> None:
    """F08, F45: by name, by Verda's id, with or without a provider id."""
    story = h100.given(*running())
    assert story.books.find(provider_id, node_name) == story.instance(A)


@pytest.mark.parametrize(
    ("provider_id", "node_name"), [("aws:///a/h100-aaaaaaaa", A), ("", ""), ("verda://h100", ""), ("k3s://x", "")]
)
def test_a_foreign_node_finds_nothing(provider_id: str, node_name: str) -> None:
    """F07."""
    assert h100.given(*running()).books.find(provider_id, node_name) is None


def test_a_learned_spelling_finds_the_same_instance() -> None:
    """The old one too."""
    story = h100.given(*running(), learned("verda:///fin-01/h100-aaaaaaaa"))
    assert story.books.find("verda:///fin-01/h100-aaaaaaaa", "") == story.instance(A)
    assert story.books.find(f"verda://{A}", "") == story.instance(A)


def test_groups_are_served_in_the_order_they_were_first_configured() -> None:
    """Whatever the configuration's order is now."""
    story = h100.given(catalogue(CPU_TYPE), configured(CPU), configured(H100.model_copy(update={"max_size": 9})))
    assert [group.name for group in story.books.served_groups] == ["h100", "cpu"]
    assert story.books.served_names == {"h100", "cpu"}


def test_a_group_is_served_once_its_type_is_known() -> None:
    """Its template could not be answered before, and an old autoscaler would stop at that."""
    assert NEW_DATABASE.books.served_groups == ()
    assert NEW_DATABASE.given(catalogue(CPU_TYPE)).books.served_groups == ()
    assert NEW_DATABASE.given(catalogue(h100.books.cloud.catalogue["1H100.80S.32V"])).books.served_names == {"h100"}


def test_a_retired_group_only_shrinks_and_vanishes_when_empty() -> None:
    """Minimum zero, maximum what it has."""
    story = h100.given(*running(), wanted(B), retired(instances=2))
    group = story.books.groups["h100"]
    assert story.books.size_limits(group) == (0, 2)
    story = story.given(cancelled(B), delete_requested(A))
    assert story.books.size_limits(group) == (0, 0)
    assert story.books.served_names == {"h100"}
    assert story.given(gone(A)).books.served_names == frozenset()


def test_size_limits_are_the_configured_ones_otherwise() -> None:
    """Even if more is running than the maximum."""
    story = h100.given(configured(H100.model_copy(update={"min_size": 1, "max_size": 2})), *running(), wanted(B))
    story = story.given(wanted(C))
    assert story.books.size_limits(story.books.groups["h100"]) == (1, 2)
    assert story.books.target_size("h100") == 3


def test_members_of_an_unknown_group_are_none() -> None:
    """Not an error."""
    assert h100.books.members("gpu").is_empty
    assert h100.books.members("gpu").listed == ()


def test_an_instance_that_returns_is_listed_again() -> None:
    """In exactly one place."""
    story = h100.given(*running(), lost(), adopted(), observed())
    assert [instance.name for instance in story.books.listed_instances()] == [A]
    assert story.books.target_size("h100") == 1


def test_old_books_never_change() -> None:
    """A reader keeps the version it took; a commit that fails leaves nothing to undo."""
    story = h100.given(*running(), wanted(B))
    old = story.books
    listed = [instance.name for instance in old.members("h100").listed]
    before = repr(old)
    new = story.given(
        IncreaseSize(node_group="h100", delta=1, names=(C,)),
        delete_requested(A),
        gone(A),
        cancelled(B),
        configured(CPU),
        catalogue(CPU_TYPE),
        retired(),
    ).books
    assert repr(old) == before
    assert old.target_size("h100") == 2
    assert [instance.name for instance in old.members("h100").listed] == listed == [A, B]
    assert old.served_names == {"h100"}
    assert new.position == old.position + 8
    assert {instance.name for instance in new.listed_instances()} == {C}


def test_two_futures_of_one_past_do_not_meet() -> None:
    """Persistent maps share what is equal and nothing else."""
    story = h100.given(*running())
    kept, given_back = story.given(wanted(B)).books, story.given(delete_requested(A)).books
    assert (kept.target_size("h100"), given_back.target_size("h100")) == (2, 0)


@pytest.mark.parametrize(
    "event",
    [
        wanted(),
        configured(CPU),
        catalogue(CPU_TYPE),
        lost("h100-zzzzzzzz").model_copy(update={"instance": A}),
    ],
    ids=lambda event: str(event.type),
)
def test_the_position_is_the_last_event_s(event: Event) -> None:
    """Whatever stream it belongs to."""
    story = h100.given(*running())
    assert story.given(event).books.position == story.books.position + 1


def test_each_aggregate_knows_its_place() -> None:
    """Version in its stream and position in the log of what changed it last."""
    story = h100.given(wanted(A), wanted(B), attempted(A))
    base = h100.books.position
    assert (story.instance(A).version, story.instance(A).position, story.instance(A).ordinal) == (
        2,
        base + 3,
        base + 1,
    )
    assert (story.instance(B).version, story.instance(B).position) == (1, base + 2)
    assert story.books.groups["h100"].version == 1
    assert story.given(configured(H100)).books.groups["h100"].version == 2


def test_facts_about_a_group_nobody_configured_change_nothing() -> None:
    """Its stream cannot begin with them; folding them is no error."""
    story = h100.given(retired("gpu"))
    assert "gpu" not in story.books.groups
    assert story.books.position == h100.books.position + 1


class _Strange(Event):
    """An event of no stream we know."""

    type = "strange.happened"
    words = "strange"

    @property
    def stream(self) -> str:
        """Nowhere."""
        return "nowhere"


def test_an_event_that_nobody_folds_is_an_error_not_a_silence() -> None:
    """A forgotten fold would make the books lie."""
    item = Recorded(position=1, stream="nowhere", version=1, recorded_at=NOON, cause=CAUSE, event=_Strange())
    with pytest.raises(TypeError, match=r"strange\.happened"):
        evolve(Books(), item)


def test_every_category_of_events_names_its_stream() -> None:
    """One stream per group and instance, one for the cloud, one for the service."""
    story = h100.given(timedelta(0))
    assert wanted().stream == "instance-h100-aaaaaaaa"
    assert configured(H100).stream == "nodegroup-h100"
    assert catalogue().stream == "cloud"
    assert {"service", "cloud", "nodegroup-h100"} == set(story.versions)
    assert all(issubclass(kind, Event) for kind in (InstanceEvent, NodeGroupEvent, CloudEvent, ServiceEvent))
