"""Machines of our own, switched on and off by HTTP calls, behind the same port as a cloud that rents them."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Final

from app.clock import Clock
from app.cloud.port import Deletion, DeletionAnswer, DeletionResult
from app.config.specs import type_name
from app.domain.ids import Mark, own_instance_id, place_of
from app.domain.instance.verdict import MACHINE_UNKNOWN, SWITCH_REFUSED, SWITCH_UNANSWERED
from app.domain.machine import Machine, Order
from app.domain.offering import Contract, InstanceType
from app.errors import NotSent, Rejected

_HOOK_TIMEOUT_S: Final = 60.0
"""Power calls may take a while: a machine's controller answers when it has done it."""
_STATUS_TIMEOUT_S: Final = 3.0
_BOOT: Final = timedelta(minutes=5)
"""How long a machine without a status endpoint counts as starting."""
_LONGEST_ANSWER: Final = 64 * 1024
_ON: Final = frozenset({"on", "running", "up", "ready", "true"})
_OFF: Final = frozenset({"off", "stopped", "down", "false"})
_WORDS: Final = ("status", "state", "power", "running", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSwitch:
    """One machine: what it offers, and where it is switched. The token's file is read for every call."""

    name: str
    scale_up_endpoint: str
    scale_down_endpoint: str
    status_endpoint: str | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A machine that the books say is on, or on its way down."""

    instance_id: str
    instance: str
    node_group: str
    machine: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookGroup:
    """A group's machines and the instance type that stands for them in the catalogue."""

    kind: InstanceType
    switches: Mapping[str, PowerSwitch]


def instance_type(node_group: str, cpus: int, memory_gb: Decimal, gpus: int) -> InstanceType:
    """What the smallest machine of a group offers. It has no price: it is paid for already."""
    return InstanceType(
        name=type_name(node_group),
        cpus=cpus,
        memory_gb=memory_gb,
        gpus=gpus,
        gpu_memory_gb=Decimal(0),
        gpu_name="",
        model="",
        manufacturer="",
        storage_gb=None,
        on_demand_price=None,
        spot_price=None,
        currency="usd",
    )


class WebhookCloud:
    """Switches machines. `placed` tells which are on by the books: a power controller need not remember who asked."""

    def __init__(
        self, groups: Mapping[str, WebhookGroup], clock: Clock, placed: Callable[[], Sequence[Placed]]
    ) -> None:
        self.groups = groups
        self._clock = clock
        self._placed = placed
        self._stopped: set[str] = set()

    def list_instances(self) -> Sequence[Machine]:
        """Every machine that is on, or that is not known to be off after we asked for it."""
        placed = self._placed()
        self._stopped &= {one.instance_id for one in placed}
        return [machine for one in placed if (machine := self._seen(one)) is not None]

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine, None if it is off and was meant to be."""
        found = next((one for one in self._placed() if one.instance_id == instance_id), None)
        return None if found is None else self._seen(found)

    def create_instance(self, order: Order) -> str:
        """Switch the machine on that the order names as its place. Harmless to repeat."""
        mark = Mark.parse(order.description)
        group = mark.group if mark is not None else ""
        switch = self._switch(group, order.location)
        if switch is None:
            raise Rejected(f"there is no machine {order.location} in {group}", code=MACHINE_UNKNOWN)
        status, words = self._post(switch.scale_up_endpoint, switch, {"name": switch.name, "instance": order.hostname})
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return own_instance_id(group, switch.name, order.hostname)
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Rejected(f"{switch.name} is not switched on: {words}", code=SWITCH_REFUSED, status=status)
        raise NotSent(f"{switch.name} is not switched on: {words}", code=SWITCH_UNANSWERED, status=status or None)

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Switch machines off."""
        return [self._delete(deletion) for deletion in deletions]

    def _delete(self, deletion: Deletion) -> DeletionAnswer:
        group, machine = place_of(deletion.instance_id)
        switch = self._switch(group, machine)
        if switch is None:
            words = f"there is no machine {machine} in {group} any more: switch it off by hand"
            return _refused(deletion, MACHINE_UNKNOWN, words)
        status, words = self._post(switch.scale_down_endpoint, switch, {"name": switch.name})
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            self._stopped.add(deletion.instance_id)
            return DeletionAnswer(instance_id=deletion.instance_id, result=DeletionResult.ACCEPTED)
        return _refused(deletion, SWITCH_UNANSWERED, f"{switch.name} is not switched off: {words}")

    def instance_types(self) -> Sequence[InstanceType]:
        """One type for each group."""
        return [group.kind for group in self.groups.values()]

    def _switch(self, group: str, machine: str) -> PowerSwitch | None:
        known = self.groups.get(group)
        return None if known is None else known.switches.get(machine)

    def _seen(self, placed: Placed) -> Machine | None:
        status = self._status(placed)
        if status is None:
            return None
        return Machine(
            instance_id=placed.instance_id,
            hostname=placed.instance,
            status=status,
            instance_type=type_name(placed.node_group),
            location=placed.machine,
            contract=Contract.ON_DEMAND,
            created_at=placed.created_at,
        )

    def _status(self, placed: Placed) -> str | None:
        """The machine's status in the words that a cloud would use, None if it is off as it should be."""
        switch = self._switch(placed.node_group, placed.machine)
        stopped = placed.instance_id in self._stopped
        if switch is None or switch.status_endpoint is None:
            if stopped:
                return None
            age = self._clock.now() - placed.created_at if placed.created_at is not None else _BOOT
            return "running" if age >= _BOOT else "provisioning"
        word = _power(self._get(switch.status_endpoint, switch))
        if stopped:
            return None if word in _OFF else "deleting"
        return "running" if word in _ON else "offline" if word in _OFF else word or "unknown"

    def _post(self, url: str, switch: PowerSwitch, body: Mapping[str, str]) -> tuple[int, str]:
        """Status and words; status 0 if there was no answer."""
        request = urllib.request.Request(  # noqa: S310 - the configuration takes http and https only
            url, data=json.dumps(body).encode(), method="POST", headers={"Content-Type": "application/json"}
        )
        status, content = _exchange(request, switch, _HOOK_TIMEOUT_S)
        return status, f"HTTP {status}" if status else content

    def _get(self, url: str, switch: PowerSwitch) -> str:
        status, content = _exchange(urllib.request.Request(url), switch, _STATUS_TIMEOUT_S)  # noqa: S310 - likewise
        return content if status == HTTPStatus.OK else ""


def _exchange(request: urllib.request.Request, switch: PowerSwitch, timeout_s: float) -> tuple[int, str]:
    """Status and body; status 0 and the reason if there was no answer. Never holds the token."""
    try:
        if switch.token_file is not None:
            request.add_header("Authorization", f"Bearer {switch.token_file.read_text('utf-8').strip()}")
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310 - likewise
            return int(answer.status), answer.read(_LONGEST_ANSWER).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else type(error).__name__
        return 0, f"no answer ({reason})"


def _power(content: str) -> str:
    """The word for a machine's power in an answer: a word alone, or a JSON object with one of a few keys."""
    try:
        found = json.loads(content)
    except ValueError:
        found = content
    if isinstance(found, Mapping):
        found = next((found[key] for key in _WORDS if key in found), "")
    return str(found).strip().lower()[:40]


def _refused(deletion: Deletion, code: str, message: str) -> DeletionAnswer:
    return DeletionAnswer(instance_id=deletion.instance_id, result=DeletionResult.REFUSED, code=code, message=message)
