"""The control plane under /_sim: time, faults, acts of the platform and of people, and the truth.

It needs no bearer, never counts in the rate limits and never appears among the counted requests.
"""

import dataclasses
import hmac
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import JsonValue

from app.errors import ConfigurationError
from app.simulator import acts, presets
from app.simulator.arguments import Args, number, word
from app.simulator.barriers import Barriers
from app.simulator.capacity import pool_key
from app.simulator.config import SimulatorConfig, parse_config
from app.simulator.core import iso, to_ms
from app.simulator.errors import ApiError, invalid, not_found, unauthorized
from app.simulator.exchange import Exchange
from app.simulator.fault_model import Fault, FaultRecord
from app.simulator.server import HttpServer
from app.simulator.truth import guests, orphans, truth
from app.simulator.wire import Request, Response, refusal, text
from app.simulator.world import World

Values = Mapping[str, str]
Handler = Callable[[Request, Values], JsonValue]

_INSTANCE_ACTS = {
    "evict": "evict",
    "fail": "fail",
    "stick": "stick",
    "unstick": "unstick",
    "vanish": "vanish",
    "unvanish": "unvanish",
    "offline": "offline",
    "status": "set_status",
    "delete": "human_delete",
}
_PAGE = 1000


class Control:
    """Answers /_sim requests."""

    def __init__(self, world: World, exchange: Exchange, server: HttpServer) -> None:
        self._world = world
        self._exchange = exchange
        self._server = server
        self._barriers = Barriers()
        self._routes = [(method, _pattern(path), handler) for method, path, handler in self._table()]

    def hold(self, request: Request) -> None:
        """Hold a data-plane request at a barrier, if one is waiting for it."""
        self._barriers.hold(f"{request.method} {request.path}")

    def handle(self, request: Request) -> Response:
        """Answer a control request."""
        try:
            self._check_key(request)
            for method, pattern, handler in self._routes:
                if method == request.method and (match := pattern.fullmatch(request.path)):
                    with self._world.lock:
                        self._world.catch_up()
                        return Response(status=200, payload=handler(request, match.groupdict()))
            if request.method == "GET" and request.path == "/_sim/snapshot":
                with self._world.lock:
                    return text(200, self._world.snapshot().decode(), "application/json")
            raise not_found()
        except ApiError as error:
            return refusal(error)
        except (ConfigurationError, ValueError, re.error) as error:
            return refusal(invalid(str(error)))

    def _check_key(self, request: Request) -> None:
        config = self._world.config
        if not config.control:
            raise not_found()
        if config.control_key is not None:
            given = request.headers.get("x-sim-key", "")
            if not hmac.compare_digest(config.control_key.get_secret_value().encode(), given.encode()):
                raise unauthorized("X-Sim-Key is missing or wrong")

    def _table(self) -> list[tuple[str, str, Handler]]:
        return [
            ("GET", "/health", lambda _r, _v: {"status": "ok", "server": "verda-simulator"}),
            ("GET", "/config", lambda _r, _v: self._world.config.model_dump(mode="json")),
            ("POST", "/reset", self._reset),
            ("GET", "/clock", lambda _r, _v: self._clock()),
            ("POST", "/clock", self._set_clock),
            ("POST", "/clock/advance", self._advance),
            ("GET", "/faults", lambda _r, _v: [_fault(item) for item in self._world.state.faults.values()]),
            ("POST", "/faults", self._add_fault),
            ("DELETE", "/faults", self._clear_faults),
            ("DELETE", "/faults/{id}", self._remove_fault),
            ("GET", "/presets", lambda _r, _v: [*sorted({*presets.PRESETS, *acts.ACTS, *self._transport()})]),
            ("POST", "/instances", lambda r, _v: acts.perform(self._world, "foreign_instance", _args(r))),
            ("POST", "/instances/{id}/{act}", self._act),
            ("POST", "/volumes/{id}/stick", self._stick_volume),
            ("POST", "/balance", self._balance),
            ("PUT", "/capacity", self._capacity),
            ("GET", "/capacity", lambda _r, _v: [_pool(self._world, key) for key in self._world.state.pools]),
            ("PUT", "/prices", lambda r, _v: acts.perform(self._world, "price_jump", _args(r))),
            ("DELETE", "/types/{type}", lambda _r, v: acts.perform(self._world, "type_removed", dict(v))),
            ("POST", "/tokens/revoke", lambda r, _v: self._revoke(_args(r))),
            ("POST", "/listener", lambda r, _v: self._listener(_args(r))),
            ("GET", "/guests", lambda _r, _v: guests(self._world)),
            ("GET", "/truth", lambda _r, _v: truth(self._world, self._exchange, self._server.connections_opened)),
            ("GET", "/truth/orphans", lambda r, _v: orphans(self._world, (r.first("known") or "").split(","))),
            ("GET", "/requests", self._requests),
            ("GET", "/events", self._events),
            ("GET", "/ledger", lambda _r, _v: [dataclasses.asdict(row) for row in self._world.state.account.rows]),
            ("POST", "/barrier", self._barrier),
            ("POST", "/restore", self._restore),
        ]

    def _transport(self) -> Mapping[str, Callable[[Args], JsonValue]]:
        """Presets that are neither faults nor acts on the world."""
        return {"token_revoked": self._revoke, "neighbour_storm": self._storm, "listener_down": self._listener}

    def _reset(self, request: Request, _values: Values) -> JsonValue:
        args, old = _args(request), self._world.config
        given = args.get("config")
        data: dict[str, Any] = dict(given) if isinstance(given, dict) else _sections(old)
        data["seed"] = int(number(args, "seed", data.get("seed", old.seed)))
        kept = {"control": old.control, "control_key": old.control_key, "state_file": old.state_file}
        self._world.reset(parse_config({**data, **kept}))
        self._exchange.renew()
        self._server.connections_opened = 0
        return self._clock()

    def _clock(self) -> JsonValue:
        state, due = self._world.state, self._world.core.time.next_ms()
        return {
            "mode": state.clock_mode,
            "factor": state.clock_factor,
            "now": iso(state.now_ms),
            "next_event": None if due is None else iso(due),
            "pending_events": len(state.due),
        }

    def _set_clock(self, request: Request, _values: Values) -> JsonValue:
        args = _args(request)
        mode, factor = word(args, "mode", self._world.state.clock_mode), number(args, "factor", 1.0)
        if mode not in {"real", "scaled", "manual"} or factor <= 0:
            raise invalid("mode must be real, scaled or manual, and factor positive")
        self._world.core.time.set_mode(mode, factor)
        self._world.touch()
        return self._clock()

    def _advance(self, request: Request, _values: Values) -> JsonValue:
        args, state = _args(request), self._world.state
        if args.get("to_next_event") is True:
            applied = self._world.advance_to_next()
        elif "until" in args:
            until_ms = to_ms(datetime.fromisoformat(word(args, "until", "")).timestamp())
            applied = self._world.advance(timedelta(milliseconds=max(0, until_ms - state.now_ms)))
        else:
            applied = self._world.advance(timedelta(seconds=max(0.0, number(args, "seconds", 0))))
        self._world.touch()
        return {"applied": applied, "now": iso(self._world.state.now_ms)}

    def _add_fault(self, request: Request, _values: Values) -> JsonValue:
        """A raw fault, or `{preset, args}`: answers the ids of faults, or what an act was done to."""
        body = _args(request)
        name = word(body, "preset", "")
        if not name:
            return {"faults": [self._exchange.faults.add(Fault.model_validate(body))]}
        given = body.get("args", {})
        args = given if isinstance(given, dict) else {}
        if name in acts.ACTS:
            return {"done": acts.perform(self._world, name, args)}
        if transport := self._transport().get(name):
            return {"done": transport(args)}
        added: list[JsonValue] = [self._exchange.faults.add(fault) for fault in presets.build(name, args)]
        self._world.touch()
        return {"faults": added}

    def _clear_faults(self, _request: Request, _values: Values) -> JsonValue:
        self._exchange.faults.clear()
        return {}

    def _remove_fault(self, _request: Request, values: Values) -> JsonValue:
        if not self._exchange.faults.remove(values["id"]):
            raise not_found("There is no such fault")
        return {}

    def _act(self, request: Request, values: Values) -> JsonValue:
        name = _INSTANCE_ACTS.get(values["act"])
        if name is None:
            raise not_found("There is no such act")
        return {"done": acts.perform(self._world, name, {**_args(request), "id": values["id"]})}

    def _stick_volume(self, _request: Request, values: Values) -> JsonValue:
        return {"done": acts.perform(self._world, "volume_stuck_detaching", {"id": values["id"]})}

    def _balance(self, request: Request, _values: Values) -> JsonValue:
        """Set the balance to `amount` dollars, or `add` to it."""
        args = _args(request)
        if "add" in args:
            self._world.account.top_up(round(number(args, "add", 0) * 1_000_000))
            self._world.touch()
            return {"balance": self._world.state.account.balance_micro / 1_000_000}
        return {"balance": acts.perform(self._world, "balance_low", args)}

    def _capacity(self, request: Request, _values: Values) -> JsonValue:
        """`free` units in a pool, and optionally contracts `closed` (`spot`, `on_demand`) and a `spot_reserve`."""
        args = _args(request)
        family, location = word(args, "family", ""), word(args, "location", "")
        if "free" in args:
            self._world.capacity.set_free(family, location, int(number(args, "free", 0)))
        pool = self._world.state.pools.get(pool_key(family, location))
        if pool is None:
            raise not_found("There is no such pool")
        closed = args.get("closed", [])
        pool.closed = [str(item) for item in closed] if isinstance(closed, list) else []
        pool.spot_reserve = int(number(args, "spot_reserve", pool.spot_reserve))
        self._world.state.availability.clear()
        self._world.touch()
        return _pool(self._world, pool_key(family, location))

    def _revoke(self, args: Args) -> JsonValue:
        refresh_too = args.get("refresh", True) is True
        return {"revoked": self._exchange.api.tokens.revoke_all(refresh_too=refresh_too)}

    def _storm(self, args: Args) -> JsonValue:
        self._exchange.api.limiter.burden(int(number(args, "requests", 500)), int(number(args, "windows", 1)))
        return {}

    def _listener(self, args: Args) -> JsonValue:
        self._server.go_down(number(args, "down_for", number(args, "seconds", 5)))
        return {}

    def _requests(self, request: Request, _values: Values) -> JsonValue:
        since = int(request.first("since") or 0)
        rows = [row for row in self._exchange.log if row.number > since]
        return [{**dataclasses.asdict(row), "at": iso(row.at_ms)} for row in rows[:_PAGE]]

    def _events(self, request: Request, _values: Values) -> JsonValue:
        since = int(request.first("since") or 0)
        rows = [row for row in self._world.state.journal if row.number > since]
        return [{**dataclasses.asdict(row), "at": iso(row.at_ms)} for row in rows[:_PAGE]]

    def _barrier(self, request: Request, _values: Values) -> JsonValue:
        args = _args(request)
        self._barriers.add(word(args, "route", ".*"), int(number(args, "n", 2)))
        return {}

    def _restore(self, request: Request, _values: Values) -> JsonValue:
        self._world.restore(request.body)
        self._exchange.renew()
        return self._clock()


def _args(request: Request) -> dict[str, JsonValue]:
    body = request.json
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise invalid("Request body must be a JSON object")
    return body


def _sections(config: SimulatorConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in SimulatorConfig.model_fields}


def _fault(record: FaultRecord) -> JsonValue:
    return {
        "id": record.id,
        "matched": record.matched,
        "fired": record.fired,
        **record.fault.model_dump(mode="json"),
    }


def _pool(world: World, key: str) -> JsonValue:
    pool = world.state.pools[key]
    return {
        "family": pool.family,
        "location": pool.location,
        "free": sum(host.free for host in pool.hosts),
        "closed": list(pool.closed),
        "hosts": [{**dataclasses.asdict(host), "free": host.free} for host in pool.hosts],
    }


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile("/_sim" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))
