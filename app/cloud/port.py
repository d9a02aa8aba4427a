"""What we need from a cloud. Adapters: Verda over HTTP, the simulator in process.

Every method may raise exactly the `CloudError` subclasses of `app.errors`: NotSent, Rejected, Throttled, NoCapacity,
OutcomeUnknown. No method waits longer than the adapter's total deadline per call. All methods may be called from
several threads at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from app.domain.machine import Machine, Order, Volume
from app.domain.offering import Contract, InstanceType


class DeletionResult(StrEnum):
    """What the cloud answered to one deletion."""

    ACCEPTED = "accepted"
    ALREADY_GONE = "already-gone"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """One machine to delete with the volumes that shall go with it.

    `volume_ids` None leaves the choice to the API, which puts the OS volume into the trash; an empty tuple would keep
    the volumes, detached and billed, so it is not allowed.
    """

    instance_id: str
    volume_ids: tuple[str, ...] | None
    permanent: bool = True

    def __post_init__(self) -> None:
        """Refuse the costliest trap of the API."""
        if self.volume_ids == ():
            raise ValueError("an empty volume list keeps the volumes and their bill; pass None")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionAnswer:
    """The cloud's answer to one deletion; `code` and `message` are its own words when it refused."""

    instance_id: str
    result: DeletionResult
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What is left on the prepaid account."""

    amount: Decimal
    currency: str


SCRIPT_QUOTA = 100
"""Startup scripts that a project may have, unless Verda has agreed to more (Verda, API changes of March 2026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScript:
    """A startup script of the project. Names are not unique; the text is nobody's business here."""

    script_id: str
    name: str


class Cloud(Protocol):
    """A place that rents machines."""

    @property
    def backend(self) -> str:
        """`verda` or `simulator`, for logs and metrics: nobody should ever wonder which one is real."""
        ...

    def list_instances(self) -> Sequence[Machine]:
        """Every machine of the project that is not discontinued. Raises unless the whole answer could be read.

        Entries without an id or hostname make the whole list unreadable: a partial list must never pass for a full one.
        """
        ...

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine, discontinued ones too; None only if the API itself says there is none (404 in JSON)."""
        ...

    def create_instance(self, order: Order) -> str:
        """Order one machine and return its instance id. Not idempotent: never call again after OutcomeUnknown."""
        ...

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Ask for deletion; one answer per machine, in the order asked."""
        ...

    def instance_types(self) -> Sequence[InstanceType]:
        """The catalogue. Unreadable entries are left out and logged: one odd type must not hide the others."""
        ...

    def availability(self, contract: Contract) -> Mapping[str, frozenset[str]]:
        """Location → instance types said to be in stock. A hint, not a reservation."""
        ...

    def locations(self) -> Sequence[str]:
        """Codes of all locations."""
        ...

    def images(self) -> Sequence[str]:
        """Names (`image_type`) of all images."""
        ...

    def volumes(self) -> Sequence[Volume]:
        """Every volume of the project outside the trash."""
        ...

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """Delete a detached volume; one that is already gone is fine."""
        ...

    def balance(self) -> Balance:
        """What is left on the account."""
        ...

    def scripts(self) -> Sequence[StoredScript]:
        """Every startup script of the project."""
        ...

    def create_script(self, name: str, text: str) -> str:
        """Store a startup script and return its id. Not idempotent; after OutcomeUnknown look for the name."""
        ...

    def delete_script(self, script_id: str) -> None:
        """Delete a startup script; one that is already gone is fine."""
        ...
