"""Machines of our own, switched on and off by HTTP calls, behind the same port as a cloud that rents them."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

from app.clock import Clock
from app.cloud.port import Deletion, DeletionAnswer, DeletionResult
from app.config.specs import type_name
from app.domain.ids import Mark, own_instance_id, place_of
from app.domain.instance.verdict import MACHINE_UNKNOWN, SWITCH_REFUSED, SWITCH_UNANSWERED
from app.domain.machine import Machine, Order
from app.domain.offering import Contract, InstanceType
from app.errors import NotSent, Rejected

_AT_ONCE: Final = 50
"""How many controllers are asked at the same time: as many as deletions go in one call."""
_LATE: Final = (0, "no answer in time")
_BOOT: Final = timedelta(minutes=5)
"""How long a machine without a status endpoint counts as starting."""
_LONGEST_ANSWER: Final = 64 * 1024
_ON: Final = frozenset({"on", "running", "up", "ready", "true"})
_OFF: Final = frozenset({"off", "stopped", "down", "false"})
_WORDS: Final = ("status", "state", "power", "running", "on")


Thing = TypeVar("Thing")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long controllers are waited for: `status_s` for each, `listing_s` and `hook_s` for all of one pass.

    Power calls may take a while: a machine's controller answers when it has done it.
    """

    hook_s: float = 60.0
    status_s: float = 3.0
    listing_s: float = 10.0


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


_Call = tuple[str, PowerSwitch, Mapping[str, str]]
"""An endpoint, whose it is, and what is sent there."""


class WebhookCloud:
    """Switches machines. `placed` tells which are on by the books: a power controller need not remember who asked.

    Controllers are asked at the same time and under one deadline, so one that is dead holds up nobody else.
    """

    def __init__(
        self,
        groups: Mapping[str, WebhookGroup],
        clock: Clock,
        placed: Callable[[], Sequence[Placed]],
        patience: Patience = Patience(),
    ) -> None:
        self.groups = groups
        self._clock = clock
        self._placed = placed
        self._patience = patience
        self._stopped: set[str] = set()

    def list_instances(self) -> Sequence[Machine]:
        """Every machine that is on, or that is not known to be off after we asked for it."""
        placed = self._placed()
        self._stopped &= {one.instance_id for one in placed}
        return self._seen(placed)

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine, None if it is off and was meant to be."""
        found = [one for one in self._placed() if one.instance_id == instance_id]
        return next(iter(self._seen(found)), None)

    def create_instance(self, order: Order) -> str:
        """Switch the machine on that the order names as its place. Harmless to repeat."""
        mark = Mark.parse(order.description)
        group = mark.group if mark is not None else ""
        switch = self._switch(group, order.location)
        if switch is None:
            raise Rejected(f"there is no machine {order.location} in {group}", code=MACHINE_UNKNOWN)
        body = {"name": switch.name, "instance": order.hostname}
        status, words = self._switched(((switch.scale_up_endpoint, switch, body),))[0]
        if _is_done(status):
            return own_instance_id(group, switch.name, order.hostname)
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Rejected(f"{switch.name} is not switched on: {words}", code=SWITCH_REFUSED, status=status)
        raise NotSent(f"{switch.name} is not switched on: {words}", code=SWITCH_UNANSWERED, status=status or None)

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Switch machines off."""
        places = {one.instance_id: place_of(one.instance_id) for one in deletions}
        known = {one: switch for one, place in places.items() if (switch := self._switch(*place)) is not None}
        calls = [(switch.scale_down_endpoint, switch, {"name": switch.name}) for switch in known.values()]
        outcomes = dict(zip(known, self._switched(calls), strict=True))
        return [self._answer(deletion, outcomes.get(deletion.instance_id)) for deletion in deletions]

    def _answer(self, deletion: Deletion, outcome: tuple[int, str] | None) -> DeletionAnswer:
        group, machine = place_of(deletion.instance_id)
        if outcome is None:
            words = f"the configuration has no machine {machine} in {group}: put it back until it is switched off"
            return _refused(deletion, MACHINE_UNKNOWN, words)
        status, words = outcome
        if _is_done(status):
            self._stopped.add(deletion.instance_id)
            return DeletionAnswer(instance_id=deletion.instance_id, result=DeletionResult.ACCEPTED)
        return _refused(deletion, SWITCH_UNANSWERED, f"{machine} is not switched off: {words}")

    def instance_types(self) -> Sequence[InstanceType]:
        """One type for each group."""
        return [group.kind for group in self.groups.values()]

    def _switch(self, group: str, machine: str) -> PowerSwitch | None:
        known = self.groups.get(group)
        return None if known is None else known.switches.get(machine)

    def _seen(self, placed: Sequence[Placed]) -> list[Machine]:
        """Those of them that are on, or that are not known to be off."""
        statuses = _together(self._status, placed, self._doubt, self._patience.listing_s)
        return [_machine(one, status) for one, status in zip(placed, statuses, strict=True) if status is not None]

    def _doubt(self, placed: Placed) -> str:
        """The status of a machine that nobody has told us about."""
        return "deleting" if placed.instance_id in self._stopped else "unknown"

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
            return None if word in _OFF else self._doubt(placed)
        return "running" if word in _ON else "offline" if word in _OFF else word or self._doubt(placed)

    def _switched(self, calls: Sequence[_Call]) -> list[tuple[int, str]]:
        """What each controller answered to its call: status and words; status 0 if there was no answer."""
        return _together(self._post, calls, lambda _: _LATE, self._patience.hook_s)

    def _post(self, call: _Call) -> tuple[int, str]:
        url, switch, body = call
        request = urllib.request.Request(  # noqa: S310 - the configuration takes http and https only
            url, data=json.dumps(body).encode(), method="POST", headers={"Content-Type": "application/json"}
        )
        status, content = _exchange(request, switch, self._patience.hook_s)
        return status, _told(status) if status else content

    def _get(self, url: str, switch: PowerSwitch) -> str:
        request = urllib.request.Request(url)  # noqa: S310 - likewise
        status, content = _exchange(request, switch, self._patience.status_s)
        return content if status == HTTPStatus.OK else ""


def _together(
    act: Callable[[Thing], Outcome], things: Sequence[Thing], late: Callable[[Thing], Outcome], within_s: float
) -> list[Outcome]:
    """What an act comes to for each of the things, all at the same time; `late` speaks for those not done in time.

    An act that is late goes on by itself and holds up no later call, for each call has threads of its own.
    """
    if not things:
        return []
    pool = ThreadPoolExecutor(min(len(things), _AT_ONCE), thread_name_prefix="power")
    calls = [pool.submit(act, thing) for thing in things]
    done = wait(calls, within_s).done
    pool.shutdown(wait=False, cancel_futures=True)
    return [call.result() if call in done else late(thing) for call, thing in zip(calls, things, strict=True)]


def _machine(placed: Placed, status: str) -> Machine:
    return Machine(
        instance_id=placed.instance_id,
        hostname=placed.instance,
        status=status,
        instance_type=type_name(placed.node_group),
        location=placed.machine,
        contract=Contract.ON_DEMAND,
        created_at=placed.created_at,
    )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Followed, a POST would become a GET that switches nothing, and the token would go to whoever is named."""

    def redirect_request(self, *_: object) -> None:
        """Leave it at the answer that there was."""


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


def _is_done(status: int) -> bool:
    """Whether the machine is as was asked: switched now, or so already, as at the repeat of a call without answer."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.CONFLICT


def _told(status: int) -> str:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"HTTP {status}, a redirect, which is not followed: configure the endpoint that it leads to"
    return f"HTTP {status}"


def _exchange(request: urllib.request.Request, switch: PowerSwitch, timeout_s: float) -> tuple[int, str]:
    """Status and body; status 0 and the reason if there was no answer. Never holds the token."""
    try:
        if switch.token_file is not None:
            request.add_header("Authorization", f"Bearer {switch.token_file.read_text('utf-8').strip()}")
        with _OPENER.open(request, timeout=timeout_s) as answer:
            return int(answer.status), answer.read(_LONGEST_ANSWER).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else type(error).__name__
        return 0, f"no answer ({reason})"


def _power(content: str) -> str:
    """The word for a machine's power in an answer: a word alone, or a JSON object with one of a few keys."""
    try:
        found = json.loads(content)
    except RecursionError:
        found = ""
    except ValueError:
        found = content
    if isinstance(found, Mapping):
        found = next((found[key] for key in _WORDS if key in found), "")
    return str(found).strip().lower()[:40]


def _refused(deletion: Deletion, code: str, message: str) -> DeletionAnswer:
    return DeletionAnswer(instance_id=deletion.instance_id, result=DeletionResult.REFUSED, code=code, message=message)
