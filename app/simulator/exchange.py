"""One request through the cloud: limits, faults, the world, and how the answer is delivered."""

import contextlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus

from app.simulator.api import Api, Found
from app.simulator.fault_model import (
    Bend,
    Close,
    Delay,
    Drip,
    FaultRecord,
    Hang,
    Phase,
    Redirect,
    Reset,
    Say,
    Truncate,
)
from app.simulator.faults import Faults, say, spoil
from app.simulator.steer import NO_STEER
from app.simulator.wire import Request, Response, text
from app.simulator.world import World

Manner = Hang | Reset | Close | Truncate | Drip
Sleep = Callable[[float], None]

_GROUP = re.compile(r"\bgroup=(\S+)")
_LOG_KEPT = 20_000
_LONGEST_TEXT = 4096
"""Characters of a value in the request log: 20,000 startup scripts of full length would be a gigabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What goes back: an answer, possibly late, possibly in a bad manner; None means delivered as it is."""

    response: Response
    manner: Manner | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One line of the request log; `status` None was never sent.

    `body` is what was asked for, None where nothing was or it is no JSON object; that of a login is not kept.
    """

    number: int
    at_ms: int
    method: str
    path: str
    route: str
    status: int | None
    faults: tuple[str, ...]
    committed: bool
    body: dict[str, object] | None


class Exchange:
    """The way of a request; safe to use from many threads, and no lock is held while sleeping."""

    def __init__(self, world: World, *, gated: bool = True) -> None:
        self._world = world
        self._gated = gated
        self._in_flight = 0
        self.renew()

    def renew(self) -> None:
        """Forget everything that is not part of the world: logs, rate-limit windows."""
        self.api = Api(self._world)
        self.faults = Faults(self._world)
        self.log: deque[RequestRow] = deque(maxlen=_LOG_KEPT)
        self.requests = 0
        self.max_in_flight = 0

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Counts a request as in flight for as long as it takes."""
        with self._world.lock:
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            yield
        finally:
            with self._world.lock:
                self._in_flight -= 1

    def perform(self, request: Request, sleep: Sleep) -> Delivery:
        """Do a request. `sleep` is called without any lock held."""
        world = self._world
        with world.lock:
            world.catch_up()
            self.requests += 1
            number = self.requests
            found = self.api.find(request)
            self._count(request, found)
            struck = self.faults.pick(Phase.ACCEPT, request)
        early = self._strike_early(struck, sleep)
        delivery, later = (early, ()) if early else self._execute(request, found, sleep)
        with world.lock:
            return self._close(number, request, found, delivery, (*_names(struck), *later))

    def _execute(self, request: Request, found: Found | None, sleep: Sleep) -> tuple[Delivery, tuple[str, ...]]:
        """Gate, faults and world; returns the delivery and the names of the faults that struck."""
        world = self._world
        with world.lock:
            world.catch_up()
            headers, refused = self.api.admit(request, found) if self._gated else ({}, None)
            struck = None if refused else self.faults.pick(Phase.BEFORE_COMMIT, request)
        if refused is not None:
            return Delivery(response=refused), ()
        early = self._strike_early(struck, sleep)
        if early is not None:
            return replace(early, response=early.response.with_headers(headers)), _names(struck)
        action = struck.fault.action if struck else None
        with world.lock:
            world.catch_up()
            response = self.api.handle(request, found, action.steer if isinstance(action, Bend) else NO_STEER)
            late: FaultRecord | None = None
            if response.committed:
                world.touch()
                late = self.faults.pick(Phase.AFTER_COMMIT, request)
            if late is None and response.status < HTTPStatus.BAD_REQUEST:
                late = self.faults.pick(Phase.RESPONSE, request)
            return self._strike_late(late, response.with_headers(headers)), _names(struck, late)

    @staticmethod
    def _strike_early(struck: FaultRecord | None, sleep: Sleep) -> Delivery | None:
        """What a fault before the commit does; None lets the request go on."""
        match struck.fault.action if struck else None:
            case Hang() | Reset() | Close() as manner:
                return Delivery(response=text(0, ""), manner=manner)
            case Say() as action:
                return Delivery(response=say(action))
            case Redirect() as action:
                return Delivery(response=text(action.status, "").with_headers({"Location": action.location}))
            case Delay(seconds=seconds):
                sleep(seconds)
                return None
            case _:
                return None

    def _strike_late(self, struck: FaultRecord | None, response: Response) -> Delivery:
        match struck.fault.action if struck else None:
            case Hang() | Reset() | Close() | Truncate() | Drip() as manner:
                return Delivery(response=response, manner=manner)
            case Delay(seconds=seconds):
                return Delivery(response=response, delay_s=seconds)
            case action:
                return Delivery(response=spoil(self._world, action, response))

    def _count(self, request: Request, found: Found | None) -> None:
        counters = self._world.state.counters
        route = found.route.name if found else "unknown"
        counters.requests_by_route[route] = counters.requests_by_route.get(route, 0) + 1
        if route == "POST /instances":
            counters.creates_requested += 1
            if group_of(request.fields.get("description")) in counters.unknown_groups:
                counters.posts_after_unknown_without_list += 1

    def _close(
        self, number: int, request: Request, found: Found | None, delivery: Delivery, faults: tuple[str, ...]
    ) -> Delivery:
        """Write the log and count what the client can and cannot know now."""
        response, counters = delivery.response, self._world.state.counters
        route = found.route.name if found else "unknown"
        clean = delivery.manner is None or isinstance(delivery.manner, Drip)
        sent = response.status if clean or isinstance(delivery.manner, Truncate) else None
        self.log.append(
            RequestRow(
                number=number,
                at_ms=self._world.state.now_ms,
                method=request.method,
                path=request.path,
                route=route,
                status=sent,
                faults=faults,
                committed=response.committed,
                body=_kept(request, route),
            )
        )
        if route == "POST /instances":
            answered = clean and response.status == HTTPStatus.ACCEPTED
            counters.creates_answered_ok += int(answered)
            counters.creates_response_lost += int(response.committed and not answered)
            group = group_of(request.fields.get("description"))
            if not answered and (not clean or _is_murky(response)) and group not in counters.unknown_groups:
                counters.unknown_groups.append(group)
        if route == "GET /instances" and clean and response.status == HTTPStatus.OK:
            counters.unknown_groups.clear()
        return delivery


def _kept(request: Request, route: str) -> dict[str, object] | None:
    if request.method == "GET" or route.endswith("token"):
        return None
    return {key: _cut(value) for key, value in request.fields.items()} or None


def _cut(value: object) -> object:
    return f"{value[:_LONGEST_TEXT]}…" if isinstance(value, str) and len(value) > _LONGEST_TEXT else value


def group_of(description: object) -> str:
    """The node group an ownership mark in a description names; empty if there is none."""
    found = _GROUP.search(description) if isinstance(description, str) else None
    return found[1] if found else ""


def _is_murky(response: Response) -> bool:
    """Whether an answer to a create leaves open if anything was created."""
    if response.status < HTTPStatus.BAD_REQUEST:
        return response.status != HTTPStatus.ACCEPTED
    if response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return False
    return response.status != HTTPStatus.SERVICE_UNAVAILABLE or not isinstance(response.payload, dict)


def _names(*struck: FaultRecord | None) -> tuple[str, ...]:
    """Presets' names, or ids of faults made by hand."""
    return tuple(record.fault.name or record.id for record in struck if record is not None)
