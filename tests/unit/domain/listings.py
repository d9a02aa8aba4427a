"""Listings of the cloud, and what is in the log after them."""

from datetime import timedelta

from app.domain.cloud import CloudReachable
from app.domain.envelope import Event
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract

from .facts import (
    LEADING_TO,
    OS_VOLUME,
    A,
    h100,
    machine,
    observed,
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
