"""From a seed to a story: which steps, in which order. The first steps of a longer story are those of a shorter one."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.chance import stream
from tests.simulation.effects import DiskTrouble
from tests.simulation.setting import CONFIGURATIONS, GROUPS
from tests.simulation.stage import PutBack
from tests.simulation.steps import Step
from tests.simulation.steps.asking import BadRequests, Decrease, Delete, DeleteAgain, DeleteFailed, Increase, Register
from tests.simulation.steps.passing import (
    BadDisk,
    Copy,
    Kill,
    KillAtEffect,
    PutCopyBack,
    Reconfigure,
    Restart,
    Wait,
    WallClock,
)
from tests.simulation.steps.trouble import (
    Befall,
    Blind,
    CloudFault,
    EmptyCatalogue,
    HumanEdit,
    HumanVolume,
    LateOrder,
    Outage,
    Project,
    Recovery,
    Stock,
    Stranger,
)

_LIST = "/v1/instances"
_ONE = "/v1/instances/[^/]+"

_CREATE_FAULTS: Sequence[Step] = (
    CloudFault("create_timeout_before_commit"),
    CloudFault("create_timeout_after_commit"),
    CloudFault("create_reset_after_commit"),
    CloudFault("create_close_after_commit"),
    CloudFault("create_truncated"),
    CloudFault("create_cut_id"),
    *(CloudFault("create_5xx_before", (("status", status),)) for status in (500, 502, 503, 504)),
    *(CloudFault("create_5xx_after", (("status", status),)) for status in (500, 502, 503, 504)),
    CloudFault("create_quoted_id"),
    CloudFault("create_object_id"),
    CloudFault("create_newline_id"),
    CloudFault("create_empty_body"),
    CloudFault("create_get_404"),
    CloudFault("no_capacity_503"),
    CloudFault("no_capacity_async"),
    CloudFault("quota_gpu", (("times", 1),)),
    CloudFault("quota_gpu", (("mode", "error"), ("times", 1))),
    CloudFault("stuck_ordered"),
    CloudFault("stuck_provisioning"),
    CloudFault("install_error"),
    CloudFault("installation_failed"),
    CloudFault("evict_seconds_after_create", (("seconds", 5),)),
    CloudFault("evict_seconds_after_create", (("seconds", 90),)),
    CloudFault("rate_limit", (("method", "POST"), ("path", _LIST), ("retry_after", 7))),
    CloudFault("token_scope_403", (("skip", 1),)),
    *(LateOrder(seconds) for seconds in (20.0, 60.0, 100.0, 240.0)),
)
_READ_FAULTS: Sequence[Step] = (
    *(
        CloudFault("list_stale", (("lag", lag), ("times", times)))
        for lag, times in ((15, 1), (60, 2), (80, 4), (60, 30))
    ),
    *(CloudFault("list_empty", (("times", times),)) for times in (1, 2, 4)),
    *(CloudFault("list_hole", (("times", times),)) for times in (1, 3, 6)),
    CloudFault("list_duplicate"),
    CloudFault("list_reordered", (("times", 5),)),
    CloudFault("list_truncated_json"),
    CloudFault("object_partial"),
    CloudFault("object_unknown_status", (("times", 3),)),
    CloudFault("object_extra_fields"),
    CloudFault("object_null_id"),
    CloudFault("location_missing"),
    CloudFault("slow", (("seconds", 45),)),
    CloudFault("html_502", (("times", 2),)),
    CloudFault("empty_500"),
    CloudFault("json_null"),
    CloudFault("json_list_error"),
    CloudFault("ok_html"),
    CloudFault("token_expired_midflight"),
    CloudFault("rate_limit", (("method", "GET"), ("path", _LIST))),
    CloudFault("rate_limit", (("method", "GET"), ("path", _ONE))),
    CloudFault("html_502", (("method", "GET"), ("path", _ONE), ("times", 2))),
    CloudFault("spot_price_null", (("times", 1),)),
    CloudFault("type_missing_field", (("field", "gpu"), ("times", 1))),
    EmptyCatalogue(),
)
_DELETE_FAULTS: Sequence[Step] = (
    CloudFault("delete_refused_provisioning", (("times", 2),)),
    CloudFault("delete_partial"),
    CloudFault("delete_lost"),
    CloudFault("delete_lost", (("times", 2),)),
    CloudFault("delete_timeout_before_commit"),
    CloudFault("delete_timeout_after_commit"),
    CloudFault("delete_403_already"),
    CloudFault("os_volume_left"),
    CloudFault("os_volume_left", (("times", 3),)),
    CloudFault("rate_limit", (("method", "PUT"), ("path", _LIST), ("retry_after", 20))),
)
_SCRIPT_FAULTS: Sequence[Step] = tuple(
    CloudFault(preset, (("method", method), ("path", f"/v1/scripts{path}")))
    for preset in ("html_502", "empty_500", "rate_limit")
    for method, path in (("POST", ""), ("GET", ""), ("DELETE", "/[^/]+"))
)
_BLOWS: Sequence[Step] = (
    *(Befall("evict"),) * 2,
    *(Befall("vanish_then_return", (("seconds", seconds),)) for seconds in (15, 60, 200, 700, 180_000)),
    Befall("vanish"),
    Befall("stick"),
    Befall("unstick"),
    Befall("fail"),
    Befall("fail", (("status", "installation_failed"),)),
    Befall("fail", (("status", "no_capacity"),)),
    Befall("offline"),
    Befall("human_delete"),
    Befall("human_shutdown"),
    Befall("set_status", (("value", "migrating"),)),
    HumanEdit(),
    HumanVolume(),
)
_PROJECT: Sequence[Step] = (
    Project("evict_wave"),
    Project("evict_wave", (("share", 0.5),)),
    Project("price_jump", (("factor", 1.3),)),
    Project("price_jump", (("factor", 0.7),)),
    Project("type_removed", (("type", "1H100.80S.30V"),)),
    Project("balance_zero"),
    Project("balance_low", (("amount", 0.5),)),
    Project("clock_skew", (("seconds", -300),)),
    Project("clock_skew", (("seconds", 300),)),
)
_LIKENESSES = (
    "same name as one of ours",
    "same name as an order of unknown outcome",
    "same cluster, other installation",
    "our mark, but no name of ours",
    "other cluster",
    "a name like ours",
)
_SPELLINGS = ("verda://{name}", "verda://{id}", "datacrunch://{id}", "VERDA://{name}", "")
_STOCK = (("FIN-01", "H100"), ("FIN-02", "H100"), ("FIN-03", "CPU"))

Maker = Callable[[random.Random], Step]


def _one_of(steps: Sequence[Step]) -> Maker:
    return lambda draw: draw.choice(steps)


def _wait(draw: random.Random) -> Step:
    kind = draw.random()
    if kind < 0.5:
        return Wait(round(draw.uniform(0.5, 12), 1))
    if kind < 0.93:
        return Wait(float(draw.randrange(12, 90)))
    return Wait(float(draw.randrange(150, 900)))


def _down(draw: random.Random) -> float:
    return draw.choice((0.0, 0.0, 3.0, 20.0, 120.0, 600.0))


def _delete(draw: random.Random) -> Step:
    return Delete(
        draw.choice(GROUPS),
        draw.choice((1, 1, 2, 4)),
        coming_too=draw.random() < 0.5,
        one_by_one=draw.random() < 0.5,
        stranger=draw.random() < 0.1,
    )


def _bad_disk(draw: random.Random) -> Step:
    trouble = draw.choice(tuple(DiskTrouble))
    return BadDisk(trouble, draw.choice((1, 1, 2, 5)), draw.choice((0, 0, 1, 3)))


_MOODS = (0.0, 0.5, 1.0, 1.0, 2.0, 3.0)
"""Every story has kinds of steps that never happen in it and others that happen often: together they go further."""
_STEADY: tuple[tuple[float, Maker], ...] = (
    (34, _wait),
    (13, lambda draw: Increase(draw.choice(GROUPS), draw.choice((1, 1, 2, 3)), draw.choice((5.0,) * 9 + (0.0,)))),
    (0.15, lambda draw: Wait(draw.choice((30_000.0, 200_000.0)))),
)
_MOODY: tuple[tuple[float, Maker], ...] = (
    (8, _delete),
    (4, lambda _: DeleteFailed()),
    (2, lambda _: DeleteAgain()),
    (2, lambda draw: Decrease(draw.choice(GROUPS), draw.choice((1, 2)))),
    (1.5, lambda draw: Register(draw.choice(GROUPS), draw.choice(_SPELLINGS))),
    (0.5, lambda _: BadRequests()),
    (8, _one_of(_CREATE_FAULTS)),
    (5, _one_of(_READ_FAULTS)),
    (4, _one_of(_DELETE_FAULTS)),
    (2, _one_of(_SCRIPT_FAULTS)),
    (5, _one_of(_BLOWS)),
    (1, _one_of(_PROJECT)),
    (2, lambda draw: Stranger(draw.choice(_LIKENESSES))),
    (2, lambda draw: Stock(*draw.choice(_STOCK), draw.choice((0, 0, 1, 4, 8)))),
    (1, lambda _: Outage()),
    (2, lambda _: Recovery()),
    (0.7, lambda draw: Blind(draw.choice((0.3, 0.6, 1.0)), draw.choice((60.0, 200.0, 400.0, 900.0)))),
    (2, lambda draw: Kill(_down(draw))),
    (4, lambda draw: KillAtEffect(draw.choice((0, 1, 2, 3, 4, 6, 9, 15, 30)), _down(draw))),
    (0.7, lambda draw: Restart(draw.randrange(len(CONFIGURATIONS)), _down(draw))),
    (0.7, lambda draw: Reconfigure(draw.randrange(len(CONFIGURATIONS)))),
    (1.5, _bad_disk),
    (1, lambda _: Copy()),
    (0.5, lambda draw: PutCopyBack(draw.choice((0, 0, 1, 3)), draw.choice(tuple(PutBack)), _down(draw))),
    (0.7, lambda draw: WallClock(draw.choice((-90.0, -5.0, 2.0, 30.0)))),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A step with its place in the story, and the key of what it draws while it happens."""

    number: int
    step: Step
    salt: int


def steps(seed: int) -> Iterator[Planned]:
    """The endless story of a seed. It begins with time for the provider to start and something to do."""
    draw = stream("plan", seed)
    weights = [weight for weight, _ in _STEADY] + [weight * draw.choice(_MOODS) for weight, _ in _MOODY]
    opening: list[Step] = [Wait(float(draw.choice((1, 11)))), Increase(draw.choice(GROUPS), 2)]
    number = 0
    while True:
        number += 1
        ((_, make),) = draw.choices(_STEADY + _MOODY, weights)
        step = make(draw)
        yield Planned(number, opening.pop(0) if opening else step, draw.getrandbits(32))
