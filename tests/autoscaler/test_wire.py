"""The same play over a real connection."""

from datetime import timedelta

import pytest

from .ca.flags import Flags, Options
from .ca.releases import Release, release
from .conftest import StageFor
from .groups import gpu
from .stage.stage import Stage
from .stage.wires import Port

HASTY = Flags(
    defaults=Options(scale_down_unneeded_time=timedelta(seconds=20)),
    scale_down_delay_after_add=timedelta(seconds=30),
    frequent_loops=False,
)


def play(stage: Stage) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Three nodes come and go; what was told, and every call that was made."""
    stage.cluster.submit("train-1", "train-2", "train-3", gpus=1)
    stage.until(160)
    stage.cluster.finish("train-1", "train-2", "train-3")
    stage.until(240)
    calls = [(rpc.method, rpc.group, rpc.code) for rpc in stage.autoscaler.provider.rpcs]
    return stage.story(), calls


@pytest.mark.parametrize("chosen", [release(28), release(31), release(33), release(34), release(36)], ids=str)
def test_a_real_channel_makes_no_difference(stage_for: StageFor, chosen: Release) -> None:
    """Scenarios 1 and 5 over loopback, deletions in parallel: the same story and the same calls as without sockets."""
    direct = play(stage_for(chosen, gpu(), flags=HASTY))
    assert direct[0] == ["30 ScaledUpGroup gpu 3", *["205 ScaleDown gpu 1"] * 3]
    assert {code for _, _, code in direct[1]} == {"OK"}
    assert play(stage_for(chosen, gpu(), flags=HASTY, port=Port())) == direct
