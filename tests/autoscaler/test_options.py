"""Options of a group: who may be told them, and what happens to who is told too little."""

from datetime import timedelta

import pytest

from .ca.flags import Options
from .ca.releases import RELEASES, Release, release
from .conftest import MakeStage
from .groups import gpu
from .stage.sights import Sight
from .stage.stage import Stage

TOLD = frozenset({"B", "C", "D"})
"""Generations that can be told a group's options without harm."""

FIFTEEN = {"scale_down_unneeded_time": timedelta(minutes=15)}
GENTLE = Options(scale_down_unready_time=timedelta(minutes=33), max_node_provision_time=timedelta(minutes=17))


def options_of(stage: Stage, defaults: Options) -> Options:
    """What the autoscaler works with for the one group."""
    (group,) = stage.autoscaler.provider.node_groups()
    return group.options(defaults)


def test_a_longer_wait_reaches_those_who_can_be_told(make_stage: MakeStage, release: Release) -> None:
    """Scenario 11. Fifteen minutes instead of ten; the oldest and the newest autoscalers keep to their flags."""
    stage = make_stage(gpu(autoscaling_options=FIFTEEN))
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    stage.cluster.finish("train")
    deleted_at = 1125 if release.generation in TOLD else 825
    stage.until(deleted_at - 5)
    assert stage.sight("gpu").books == "1 running"
    stage.until(deleted_at + 15)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.story() == ["30 ScaledUpGroup gpu 1", f"{deleted_at} ScaleDown gpu 1"]


def test_what_is_not_overridden_stays_what_the_flags_say(make_stage: MakeStage, release: Release) -> None:
    """F01. Nothing becomes zero on the way, in no generation, whether anything is overridden or not."""
    assert options_of(make_stage(gpu()), GENTLE) == GENTLE
    overrides = {**FIFTEEN, "max_node_provision_time": timedelta(minutes=20)}
    told = options_of(make_stage(gpu(autoscaling_options=overrides)), GENTLE)
    if release.generation not in TOLD:
        assert told == GENTLE
        return
    assert told.scale_down_unneeded_time == timedelta(minutes=15)
    assert told.scale_down_unready_time == timedelta(minutes=33)
    assert told.max_node_provision_time == timedelta(minutes=20)
    assert (told.scale_down_utilization_threshold, told.scale_down_gpu_utilization_threshold) == (0.5, 0.5)


@pytest.mark.parametrize("release", [release(35), release(36)], ids=str, indirect=True)
def test_whoever_insists_buys_twice_while_gpus_are_late(make_stage: MakeStage) -> None:
    """Why generation E is told nothing: with any options its start-up time is zero.

    So a node that is not ready yet is broken, not upcoming, and its pod needs another one. An operator may insist; this
    is what it costs.
    """
    stage = make_stage(gpu(autoscaling_options={**FIFTEEN, "force_for_new_autoscalers": True}))
    stage.kubelets.gpu_delay = timedelta(minutes=5)
    stage.cluster.submit("train", gpus=1)
    stage.until(160)
    assert options_of(stage, Options()).max_node_startup_time == timedelta(0)
    assert stage.story() == ["30 ScaledUpGroup gpu 1", "150 ScaledUpGroup gpu 1"]
    stage.until(170)
    assert stage.sight("gpu").ca == "target 2, 1 unready, 1 unregistered, 1 upcoming, InProgress"


@pytest.mark.parametrize("letter", "ABCDE")
def test_every_generation_is_played(letter: str) -> None:
    """The list of releases leaves no generation of the protocol out."""
    assert letter in {one.generation for one in RELEASES}
