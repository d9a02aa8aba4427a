"""Named faults on requests: each is one control call. Acts of the platform and of people are in `acts`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic import JsonValue, TypeAdapter

from app.simulator.arguments import Args, number, word
from app.simulator.errors import ApiError, invalid
from app.simulator.fault_model import (
    Action,
    Bend,
    Close,
    Delay,
    Drip,
    Fault,
    Hang,
    Match,
    Mutate,
    Patch,
    Phase,
    ReplaceBody,
    Reset,
    Reshape,
    Say,
    Truncate,
)
from app.simulator.steer import Fate, GuestFate, Steer

Preset = Callable[[Args], tuple[Fault, ...]]

_CREATE = Match(method="POST", path="/v1/instances")
_DELETE = Match(method="PUT", path="/v1/instances", body={"action": "^(delete|discontinue)$"})
_LIST = Match(method="GET", path="/v1/instances")
_GET = Match(method="GET", path="/v1/instances/[^/]+")
_OBJECTS = Match(method="GET", path="/v1/instances(/[^/]+)?")
_TOKEN = Match(method="POST", path="/v1/oauth2/token")
_REFRESH = Match(method="POST", path="/v1/oauth2/token", body={"grant_type": "^refresh_token$"})
_TYPES = Match(method="GET", path="/v1/instance-types")
_API = Match(path="/v1/(?!oauth2).*")
_HTML = "<html><head><title>{}</title></head><body><center><h1>{}</h1></center></body></html>"
_GATEWAY = {502: "502 Bad Gateway", 503: "503 Service Temporarily Unavailable", 504: "504 Gateway Time-out"}

_B, _A, _R = Phase.BEFORE_COMMIT, Phase.AFTER_COMMIT, Phase.RESPONSE


def _refuse(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Say:
    return Say(status=status, json_body={"code": code, "message": message}, headers=headers or {})


def _broken(status: int) -> Say:
    """A 5xx: JSON for 500, a gateway's page for the others."""
    if status not in _GATEWAY:
        return _refuse(status, "server_error", "Internal server error")
    return Say(status=status, text=_HTML.format(_GATEWAY[status], _GATEWAY[status]))


def _one(match: Match, phase: Phase, action: Action) -> Preset:
    return lambda _args: (Fault(match=match, phase=phase, action=action),)


def _fate(fate: Fate) -> Preset:
    return _one(_CREATE, _B, Bend(steer=Steer(fate=fate)))


def _hang(match: Match, phase: Phase) -> Preset:
    return lambda args: (Fault(match=match, phase=phase, action=Hang(seconds=number(args, "seconds", 3600))),)


def _fivexx(phase: Phase) -> Preset:
    return lambda args: (Fault(match=_CREATE, phase=phase, action=_broken(int(number(args, "status", 500)))),)


def _reply(status: int, text: str, content_type: str = "text/html") -> Preset:
    def build(args: Args) -> tuple[Fault, ...]:
        match = Match(method=word(args, "method", "") or None, path=word(args, "path", _API.path))
        return (Fault(match=match, phase=_B, action=Say(status=status, text=text, content_type=content_type)),)

    return build


def _throttle(text: str) -> Preset:
    def build(args: Args) -> tuple[Fault, ...]:
        headers = {"Retry-After": str(int(number(args, "retry_after", 30)))}
        match = Match(method=word(args, "method", "") or None, path=word(args, "path", _API.path))
        say = Say(status=429, text=text, content_type="application/json; charset=utf-8", headers=headers)
        return (Fault(match=match, phase=_B, action=say),)

    return build


def _patched(match: Match, *patches: Patch) -> Preset:
    return _one(match, _R, Mutate(patches=patches))


def _removed(field: str, *places: str) -> tuple[Patch, ...]:
    return tuple(Patch(op="remove", path=(place, field) if place else (field,)) for place in places)


def _object_set(field: str, value: JsonValue, *places: str) -> tuple[Patch, ...]:
    return tuple(Patch(op="set", path=(place, field) if place else (field,), value=value) for place in places)


def _reshape(how: str, amount_name: str = "amount", amount: float = 1.0) -> Preset:
    def build(args: Args) -> tuple[Fault, ...]:
        chosen = {
            "how": how,
            "amount": number(args, amount_name, amount),
            "instance_id": word(args, "id", "") or None,
        }
        return (Fault(match=_LIST, phase=_R, action=Reshape.model_validate(chosen)),)

    return build


def _unknown_status(args: Args) -> tuple[Fault, ...]:
    patches = _object_set("status", word(args, "status", "migrating"), "0", "")
    return (Fault(match=_OBJECTS, phase=_R, action=Mutate(patches=patches)),)


def _get_404(args: Args) -> tuple[Fault, ...]:
    match = _GET.model_copy(update={"younger_than_s": number(args, "younger_than_s", 60)})
    action = _refuse(404, "not_found", "Invalid instance id")
    return (Fault(match=match, phase=_B, action=action, times=int(number(args, "n", 2)), per_path=True),)


def _type_patch(args: Args, *, remove: bool) -> tuple[Fault, ...]:
    place = f"instance_type={word(args, 'type', '1H100.80S.30V')}"
    field = word(args, "field", "supported_os") if remove else "spot_price"
    patch = Patch(op="remove" if remove else "set", path=(place, field))
    return (Fault(match=_TYPES, phase=_R, action=Mutate(patches=(patch,)), times=-1),)


def _lies(args: Args) -> tuple[Fault, ...]:
    """`in_stock`: said to be there, refused when ordered; `sold_out`: the reverse; `string`: `"false"` with quotes."""
    mode = word(args, "mode", "in_stock")
    one = Match(method="GET", path="/v1/instance-availability/[^/]+")
    if mode == "in_stock":
        refuse = Fault(match=_CREATE, phase=_B, action=Bend(steer=Steer(sold_out=True)), times=-1)
        return (Fault(match=one, phase=_R, action=ReplaceBody(text="true"), times=-1), refuse)
    text = '"false"' if mode == "string" else "false"
    every = Match(method="GET", path="/v1/instance-availability")
    emptied = Mutate(patches=(Patch(op="set", path=("*", "availabilities"), value=[]),))
    faults = (Fault(match=one, phase=_R, action=ReplaceBody(text=text), times=-1),)
    return faults if mode == "string" else (*faults, Fault(match=every, phase=_R, action=emptied, times=-1))


def _quota(args: Args) -> tuple[Fault, ...]:
    """`refuse`: 403 at once; `error`: accepted, then `error` with GPU_QUOTA_EXCEEDED in the journal."""
    if word(args, "mode", "refuse") == "error":
        steer = Steer(fate=Fate.ERROR, failure="GPU_QUOTA_EXCEEDED")
        return (Fault(match=_CREATE, phase=_B, action=Bend(steer=steer), times=-1),)
    return (Fault(match=_CREATE, phase=_B, action=_refuse(403, "forbidden_action", "GPU quota exceeded"), times=-1),)


def _evicted(args: Args) -> tuple[Fault, ...]:
    return (Fault(match=_CREATE, phase=_B, action=Bend(steer=Steer(evict_after_s=number(args, "seconds", 5)))),)


def _joins_late(args: Args) -> tuple[Fault, ...]:
    return (Fault(match=_CREATE, phase=_B, action=Bend(steer=Steer(guest_delay_s=number(args, "seconds", 1200)))),)


def _slow(args: Args) -> tuple[Fault, ...]:
    match = Match(path=word(args, "path", _API.path))
    return (Fault(match=match, phase=_R, action=Delay(seconds=number(args, "seconds", 5))),)


def _drip(args: Args) -> tuple[Fault, ...]:
    drip = Drip(bytes=int(number(args, "bytes", 2)), interval_s=number(args, "interval", 0.4))
    return (Fault(match=Match(path=word(args, "path", _API.path)), phase=_R, action=drip),)


def _auth_slow(args: Args) -> tuple[Fault, ...]:
    return (Fault(match=_TOKEN, phase=_R, action=Delay(seconds=number(args, "seconds", 5))),)


def _auth_missing(args: Args) -> tuple[Fault, ...]:
    patch = Patch(op="remove", path=(word(args, "key", "scope"),))
    return (Fault(match=_TOKEN, phase=_R, action=Mutate(patches=(patch,))),)


_EXTRA: JsonValue = {"nested": [1, 2, {"three": None}]}
_PARTIAL = tuple(
    patch
    for field in ("hostname", "price_per_hour", "created_at", "cpu", "ssh_key_ids")
    for patch in _removed(field, "0", "")
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "create_timeout_before_commit": _hang(_CREATE, _B),
        "create_timeout_after_commit": _hang(_CREATE, _A),
        "create_reset_after_commit": _one(_CREATE, _A, Reset()),
        "create_close_after_commit": _one(_CREATE, _A, Close()),
        "create_truncated": _one(_CREATE, _A, Truncate(bytes=9)),
        "create_cut_id": _one(_CREATE, _A, Truncate(bytes=9, with_length=False)),
        "create_5xx_before": _fivexx(_B),
        "create_5xx_after": _fivexx(_A),
        "create_quoted_id": _one(_CREATE, _R, ReplaceBody(text='"{body}"')),
        "create_object_id": _one(_CREATE, _R, ReplaceBody(text='{"id": "{body}"}')),
        "create_newline_id": _one(_CREATE, _R, ReplaceBody(text="{body}\n", content_type="text/plain")),
        "create_empty_body": _one(_CREATE, _R, ReplaceBody(text="", content_type="text/plain")),
        "create_get_404": _get_404,
        "no_capacity_503": _one(_CREATE, _B, Bend(steer=Steer(sold_out=True))),
        "no_capacity_async": _fate(Fate.NO_CAPACITY),
        "rate_limit": _throttle("rate limit!"),
        "rate_limit_empty": _throttle(""),
        "html_502": _reply(502, _HTML.format(_GATEWAY[502], _GATEWAY[502])),
        "empty_500": _reply(500, ""),
        "json_null": _reply(500, "null", "application/json"),
        "json_list_error": _reply(500, "[]", "application/json"),
        "ok_html": _reply(200, _HTML.format("Welcome", "Welcome")),
        "token_expired_midflight": _one(
            _API, _B, _refuse(401, "unauthorized_request", "Access token is missing or invalid")
        ),
        "token_scope_403": _one(_API, _B, _refuse(403, "forbidden_action", "Insufficient scope")),
        "auth_down": _one(_TOKEN, Phase.ACCEPT, Close()),
        "auth_slow": _auth_slow,
        "auth_html": _one(_TOKEN, _B, _broken(502)),
        "auth_missing_key": _auth_missing,
        "refresh_rejected": _one(_REFRESH, _B, _refuse(401, "unauthorized_request", "Invalid refresh token")),
        "expires_in_zero": _patched(_TOKEN, Patch(op="set", path=("expires_in",), value=0)),
        "expires_in_string": _patched(_TOKEN, Patch(op="set", path=("expires_in",), value="3600")),
        "list_stale": _reshape("stale", "lag", 30.0),
        "list_empty": _reshape("empty"),
        "list_hole": _reshape("hole"),
        "list_duplicate": _reshape("duplicate"),
        "list_reordered": _reshape("reverse"),
        "list_truncated_json": _one(_LIST, _R, Truncate(bytes=200, with_length=False)),
        "list_huge": _reshape("huge", "count", 5000.0),
        "object_partial": _patched(_OBJECTS, *_PARTIAL),
        "object_unknown_status": _unknown_status,
        "object_extra_fields": _patched(_OBJECTS, *_object_set("future_field", _EXTRA, "*", "")),
        "object_null_id": _patched(_OBJECTS, *_object_set("id", None, "0", "")),
        "location_missing": _patched(_OBJECTS, *_removed("location", "0", "")),
        "slow": _slow,
        "drip": _drip,
        "delete_refused_provisioning": _one(
            _DELETE, _B, _refuse(403, "forbidden_action", "Can't discontinue a provisioning instance")
        ),
        "delete_partial": lambda args: (
            Fault(match=_DELETE, phase=_B, action=Bend(steer=Steer(fail_items=int(number(args, "n", 1))))),
        ),
        "delete_lost": _one(_DELETE, _B, Bend(steer=Steer(pretend=True))),
        "delete_timeout_before_commit": _hang(_DELETE, _B),
        "delete_timeout_after_commit": _hang(_DELETE, _A),
        "delete_403_already": _one(
            _DELETE, _A, _refuse(403, "forbidden_action", "Can't discontinue a discontinued instance")
        ),
        "os_volume_left": _one(_DELETE, _B, Bend(steer=Steer(leave_os_volume=True))),
        "stuck_provisioning": _fate(Fate.STUCK_PROVISIONING),
        "stuck_ordered": _fate(Fate.STUCK_ORDERED),
        "install_error": _fate(Fate.ERROR),
        "installation_failed": _fate(Fate.INSTALLATION_FAILED),
        "evict_seconds_after_create": _evicted,
        "guest_never_joins": _one(_CREATE, _B, Bend(steer=Steer(guest=GuestFate.NEVER_JOINS))),
        "guest_joins_late": _joins_late,
        "guest_wrong_provider_id": _one(_CREATE, _B, Bend(steer=Steer(guest=GuestFate.WRONG_PROVIDER_ID))),
        "quota_gpu": _quota,
        "spot_price_null": lambda args: _type_patch(args, remove=False),
        "type_missing_field": lambda args: _type_patch(args, remove=True),
        "availability_lies": _lies,
    }
)

_PATTERNS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


def build(name: str, args: Args) -> tuple[Fault, ...]:
    """The faults of a preset.

    Besides its own arguments every preset takes `times`, `skip`, `probability` and `body`, a mapping of JSON fields of
    the request to patterns that must match too.

    Raises:
        ApiError: 404 for an unknown name, 400 for a wrong argument.
    """
    preset = PRESETS.get(name)
    if preset is None:
        raise ApiError(404, "not_found", f"There is no preset {name}")
    common = {key: args[key] for key in ("times", "skip", "probability") if key in args}
    try:
        extra = _PATTERNS.validate_python(args.get("body", {}))
        return tuple(
            Fault.model_validate(
                {
                    **fault.model_dump(),
                    **common,
                    "name": name,
                    "match": {**fault.match.model_dump(), "body": {**fault.match.body, **extra}},
                }
            )
            for fault in preset(args)
        )
    except ValueError as error:
        raise invalid(str(error)) from error
