from dataclasses import replace

import pytest

from app.domain.envelope import Event
from app.domain.service import InstallationCreated, ServiceStarted, StartService
from app.errors import RuleViolation

from .facts import (
    A_ID,
    H100,
    H100_TYPE,
    NEW_DATABASE,
    A,
    attempted,
    catalogue,
    configured,
    created,
    delete_requested,
    gone,
    retired,
    surplus,
    wanted,
)
from .scenario import Scenario
from .wishes import increase

START = StartService(
    installation_id="inst9", version="0.2.0", host="pod-1", pid=7, sqlite_version="3.51.3", backend="simulator"
)


def started(epoch: int) -> ServiceStarted:
    """The fact that this process writes now."""
    return ServiceStarted(
        epoch=epoch, version="0.2.0", host="pod-1", pid=7, sqlite_version="3.51.3", backend="simulator"
    )


def test_the_first_start_makes_the_installation() -> None:
    """Its id is made with the database and kept in the log: it is in every mark."""
    after = Scenario().when(START).then(InstallationCreated(installation_id="inst9"), started(1))
    assert after.books.installation.installation_id == "inst9"
    assert after.books.installation.epoch == 1


def test_later_starts_keep_the_installation_and_count_the_writers() -> None:
    """A fresh id on each start would make orphans of all machines."""
    after = NEW_DATABASE.when(START).then(started(2))
    assert after.books.installation.installation_id == "inst1"
    assert after.when(START).then(started(3)).books.installation.epoch == 3


def test_the_books_of_one_cloud_are_not_used_with_another() -> None:
    """Simulated machines would look lost at the real one, and real ones at the simulator."""
    real = StartService(
        installation_id="inst9", version="0.2.0", host="pod-1", pid=7, sqlite_version="3.51.3", backend="verda"
    )
    refusal = NEW_DATABASE.when(real).then_refused(RuleViolation)
    assert "give each its own --database" in refusal.message


ON_ACCOUNT, ON_OUR_OWN = replace(START, backend="verda"), replace(START, backend="webhook")
renting = Scenario().given(ON_ACCOUNT, catalogue(H100_TYPE), configured(H100))


def test_an_installation_of_own_machines_may_get_an_account() -> None:
    """Nothing in its books is another cloud's. It may not get simulated machines."""
    own = Scenario().given(ON_OUR_OWN)
    assert own.given(ON_ACCOUNT).books.installation.backend == "verda"
    own.when(START).then_refused(RuleViolation)


def test_an_installation_that_rents_nothing_any_more_needs_no_account() -> None:
    """Neither for groups nor for wishes that were never sent, nor for machines that are gone."""
    past = renting.given(wanted(), attempted(), created(), delete_requested(), gone(), retired())
    assert past.given(ON_OUR_OWN).books.installation.backend == "webhook"
    unsent = renting.given(increase(1, A))
    assert unsent.given(ON_OUR_OWN).books.installation.backend == "webhook"


@pytest.mark.parametrize(
    "past",
    [
        (wanted(), attempted(), created(), retired()),
        (wanted(), attempted(), retired()),
        (wanted(), attempted(), created(), delete_requested(), retired()),
        (surplus(A_ID, A, "duplicate"),),
    ],
    ids=["on", "under way", "on its way down", "one too many"],
)
def test_rented_machines_need_their_account_until_they_are_given_back(past: tuple[Event, ...]) -> None:
    """A retired group is drained, not forgotten: another database would leave them on the bill."""
    refusal = renting.given(*past).when(ON_OUR_OWN).then_refused(RuleViolation)
    assert refusal.message == (
        "1 rented machine is in these books and there are no credentials: set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET "
        "until it is given back"
    )
