"""May we answer, and are we well."""

from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.cloud import RecordCatalogue, RecordUnreachable
from app.domain.decide import Command
from app.domain.ids import Mark
from app.domain.machine import Machine
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.observation import ObserveMachines
from app.domain.offering import InstanceType
from app.domain.service import StartService
from app.errors import StoreUnavailable
from app.ledger.ledger import Ledger
from app.ledger.serving import complaints, obstacles, remarks
from tests.store.harness import CA, H100, group, one_more, opened

from .flaky import Flaky

SPARE = InstanceType.model_validate({**H100.model_dump(), "name": "CPU.4V.16G"})
STRANGER = Machine(
    instance_id="i-9",
    hostname="gpu-zzzzzzzz",
    status="running",
    description=Mark(cluster="prod", installation="before", group="gpu").text(),
)
START = StartService(
    installation_id="inst1", version="0.1.0", host="pod-0", pid=7, sqlite_version="3.53.4", backend="simulator"
)
CONFIGURED = ApplyConfiguration(specs=(group(),), sha256="c0ffee", cluster_name="prod")
CATALOGUE = RecordCatalogue(types=(H100,))


def listing(*machines: Machine, claim: bool = False) -> ObserveMachines:
    """A complete list of the cloud's machines."""
    return ObserveMachines(machines=machines, backend="simulator", claim=claim)


@pytest.mark.parametrize(
    ("commands", "codes"),
    [
        ((), ["cloud-never-reached", "no-catalogue"]),
        ((CATALOGUE,), ["cloud-never-reached"]),
        ((listing(),), ["no-catalogue"]),
        ((CATALOGUE, RecordUnreachable(code="dns", message="no such host")), ["cloud-never-reached"]),
        ((CATALOGUE, listing(STRANGER)), ["claim-needed"]),
        ((CATALOGUE, listing(STRANGER, claim=True)), []),
        ((CATALOGUE, listing()), []),
        ((CATALOGUE, listing(), RecordUnreachable(code="dns", message="no such host")), []),
        ((CATALOGUE, listing(), listing(STRANGER)), []),
    ],
)
def test_a_new_database_answers_only_once_it_has_seen_the_cloud(
    fresh: Path, commands: tuple[Command, ...], codes: list[str]
) -> None:
    """A lost database must not look like an empty cluster; one that has seen the cloud answers whatever comes."""
    with opened(fresh) as ledger:
        for command in (START, CONFIGURED, *commands):
            ledger.execute(command, CA)
        assert [reason.code for reason in obstacles(ledger.books)] == codes
        assert complaints(ledger) == obstacles(ledger.books)


def test_the_reason_says_what_to_do(fresh: Path) -> None:
    """It is what the readiness page shows."""
    with opened(fresh) as ledger:
        for command in (START, CONFIGURED, CATALOGUE, listing(STRANGER)):
            ledger.execute(command, CA)
        (reason,) = obstacles(ledger.books)
    assert "gpu-zzzzzzzz" in reason.message or "i-9" in reason.message
    assert "claim: auto" in reason.message


def test_a_disk_in_trouble_is_a_complaint_and_no_obstacle(ledger: Ledger, store: Flaky) -> None:
    """Reads go on, and readiness says why writes do not."""
    store.lost = True
    with pytest.raises(StoreUnavailable):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert obstacles(ledger.books) == ()
    (complaint,) = complaints(ledger)
    assert (complaint.code, complaint.message) == ("store", "the database cannot be written: the disk is full")
    ledger.probe()
    assert complaints(ledger) == ()


def test_remarks_name_what_is_odd_and_no_reason_to_stop(ledger: Ledger, clock: FakeClock) -> None:
    """An outage, a group whose type is not sold, one whose type is not sold any more."""
    assert remarks(ledger.books) == ()
    odd = (group("gpu"), group("odd", instance_type="9X900.1V"), group("cpu", instance_type=SPARE.name))
    ledger.execute(RecordCatalogue(types=(H100, SPARE)), CA)
    ledger.execute(ApplyConfiguration(specs=odd, sha256="x", cluster_name="prod"), CA)
    ledger.execute(RecordCatalogue(types=(H100,)), CA)
    clock.advance(60)
    ledger.execute(RecordUnreachable(code="dns", message="no such host"), CA)
    assert [(reason.code, reason.message) for reason in remarks(ledger.books)] == [
        ("cloud-unreachable", "the cloud does not answer since 2026-01-05 00:01:00+00:00: dns: no such host"),
        ("unknown-instance-type", "node group odd is not offered: the catalogue has no instance type '9X900.1V'"),
        (
            "withdrawn-instance-type",
            "node group cpu: instance type CPU.4V.16G has left the catalogue, orders may be refused",
        ),
    ]


def test_a_retired_group_is_not_remarked_on(ledger: Ledger) -> None:
    """It only shrinks; what it would buy does not matter."""
    odd = group("odd", instance_type="9X900.1V")
    ledger.execute(ApplyConfiguration(specs=(odd,), sha256="x", cluster_name="prod"), CA)
    ledger.execute(ApplyConfiguration(specs=(group(),), sha256="y", cluster_name="prod"), CA)
    assert remarks(ledger.books) == ()
