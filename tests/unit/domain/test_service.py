from app.domain.service import InstallationCreated, ServiceStarted, StartService
from app.errors import RuleViolation

from .facts import NEW_DATABASE
from .scenario import Scenario

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
