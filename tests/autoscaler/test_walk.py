"""Everything at once, at random, for half an hour: promises hold after every tick, and in the end nothing is left."""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from app.simulator.errors import ApiError

from .ca.flags import Flags, Options
from .ca.releases import RELEASES, Release
from .conftest import StageFor
from .groups import base, gpu, spot
from .stage.stage import Stage, minutes

STEPS: Final = 120
OUTAGES_END: Final = 0.4
"""Chance at each step."""
QUICK: Final[Mapping[str, Any]] = {
    "durations": {"preset": "fast", "ordering": 2, "provisioning": 20, "guest": 5, "deleting": 5, "no_capacity": 5}
}

EVENTFUL: Final = 8
"""So many machines are made at least, or the walk shows little."""

TROUBLES: Final = (
    "create_timeout_after_commit",
    "create_timeout_before_commit",
    "create_reset_after_commit",
    "create_5xx_after",
    "create_5xx_before",
    "create_truncated",
    "no_capacity_503",
    "no_capacity_async",
    "install_error",
    "guest_never_joins",
    "delete_lost",
    "delete_timeout_after_commit",
    "delete_403_already",
    "list_empty",
    "list_hole",
    "list_duplicate",
    "list_truncated_json",
    "rate_limit",
    "html_502",
)
ACTS: Final = ("evict", "fail", "human_delete", "human_shutdown")

HASTY: Final = Flags(
    defaults=Options(scale_down_unneeded_time=minutes(1), max_node_provision_time=minutes(5)),
    scale_down_delay_after_add=minutes(1),
    initial_backoff=minutes(1),
    max_backoff=minutes(2),
)


class Walk:
    """Draws what happens next."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._pods = 0
        self._steps: tuple[Callable[[], object], ...] = (
            *(self._more_work,) * 5,
            *(self._work_ends,) * 3,
            *(self._trouble,) * 2,
            self._act,
            self._restart,
            self._outage,
        )

    def step(self) -> None:
        """One thing and a little time; outages end as they begin."""
        if self._random.random() < OUTAGES_END:
            self._stage.cloud.down = self._stage.line.is_cut = False
        self._random.choice(self._steps)()
        self._stage.pass_time(self._random.choice((5, 10, 20)))

    def _more_work(self) -> None:
        self._pods += 1
        gpus = self._random.choice((0, 1, 1))
        self._stage.cluster.submit(f"pod-{self._pods}", gpus=gpus, cpu=self._random.choice(("1", "3", "6")))

    def _work_ends(self) -> None:
        at_work = [pod.name for pod in self._stage.cluster.pods() if pod.node is not None]
        if at_work:
            self._stage.cluster.finish(self._random.choice(at_work))

    def _trouble(self) -> None:
        self._stage.cloud.trouble(self._random.choice(TROUBLES))

    def _act(self) -> None:
        act = self._random.choice(ACTS)
        alive = [item for item in self._stage.world.state.instances.values() if item.ended_ms is None]
        fitting = [item for item in alive if item.is_spot or act != "evict"]
        if fitting:
            try:
                self._stage.cloud.trouble(act, id=self._random.choice(fitting).id)
            except ApiError:
                return  # it is not in a state in which that could happen

    def _restart(self) -> None:
        self._random.choice(
            (
                self._stage.restart_autoscaler,
                self._stage.restart_provider,
                lambda: self._stage.restart_provider(killed=True),
            )
        )()

    def _outage(self) -> None:
        cloud, line = self._stage.cloud, self._stage.line
        self._random.choice(
            (
                lambda: setattr(cloud, "down", True),
                lambda: setattr(line, "is_cut", True),
                lambda: line.lost.update({"NodeGroupIncreaseSize": 1}),
                lambda: line.lost.update({"NodeGroupDeleteNodes": 1}),
            )
        )()


@pytest.mark.parametrize("chosen", RELEASES, ids=str)
def test_whatever_happens_the_promises_hold(stage_for: StageFor, chosen: Release) -> None:
    """F09. Target is what is listed and not being deleted, one machine a slot, stable ids, errors only on failures.

    Then all work ends and all trouble too: every machine is given back, by a working autoscaler.
    """
    patience: dict[str, Any] = {"create_timeout": minutes(3), "provision_timeout": minutes(10)}
    groups = (gpu(**patience), spot(**patience), base(min_size=0, **patience))
    stage = stage_for(chosen, *groups, flags=HASTY, cloud=QUICK)
    walk = Walk(stage, seed=chosen.minor)
    for _ in range(STEPS):
        walk.step()
    assert stage.world.state.counters.creates_committed >= EVENTFUL
    stage.cloud.down = stage.line.is_cut = False
    stage.line.lost.clear()
    stage.cloud.exchange.faults.clear()
    stage.cluster.finish(*(pod.name for pod in stage.cluster.pods()))
    stage.wait_for(lambda: not list(stage.process.books.listed_instances()), at_most=7200)
    failed = len(stage.failed_loops())
    stage.pass_time(300)
    assert len(stage.failed_loops()) == failed
    assert {stage.sight(group.name).truth for group in groups} == {"nothing"}
