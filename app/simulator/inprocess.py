"""The `Cloud` port directly on a world: no sockets, no threads, no waiting; for deterministic simulation tests."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import JsonValue

from app.cloud.port import Balance, Deletion, DeletionAnswer, DeletionResult, StoredScript
from app.domain.machine import Machine, Order, Volume
from app.domain.offering import Contract, InstanceType
from app.errors import CloudError, NoCapacity, NotSent, OutcomeUnknown, Rejected, Throttled
from app.simulator import acts, presets
from app.simulator.exchange import Delivery, Exchange
from app.simulator.fault_model import Close, Fault, Hang, Reset, Truncate
from app.simulator.reading import (
    Unreadable,
    parse_availability,
    parse_instance_type,
    parse_machine,
    parse_new_id,
    parse_volume,
    text_of,
)
from app.simulator.wire import Request, Response
from app.simulator.world import World

Item = TypeVar("Item")
_PAGE = 100
_REFUSALS = frozenset({400, 401, 402, 403, 404})
_ALREADY = frozenset({"Can't discontinue a discontinued instance", "Can't discontinue a deleting instance"})


class Moment(StrEnum):
    """When a hook is called: before the cloud hears of a call; when it has done it but the caller has not heard."""

    BEFORE = "before"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call on the port: the method's name, what it is about (hostname, ids, or empty), and its number from 1."""

    operation: str
    subject: str
    number: int


Hook = Callable[[Call, Moment], None]
"""May raise: a `CloudError` becomes the call's outcome, anything else (a crash) goes through. Raising at `BEFORE` means
nothing was done, at `ANSWERED` that it was done and the answer got lost."""


class InProcessCloud:
    """A `Cloud` for tests. Give the world a `FakeClock` and its time follows the test's.

    Requests pass through the same faults, validation and answers as over HTTP, but need no token and meet no rate
    limit. `deadline` is how long an answer may be late (fault `delay`) before the call counts as timed out.
    """

    def __init__(self, world: World, *, hook: Hook | None = None, deadline: timedelta = timedelta(seconds=30)) -> None:
        self.world = world
        self.exchange = Exchange(world, gated=False)
        self.hook = hook
        self.down = False
        self._deadline_s = deadline.total_seconds()
        self._late_s = 0.0
        self._calls = 0

    @property
    def backend(self) -> str:
        """`simulator`."""
        return "simulator"

    def trouble(self, name: str, **args: JsonValue) -> JsonValue:
        """Install a preset's faults, or have an act done now; answers fault ids or what the act was done to."""
        with self.world.lock:
            if name in acts.ACTS:
                return acts.perform(self.world, name, args)
            return [self.exchange.faults.add(fault) for fault in presets.build(name, args)]

    def inject(self, fault: Fault) -> str:
        """Put a hand-made fault in force; returns its id."""
        with self.world.lock:
            return self.exchange.faults.add(fault)

    def list_instances(self) -> Sequence[Machine]:
        """See `Cloud`."""
        return _rows(self._call("list_instances", "", "GET", "/v1/instances"), parse_machine)

    def get_instance(self, instance_id: str) -> Machine | None:
        """See `Cloud`."""
        try:
            response = self._call("get_instance", instance_id, "GET", f"/v1/instances/{instance_id}")
        except Rejected as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return _read(response, parse_machine)

    def create_instance(self, order: Order) -> str:
        """See `Cloud`."""
        response = self._call("create_instance", order.hostname, "POST", "/v1/instances", _order_body(order))
        return _read(response, lambda _: parse_new_id(response))

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """See `Cloud`. One request per machine; it raises only when not a single one was answered."""
        answers: dict[str, DeletionAnswer] = {}
        failures: dict[str, CloudError] = {}
        for deletion in {item.instance_id: item for item in deletions}.values():
            try:
                answers[deletion.instance_id] = self._delete(deletion)
            except Rejected as error:
                answers[deletion.instance_id] = _refused(deletion, error)
            except CloudError as error:
                failures[deletion.instance_id] = error
        if failures and not answers:
            raise next(iter(failures.values()))
        for deletion in deletions:
            if deletion.instance_id in failures:
                answers[deletion.instance_id] = _refused(deletion, failures[deletion.instance_id])
        return [answers[deletion.instance_id] for deletion in deletions]

    def instance_types(self) -> Sequence[InstanceType]:
        """See `Cloud`."""
        response = self._call("instance_types", "", "GET", "/v1/instance-types")
        if not isinstance(response.payload, list):
            raise _unreadable()
        return [item for row in response.payload if (item := parse_instance_type(row)) is not None]

    def availability(self, contract: Contract) -> Mapping[str, frozenset[str]]:
        """See `Cloud`."""
        query = {"is_spot": "true" if contract is Contract.SPOT else "false"}
        response = self._call("availability", contract.value, "GET", "/v1/instance-availability", query=query)
        pairs = _rows(response, parse_availability)
        return dict(pairs)

    def locations(self) -> Sequence[str]:
        """See `Cloud`."""
        return _rows(self._call("locations", "", "GET", "/v1/locations"), lambda row: text_of(row, "code"))

    def images(self) -> Sequence[str]:
        """See `Cloud`."""
        return _rows(self._call("images", "", "GET", "/v1/images"), lambda row: text_of(row, "image_type"))

    def volumes(self) -> Sequence[Volume]:
        """See `Cloud`."""
        return _rows(self._call("volumes", "", "GET", "/v1/volumes"), parse_volume)

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """See `Cloud`."""
        body: dict[str, JsonValue] = {"is_permanent": permanent}
        try:
            self._call("delete_volume", volume_id, "DELETE", f"/v1/volumes/{volume_id}", body)
        except Rejected as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def balance(self) -> Balance:
        """See `Cloud`."""
        response = self._call("balance", "", "GET", "/v1/balance")
        return _read(
            response, lambda row: Balance(amount=Decimal(str(row["amount"])), currency=text_of(row, "currency"))
        )

    def scripts(self) -> Sequence[StoredScript]:
        """See `Cloud`."""
        found: list[StoredScript] = []
        for page in itertools.count(1):
            query = {"page": str(page), "pageSize": str(_PAGE)}
            rows = _rows(self._call("scripts", "", "GET", "/v1/scripts", query=query), _stored_script)
            found += rows
            if len(rows) < _PAGE:
                break
        return found

    def create_script(self, name: str, text: str) -> str:
        """See `Cloud`."""
        response = self._call("create_script", name, "POST", "/v1/scripts", {"name": name, "script": text})
        return _read(response, lambda _: parse_new_id(response))

    def delete_script(self, script_id: str) -> None:
        """See `Cloud`."""
        try:
            self._call("delete_script", script_id, "DELETE", f"/v1/scripts/{script_id}")
        except Rejected as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def _delete(self, deletion: Deletion) -> DeletionAnswer:
        body: dict[str, JsonValue] = {"id": [deletion.instance_id], "action": "delete", "volume_ids": None}
        if deletion.volume_ids is not None:
            body |= {"volume_ids": list(deletion.volume_ids), "delete_permanently": deletion.permanent}
        try:
            response = self._call("delete_instances", deletion.instance_id, "PUT", "/v1/instances", body)
        except Rejected as error:
            if error.status != HTTPStatus.NOT_FOUND and error.message not in _ALREADY:
                raise
            return DeletionAnswer(instance_id=deletion.instance_id, result=DeletionResult.ALREADY_GONE)
        done = response.status != HTTPStatus.NO_CONTENT
        result = DeletionResult.ACCEPTED if done else DeletionResult.ALREADY_GONE
        return DeletionAnswer(instance_id=deletion.instance_id, result=result)

    def _call(
        self,
        operation: str,
        subject: str,
        method: str,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Response:
        """One request and its answer, or the `CloudError` that is all the caller would know."""
        self._calls += 1
        call = Call(operation=operation, subject=subject, number=self._calls)
        if self.down:
            raise NotSent("connection refused", code="connection_refused")
        if self.hook is not None:
            self.hook(call, Moment.BEFORE)
        target = f"{path}?{urlencode(query)}" if query else path
        request = Request.of(method, target, {}, b"" if body is None else json.dumps(body).encode())
        self._late_s = 0.0
        delivery = self.exchange.perform(request, self._wait)
        if delivery.response.status == HTTPStatus.UNAUTHORIZED:  # not executed, so it may be sent again
            delivery = self.exchange.perform(request, self._wait)
        if self.hook is not None:
            self.hook(call, Moment.ANSWERED)
        late = self._late_s + delivery.delay_s >= self._deadline_s
        return _outcome(delivery, creating=operation == "create_instance", late=late)

    def _wait(self, seconds: float) -> None:
        self._late_s += seconds


def _outcome(delivery: Delivery, *, creating: bool, late: bool) -> Response:
    """What the caller learns from a delivery."""
    response = delivery.response
    match delivery.manner:
        case Hang():
            raise OutcomeUnknown("no answer within the deadline", code="timeout")
        case Reset() | Close() | Truncate():
            raise OutcomeUnknown("the connection broke", code="connection_lost")
        case _ if late:
            raise OutcomeUnknown("no answer within the deadline", code="timeout")
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        return response
    raise _refusal(response, creating=creating)


def _refusal(response: Response, *, creating: bool) -> CloudError:
    """Only the API's own words prove that it did nothing; 429 is the one status that speaks for itself."""
    status, body = response.status, response.payload
    code = body.get("code") if isinstance(body, dict) and not response.raw else None
    message = str(body.get("message", "")) if isinstance(body, dict) else f"HTTP {status}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = response.headers.get("Retry-After")
        delay = timedelta(seconds=int(wait)) if wait else None
        return Throttled(message, code=str(code or "rate_limit_exceeded"), status=status, retry_after=delay)
    if not isinstance(code, str):
        return OutcomeUnknown(message, code=f"http_{status}", status=status)
    if status in _REFUSALS:
        return Rejected(message, code=code, status=status)
    if creating and status == HTTPStatus.SERVICE_UNAVAILABLE and code == "service_unavailable":
        return NoCapacity(message, code=code, status=status)
    return OutcomeUnknown(message, code=code, status=status)


def _refused(deletion: Deletion, error: CloudError) -> DeletionAnswer:
    return DeletionAnswer(
        instance_id=deletion.instance_id, result=DeletionResult.REFUSED, code=error.code, message=error.message
    )


def _unreadable() -> OutcomeUnknown:
    return OutcomeUnknown("the answer cannot be read", code="unreadable_answer")


def _read(response: Response, parse: Callable[[Mapping[str, JsonValue]], Item]) -> Item:
    body = response.payload
    try:
        return parse(body if isinstance(body, dict) else {})
    except (Unreadable, KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error


def _rows(response: Response, parse: Callable[[Mapping[str, JsonValue]], Item]) -> list[Item]:
    rows = response.payload
    if not isinstance(rows, list) or response.raw:
        raise _unreadable()
    try:
        return [parse(row) for row in rows]
    except (Unreadable, KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error


def _stored_script(row: Mapping[str, JsonValue]) -> StoredScript:
    return StoredScript(script_id=text_of(row, "id"), name=text_of(row, "name"))


def _order_body(order: Order) -> dict[str, JsonValue]:
    spot = order.contract is Contract.SPOT
    body: dict[str, JsonValue] = {
        "instance_type": order.instance_type,
        "image": order.image,
        "hostname": order.hostname,
        "location_code": order.location,
        "description": order.description,
        "is_spot": spot,
        "contract": "SPOT" if spot else "PAY_AS_YOU_GO",
        "ssh_key_ids": list(order.ssh_key_ids),
        "startup_script_id": order.startup_script_id,
        "tags": [{"key": key, "value": value} for key, value in order.tags],
    }
    if order.os_volume is not None:
        os_volume: dict[str, JsonValue] = {"name": order.os_volume.name, "size": order.os_volume.size_gb}
        if spot:
            keep = "delete_permanently" if order.os_volume.permanent else "move_to_trash"
            os_volume["on_spot_discontinue"] = keep
        body["os_volume"] = os_volume
    return body
