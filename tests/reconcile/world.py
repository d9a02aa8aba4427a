"""A small cloud in memory that does what a test tells it: it works, and any call can be made to fail in any way."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

from app.clock import Clock
from app.cloud.port import Balance, Deletion, DeletionAnswer, DeletionResult, StoredScript
from app.domain.machine import Machine, Order, Volume
from app.domain.offering import Contract, InstanceType
from app.errors import NoCapacity, NotSent, OutcomeUnknown, Rejected, Throttled

Listing: TypeAlias = Sequence[Machine]
OnList: TypeAlias = Callable[[Callable[[], Listing]], Listing]
OnLook: TypeAlias = Callable[[Callable[[], Machine | None]], Machine | None]
OnCreate: TypeAlias = Callable[[Order, Callable[[], str]], str]
Deletions: TypeAlias = Sequence[Deletion]
Answers: TypeAlias = Sequence[DeletionAnswer]
OnDelete: TypeAlias = Callable[[Deletions, Callable[[], Answers]], Answers]

ENDED = "discontinued"
PRICES = {Contract.ON_DEMAND: Decimal("2.29"), Contract.SPOT: Decimal("0.8015")}


class Killed(BaseException):
    """The process is gone in this very instant: nobody catches it, nothing after it happens."""


TIMEOUT = OutcomeUnknown("read timed out", code="timeout")
NO_STOCK = NoCapacity("No capacity available", code="service_unavailable", status=503)
NO_MONEY = Rejected("Insufficient funds", code="insufficient_funds", status=402)
QUOTA = Rejected("GPU quota exceeded", code="forbidden_action", status=403)
WRONG_IMAGE = Rejected("Operating system is not valid for this instance type", code="invalid_request", status=400)
DOWN = NotSent("connection refused", code="connection_refused")
BUSY = Throttled("Rate limit", code="rate_limit_exceeded", status=429)


@dataclass(kw_only=True)
class World:
    """The cloud. A plan in one of the queues decides what becomes of the next call; `always_*` of all others.

    A plan is given the real action and may do it or not, before or after it raises, or answer something else. `instant`
    is told every moment in which a kill would hurt.
    """

    clock: Clock
    types: tuple[InstanceType, ...]
    records: dict[str, Machine] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)
    lists: int = 0
    made: int = 0
    on_create: deque[OnCreate] = field(default_factory=deque)
    on_list: deque[OnList] = field(default_factory=deque)
    on_look: deque[OnLook] = field(default_factory=deque)
    on_delete: deque[OnDelete] = field(default_factory=deque)
    on_types: deque[Exception] = field(default_factory=deque)
    on_volumes: deque[Exception] = field(default_factory=deque)
    on_balance: deque[Exception] = field(default_factory=deque)
    left: Balance = field(default=Balance(amount=Decimal(1000), currency="usd"))
    disks: dict[str, Volume] = field(default_factory=dict)
    swept: list[tuple[str, bool]] = field(default_factory=list)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    script_quota: int = 100
    script_lists: int = 0
    on_scripts: deque[Exception] = field(default_factory=deque)
    on_upload: deque[Callable[[Callable[[], str]], str]] = field(default_factory=deque)
    on_script_delete: deque[Exception] = field(default_factory=deque)
    always_create: OnCreate = field(default=lambda _order, create: create())
    always_list: OnList = field(default=lambda show: show())
    always_look: OnLook = field(default=lambda look: look())
    always_delete: OnDelete = field(default=lambda _deletions, delete: delete())
    instant: Callable[[str], None] = field(default=lambda _: None)
    _guard: threading.RLock = field(default_factory=threading.RLock)

    # --- what a test does to it

    @property
    def alive(self) -> dict[str, Machine]:
        """Every machine that is not discontinued, by host name; two of one name are an error of the test."""
        shown = [machine for machine in self.records.values() if machine.status != ENDED]
        assert len({machine.hostname for machine in shown}) == len(shown)
        return {machine.hostname: machine for machine in shown}

    def add(self, machine: Machine) -> Machine:
        """A machine that somebody made."""
        self.records[machine.instance_id] = machine
        return machine

    def change(self, hostname: str, status: str) -> None:
        """The machine's status moves on."""
        machine = self.alive[hostname]
        self.records[machine.instance_id] = replace(machine, status=status)

    def boot(self) -> None:
        """All machines under way are running now, each with its system disk."""
        for machine in self.records.values():
            if machine.status in {"ordered", "provisioning"}:
                volume = f"os-{machine.instance_id}"
                self.records[machine.instance_id] = replace(
                    machine, status="running", os_volume_id=volume, volume_ids=(volume,)
                )

    def vanish(self, hostname: str) -> None:
        """The machine leaves without a trace: the API does not know its id any more."""
        del self.records[self.alive[hostname].instance_id]

    # --- what the jobs see

    @property
    def backend(self) -> str:
        """Not the real one."""
        return "simulator"

    def list_instances(self) -> Listing:
        """Every machine that is not discontinued."""
        with self._guard:
            self.lists += 1
            plan = self.on_list.popleft() if self.on_list else self.always_list
            return plan(lambda: tuple(machine for machine in self.records.values() if machine.status != ENDED))

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine, discontinued ones too."""
        with self._guard:
            self.looks.append(instance_id)
            plan = self.on_look.popleft() if self.on_look else self.always_look
            return plan(lambda: self.records.get(instance_id))

    def create_instance(self, order: Order) -> str:
        """Order one machine. Not under the guard: orders may hang while others go on."""
        with self._guard:
            self.orders.append(order)
            plan = self.on_create.popleft() if self.on_create else self.always_create
        self.instant("an order is about to be sent")
        instance_id = plan(order, lambda: self._create(order))
        self.instant("an order was answered")
        return instance_id

    def _create(self, order: Order) -> str:
        with self._guard:
            self.made += 1
            instance_id = f"id-{self.made:04}"
            self.records[instance_id] = Machine(
                instance_id=instance_id,
                hostname=order.hostname,
                status="ordered",
                description=order.description,
                instance_type=order.instance_type,
                image=order.image,
                location=order.location,
                contract=order.contract,
                price_per_hour=PRICES[order.contract],
                created_at=self.clock.now(),
            )
            return instance_id

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Delete, or refuse while provisioning, as Verda does."""
        with self._guard:
            self.deletions.extend(deletions)
            plan = self.on_delete.popleft() if self.on_delete else self.always_delete
            self.instant("deletions are about to be sent")
            answers = plan(deletions, lambda: self._delete(deletions))
            self.instant("deletions were answered")
            return answers

    def _delete(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        return [self._delete_one(deletion.instance_id) for deletion in deletions]

    def _delete_one(self, instance_id: str) -> DeletionAnswer:
        machine = self.records.get(instance_id)
        if machine is None or machine.status == ENDED:
            return DeletionAnswer(instance_id=instance_id, result=DeletionResult.ALREADY_GONE)
        if machine.status == "provisioning":
            return DeletionAnswer(
                instance_id=instance_id,
                result=DeletionResult.REFUSED,
                code="forbidden_action",
                message="Can't discontinue a provisioning instance",
            )
        self.records[instance_id] = replace(machine, status=ENDED)
        return DeletionAnswer(instance_id=instance_id, result=DeletionResult.ACCEPTED)

    def instance_types(self) -> Sequence[InstanceType]:
        """The catalogue."""
        if self.on_types:
            raise self.on_types.popleft()
        return self.types

    def availability(self, contract: Contract) -> Mapping[str, frozenset[str]]:
        """Nobody asks."""
        raise AssertionError(contract)

    def locations(self) -> Sequence[str]:
        """Nobody asks."""
        raise AssertionError

    def images(self) -> Sequence[str]:
        """Nobody asks."""
        raise AssertionError

    def volumes(self) -> Sequence[Volume]:
        """What a test has put there."""
        if self.on_volumes:
            raise self.on_volumes.popleft()
        return tuple(self.disks.values())

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """Gone, and written down."""
        self.swept.append((volume_id, permanent))
        if self.on_volumes:
            raise self.on_volumes.popleft()
        del self.disks[volume_id]

    def scripts(self) -> Sequence[StoredScript]:
        """Every script, anybody's."""
        self.script_lists += 1
        if self.on_scripts:
            raise self.on_scripts.popleft()
        return [StoredScript(script_id=script_id, name=name) for script_id, (name, _) in self.texts.items()]

    def create_script(self, name: str, text: str) -> str:
        """Stored, as long as there is room."""
        self.uploads.append(name)
        script_id = f"script-{len(self.uploads)}"

        def store() -> str:
            if len(self.texts) >= self.script_quota:
                raise Rejected("Startup script quota exceeded", code="forbidden_action", status=403)
            self.texts[script_id] = (name, text)
            return script_id

        return self.on_upload.popleft()(store) if self.on_upload else store()

    def delete_script(self, script_id: str) -> None:
        """Gone; one that is not there is fine."""
        if self.on_script_delete:
            raise self.on_script_delete.popleft()
        self.texts.pop(script_id, None)

    def balance(self) -> Balance:
        """What a test says is left."""
        if self.on_balance:
            raise self.on_balance.popleft()
        return self.left


def refuses(error: BaseException) -> OnCreate:
    """The order is not executed, and this is what the caller gets to know."""

    def plan(_order: Order, _create: Callable[[], str]) -> str:
        raise error

    return plan


def makes_and(error: BaseException) -> OnCreate:
    """The machine is made, and the caller does not get to know its id."""

    def plan(_order: Order, create: Callable[[], str]) -> str:
        create()
        raise error

    return plan


def does_not_list(error: Exception) -> OnList:
    """The listing fails."""

    def plan(_show: Callable[[], Listing]) -> Listing:
        raise error

    return plan


def lists_only(*hostnames: str) -> OnList:
    """The listing shows these machines and no other."""
    return lambda show: tuple(machine for machine in show() if machine.hostname in hostnames)


def lists_stale(*machines: Machine) -> OnList:
    """A replica that lags shows these as they were."""
    return lambda _show: machines


def does_not_look(error: Exception) -> OnLook:
    """The look-up fails."""

    def plan(_look: Callable[[], Machine | None]) -> Machine | None:
        raise error

    return plan


def answers(result: DeletionResult, code: str = "", message: str = "") -> OnDelete:
    """Deletions are answered like this and not executed."""

    def plan(deletions: Deletions, _delete: Callable[[], Answers]) -> Answers:
        return [
            DeletionAnswer(instance_id=deletion.instance_id, result=result, code=code, message=message)
            for deletion in deletions
        ]

    return plan


def deletes_and(error: Exception) -> OnDelete:
    """The deletions are executed, and the answer is lost."""

    def plan(_deletions: Deletions, delete: Callable[[], Answers]) -> Answers:
        delete()
        raise error

    return plan


def deletes_not(error: Exception) -> OnDelete:
    """The deletions are not executed, and the call fails."""

    def plan(_deletions: Deletions, _delete: Callable[[], Answers]) -> Answers:
        raise error

    return plan
