"""Faults in force: picking the one that strikes, and what it does to an answer."""

import copy
import json
import re
from dataclasses import replace
from typing import Any

from app.simulator.fault_model import (
    Fault,
    FaultRecord,
    Mutate,
    Patch,
    Phase,
    Redirect,
    ReplaceBody,
    Reshape,
    Say,
)
from app.simulator.records import InstanceRecord, Status
from app.simulator.wire import Request, Response, text
from app.simulator.world import World

_INSTANCE_PATH = re.compile(r"/v1/instances/([^/]+)")


class Faults:
    """The faults of one world, in order of creation."""

    def __init__(self, world: World) -> None:
        self._world = world

    def add(self, fault: Fault) -> str:
        """Put a fault in force; returns its id."""
        return self._world.add_fault(fault)

    def remove(self, fault_id: str) -> bool:
        """Lift a fault; False if there is none of that id."""
        return self._world.state.faults.pop(fault_id, None) is not None

    def clear(self) -> None:
        """Lift all."""
        self._world.state.faults.clear()

    def pick(self, phase: Phase, request: Request) -> FaultRecord | None:
        """The fault that strikes now, counted as fired."""
        for record in self._world.state.faults.values():
            fault = record.fault
            if fault.phase is phase and self._matches(fault, request) and self._fires(record, request.path):
                return record
        return None

    def _matches(self, fault: Fault, request: Request) -> bool:
        match = fault.match
        if match.client is not None and match.client != self._client(request):
            return False
        if match.method not in {None, request.method} or not re.fullmatch(match.path, request.path):
            return False
        fields = request.fields if match.body else {}
        for key, pattern in match.body.items():
            value = fields.get(key)
            if not re.search(pattern, value if isinstance(value, str) else json.dumps(value)):
                return False
        return match.younger_than_s is None or self._is_young(request.path, match.younger_than_s)

    def _client(self, request: Request) -> object:
        token = request.headers.get("authorization", "").rpartition(" ")[2]
        found = self._world.state.tokens.get(token)
        return request.fields.get("client_id") if found is None else found.client_id

    def _is_young(self, path: str, age_s: float) -> bool:
        found = _INSTANCE_PATH.match(path)
        instance = self._world.state.instances.get(found[1]) if found else None
        return instance is not None and self._world.state.now_ms - instance.created_ms < age_s * 1000

    def _fires(self, record: FaultRecord, path: str) -> bool:
        fault = record.fault
        matched, fired = record.paths.get(path, (0, 0)) if fault.per_path else (record.matched, record.fired)
        if fault.times >= 0 and fired >= fault.times:
            return False
        record.matched += 1
        hit = matched >= fault.skip and (
            fault.probability >= 1
            or self._world.core.chance.happens("fault", f"{record.id}|{record.matched}", fault.probability)
        )
        record.fired += int(hit)
        if fault.per_path:
            record.paths[path] = (matched + 1, fired + int(hit))
        return hit


def spoil(world: World, action: object, response: Response) -> Response:
    """Apply an action that changes an answer's content; any other action leaves it as it is."""
    match action:
        case Say():
            return say(action, committed=response.committed)
        case ReplaceBody():
            body = action.text.replace("{body}", response.body().decode())
            return replace(response, text=body, raw=True, content_type=action.content_type)
        case Mutate():
            return replace(response, payload=mutated(response.payload, action.patches))
        case Redirect():
            return text(action.status, "", committed=response.committed).with_headers({"Location": action.location})
        case Reshape():
            return replace(response, payload=_reshaped(world, action, response.payload))
        case _:
            return response


def say(action: Say, *, committed: bool = False) -> Response:
    """The answer an action puts in place of the real one."""
    if action.json_body is not None:
        return Response(status=action.status, payload=action.json_body, headers=action.headers, committed=committed)
    return text(action.status, action.text, action.content_type, committed=committed).with_headers(action.headers)


def mutated(payload: object, patches: tuple[Patch, ...]) -> object:
    """A copy of a JSON value with patches applied; paths that lead nowhere change nothing."""
    changed = copy.deepcopy(payload)
    for patch in patches:
        if not patch.path:
            changed = patch.value
        else:
            _patch(changed, patch.path, patch)
    return changed


def _patch(node: Any, path: tuple[str, ...], patch: Patch) -> None:
    head, rest = path[0], path[1:]
    if isinstance(node, list):
        for index in _indexes(node, head):
            _step(node, index, rest, patch)
    elif isinstance(node, dict):
        for key in list(node) if head == "*" else [head]:
            _step(node, key, rest, patch)


def _indexes(node: list[Any], head: str) -> list[int]:
    """Which elements a path element means: `*`, a number, or `key=value` of the elements' own fields."""
    key, equals, value = head.partition("=")
    if equals:
        return [at for at, item in enumerate(node) if isinstance(item, dict) and item.get(key) == value]
    if head == "*":
        return list(range(len(node)))
    return [int(head)] if head.isdigit() and int(head) < len(node) else []


def _step(node: Any, key: Any, rest: tuple[str, ...], patch: Patch) -> None:
    if rest:
        if isinstance(node, list) or key in node:
            _patch(node[key], rest, patch)
    elif patch.op == "set":
        node[key] = patch.value
    elif isinstance(node, list) or key in node:
        del node[key]


def _reshaped(world: World, action: Reshape, payload: object) -> object:
    rows: list[Any] = list(payload) if isinstance(payload, list) else []
    match action.how:
        case "empty":
            return []
        case "reverse":
            return rows[::-1]
        case "duplicate":
            return [*rows, *rows[:1]]
        case "huge":
            return [*rows, *(_strangers(rows, round(action.amount)))]
        case "hole":
            return _with_hole(world, action, rows)
        case _:
            return _as_of(world, world.state.now_ms - round(action.amount * 1000))


def _with_hole(world: World, action: Reshape, rows: list[Any]) -> list[Any]:
    if action.instance_id is not None:
        return [row for row in rows if row["id"] != action.instance_id]
    if not rows:
        return rows
    left_out = world.core.chance.stream("hole", world.core.ordinal("hole")).randrange(len(rows))
    return rows[:left_out] + rows[left_out + 1 :]


def _strangers(rows: list[Any], count: int) -> list[Any]:
    padding = "x" * 2000
    model = rows[0] if rows else {"status": "running", "hostname": "stranger", "location": "FIN-01"}
    return [
        {**model, "id": f"{number:08x}-0000-4000-8000-000000000000", "hostname": f"stranger-{number}", "notes": padding}
        for number in range(count)
    ]


def _as_of(world: World, at_ms: int) -> list[dict[str, object]]:
    """GET /instances as it would have been at an earlier instant."""
    rows = []
    for instance in world.state.instances.values():
        status = _status_at(instance, at_ms)
        if status is not None and status != Status.DISCONTINUED and not instance.hidden:
            rows.append(world.views.instance(instance, status))
    return rows


def _status_at(instance: InstanceRecord, at_ms: int) -> str | None:
    return next((status for since, status in reversed(instance.history) if since <= at_ms), None)
