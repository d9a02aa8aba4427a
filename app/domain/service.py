"""The installation itself: its identity, its starts, its configuration."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Final, assert_never

from pydantic import NonNegativeInt, PositiveInt

from app.domain.envelope import Decision, Recorded, ServiceEvent

RENTED: Final = "verda"
OWN_MACHINES: Final = "webhook"
"""Backends of an installation that has an account, and of one that has none and rents nothing."""

_LONGEST_PROBLEM = 500


class InstallationCreated(ServiceEvent):
    """This database was made; the id is in every machine's mark."""

    type: ClassVar[str] = "service.installation-created"
    words: ClassVar[str] = "new database, installation {installation_id}"
    installation_id: str


class ServiceStarted(ServiceEvent):
    """A process took the writer lock. Epochs count the writers of this log."""

    type: ClassVar[str] = "service.started"
    words: ClassVar[str] = "version {version} started on {host}, epoch {epoch}, {backend} backend"
    epoch: PositiveInt
    version: str
    host: str
    pid: PositiveInt
    sqlite_version: str
    backend: str


class ConfigurationLoaded(ServiceEvent):
    """A configuration took effect."""

    type: ClassVar[str] = "service.configuration-loaded"
    words: ClassVar[str] = "configuration {sha256} in effect: {node_groups} node groups, cluster {cluster_name}"
    sha256: str
    cluster_name: str
    node_groups: NonNegativeInt
    max_hourly_cost: Decimal | None = None
    balance_runway_s: int | None = None


class ConfigurationRejected(ServiceEvent):
    """A changed configuration is not valid; the one before it stays in effect. `first` is the first problem."""

    type: ClassVar[str] = "service.configuration-rejected"
    words: ClassVar[str] = "configuration {sha256} rejected, the one before stays; {problems} problems, first: {first}"
    sha256: str
    problems: PositiveInt
    first: str


class InstallationClaimed(ServiceEvent):
    """The machines of an earlier installation with our cluster's name are ours from now on."""

    type: ClassVar[str] = "service.installation-claimed"
    words: ClassVar[str] = "the machines of installation {installation_id} are taken over"
    installation_id: str


class Evidence(StrEnum):
    """How we know that the books are older than the truth."""

    RESTORED = "a backup was restored"
    POSITION = "the log was longer once"
    MACHINES = "the cloud has machines of ours that the books do not know"


class BooksReverted(ServiceEvent):
    """The books have forgotten what happened behind `position`; `once_reached` is how far they once went, if known.

    What was wished for and not ordered by then is dropped: it may have been bought since.
    """

    type: ClassVar[str] = "service.books-reverted"
    words: ClassVar[str] = (
        "the books are older than they were ({evidence}); {dropped} wishes that were not sent are dropped"
    )
    evidence: Evidence
    position: NonNegativeInt
    once_reached: NonNegativeInt | None
    dropped: NonNegativeInt


AnyServiceEvent = (
    InstallationCreated
    | ServiceStarted
    | ConfigurationLoaded
    | ConfigurationRejected
    | InstallationClaimed
    | BooksReverted
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An earlier installation whose machines are ours, and since when; what it makes later is not."""

    installation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Who we are: in every mark, and the reason why two installations never touch each other's machines.

    `reverted_at` is when the books were last found to be older than the truth.
    """

    installation_id: str = ""
    cluster_name: str = ""
    epoch: int = 0
    backend: str = ""
    configuration_sha256: str = ""
    claims: tuple[Claim, ...] = ()
    max_hourly_cost: Decimal | None = None
    reverted_at: datetime | None = None
    balance_runway_s: int | None = None
    version: int = 0

    @property
    def claimed(self) -> tuple[str, ...]:
        """The earlier installations whose machines are ours."""
        return tuple(claim.installation_id for claim in self.claims)


def evolve(installation: Installation, recorded: Recorded[AnyServiceEvent]) -> Installation:
    """Fold one event of the stream `service`."""
    event = recorded.event
    installation = replace(installation, version=recorded.version)
    match event:
        case InstallationCreated():
            return replace(installation, installation_id=event.installation_id)
        case ServiceStarted():
            return replace(installation, epoch=event.epoch, backend=event.backend)
        case ConfigurationLoaded():
            return replace(
                installation,
                cluster_name=event.cluster_name,
                configuration_sha256=event.sha256,
                max_hourly_cost=event.max_hourly_cost,
                balance_runway_s=event.balance_runway_s,
            )
        case ConfigurationRejected():
            return installation
        case InstallationClaimed():
            claim = Claim(installation_id=event.installation_id, at=recorded.recorded_at)
            return replace(installation, claims=(*installation.claims, claim))
        case BooksReverted():
            return replace(installation, reverted_at=recorded.recorded_at)
        case _:
            assert_never(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartService:
    """A process begins to write. `installation_id` is used only if this log has none yet.

    `once_reached` is how far the log is known to have gone, if that is farther than it goes now.
    """

    installation_id: str
    version: str
    host: str
    pid: int
    sqlite_version: str
    backend: str
    once_reached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectConfiguration:
    """The file changed, and what it says now cannot be used. `first` is cut to a line of reasonable length."""

    sha256: str
    problems: int
    first: str


def reject_configuration(command: RejectConfiguration) -> Decision:
    """What changed since is in the log, also when it had no effect."""
    first = command.first[:_LONGEST_PROBLEM]
    return Decision((ConfigurationRejected(sha256=command.sha256, problems=command.problems, first=first),))
