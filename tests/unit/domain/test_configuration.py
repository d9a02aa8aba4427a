from datetime import timedelta

from app.domain.instance.events import CancelReason
from app.domain.instance.lifecycle import InstanceState
from app.domain.service import ConfigurationLoaded

from .facts import (
    A_ID,
    CPU,
    H100,
    A,
    B,
    C,
    attempted,
    cancelled,
    configured,
    created,
    delete_requested,
    gone,
    h100,
    retired,
    running,
    wanted,
)
from .wishes import SAME_SHA, both, configuration, delete, increase, scale_down


def test_the_same_configuration_again_changes_nothing() -> None:
    """Every start applies it."""
    h100.when(configuration(H100)).then_nothing()


def test_a_new_group_is_configured() -> None:
    """And the configuration that brought it is in the log by its checksum."""
    h100.when(configuration(H100, CPU, sha256="5b")).then(
        ConfigurationLoaded(sha256="5b", cluster_name="c1", node_groups=2), configured(CPU)
    )


def test_a_new_cluster_name_is_a_new_configuration() -> None:
    """It is in every mark from then on."""
    h100.when(configuration(H100, cluster_name="c2")).then(
        ConfigurationLoaded(sha256=SAME_SHA, cluster_name="c2", node_groups=1)
    )


def test_a_changed_group_is_configured_again_and_keeps_its_place() -> None:
    """The order in which groups are listed never changes."""
    changed = H100.model_copy(update={"max_size": 9})
    outcome = both.when(configuration(CPU, changed))
    assert outcome.events == (configured(changed),)
    assert [group.name for group in outcome.after.books.served_groups] == ["h100", "cpu"]
    assert outcome.after.books.groups["h100"].ordinal == h100.books.groups["h100"].ordinal


def test_a_group_that_left_is_retired_and_its_unsent_wishes_are_dropped() -> None:
    """F12: machines stay and are served; nothing new is bought for a group that nobody wants."""
    story = h100.given(*running(), wanted(B), attempted(B), wanted(C))
    after = story.when(configuration()).then(retired(instances=2), cancelled(C, CancelReason.GROUP_RETIRED))
    assert [group.name for group in after.books.served_groups] == ["h100"]
    assert after.books.size_limits(after.books.groups["h100"]) == (0, 2)
    after.when(configuration()).then_nothing()


def test_a_retired_group_can_be_drained_and_is_gone_with_its_last_instance() -> None:
    """F12: dropping it at once would make its machines unmanaged, and nobody would ever remove them."""
    story = h100.given(*running(), configuration())
    assert story.books.size_limits(story.books.groups["h100"]) == (0, 1)
    story = story.when(delete(A)).then(scale_down(1, 0, A), delete_requested(A))
    assert [group.name for group in story.books.served_groups] == ["h100"]
    assert story.books.size_limits(story.books.groups["h100"]) == (0, 0)
    assert story.given(gone(A)).books.served_groups == ()


def test_a_group_without_instances_disappears_at_once() -> None:
    """There is nothing to drain."""
    assert h100.given(configuration()).books.served_groups == ()


def test_a_retired_group_that_returns_may_grow_again() -> None:
    """Its machines are members as before, under its old place in the order."""
    story = both.given(*running(), configuration(CPU))
    after = story.when(configuration(H100, CPU)).then(configured(H100))
    assert not after.books.groups["h100"].retired
    assert after.books.size_limits(after.books.groups["h100"]) == (0, 4)
    assert [group.name for group in after.books.served_groups] == ["h100", "cpu"]
    assert after.when(increase(1, B)).refusal is None


def test_a_wish_that_was_being_ordered_when_its_group_retired_is_kept() -> None:
    """Its machine may exist already."""
    after = h100.given(wanted(), attempted(), timedelta(seconds=1)).when(configuration()).then(retired(instances=1))
    assert after.instance(A).state is InstanceState.SUBMITTING
    assert after.given(created(A, A_ID)).instance(A).state is InstanceState.PROVISIONING
