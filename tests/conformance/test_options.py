"""Section 6 of the statements, second part: NodeGroupGetOptions, the answer that can hurt most."""

from typing import Any

import pytest

from tests.protocol.clients import Client

from .autoscaler import NEW_DURATIONS, OLD_DURATIONS, Autoscaler
from .provider import Stage
from .service import Lease

MINUTE_NS = 60 * 10**9
EXPECTED_MINUTES = (30, 20, 15)
"""Unneeded from the group's configuration, unready and provision time from the client's flags."""


def options_bytes(ca: Autoscaler, group: str, **values: Any) -> bytes:
    """The answer as it is on the wire."""
    return ca.raw("NodeGroupGetOptions", ca.request("NodeGroupGetOptions", id=group, **values).SerializeToString())


@pytest.mark.parametrize("minutes", [(10, 20, 15), (0, 0, 0)], ids=["usual flags", "flags of zero"])
def test_061_without_options_of_its_own_a_group_answers_none(
    ca: Autoscaler, lease: Lease, minutes: tuple[int, int, int]
) -> None:
    """Statement 61, F01: an answer without options means "your own flags" in every release; an error does not."""
    answer = ca.call("NodeGroupGetOptions", id=lease(), defaults=ca.flags(minutes))
    assert not answer.HasField("nodeGroupAutoscalingOptions")


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("generation", ["A"])
@pytest.mark.parametrize("group", ["tuned", "tuned-forced"])
def test_062_the_oldest_clients_get_no_options(ca: Autoscaler, group: str) -> None:
    """Statement 62, F01: they cannot be told the provision time, and would take it for zero."""
    assert options_bytes(ca, group, defaults=ca.flags()) == b""


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("generation", ["B", "C", "D"])
def test_062_options_are_the_clients_flags_with_the_overrides_on_top(
    ca: Autoscaler, clients: dict[str, Client]
) -> None:
    """Statement 62, F01: what is not overridden follows the flags; each duration goes in both encodings."""
    data = options_bytes(ca, "tuned", defaults=ca.flags())
    seen = ca.response("NodeGroupGetOptions", data).nodeGroupAutoscalingOptions
    assert seen.scaleDownUtilizationThreshold == 0.5
    assert seen.scaleDownGpuUtilizationThreshold == 0.7
    assert [getattr(seen, old).duration // MINUTE_NS for old in OLD_DURATIONS] == list(EXPECTED_MINUTES)
    if ca.generation in {"C", "D"}:
        assert seen.ignoreDaemonSetsUtilization
        assert not seen.zeroOrMaxNodeScaling
    whole = clients["D"].NodeGroupAutoscalingOptionsResponse.FromString(data).nodeGroupAutoscalingOptions
    for old, new, minutes in zip(OLD_DURATIONS, NEW_DURATIONS, EXPECTED_MINUTES, strict=True):
        assert whole.HasField(old)
        assert whole.HasField(new)
        assert getattr(whole, old).duration == minutes * MINUTE_NS
        assert getattr(whole, new).seconds == minutes * 60


@pytest.mark.usefixtures("stage")
def test_062_a_duration_of_zero_never_leaves(ca: Autoscaler) -> None:
    """Statement 62, F01: nodes would be deleted the moment they are not needed, or before they have booted."""
    assert options_bytes(ca, "tuned", defaults=ca.flags((10, 20, 0))) == b""


@pytest.mark.parametrize("generation", ["E"])
def test_063_the_newest_clients_get_no_options(ca: Autoscaler, stage: Stage) -> None:
    """Statement 63: they cannot be told the start-up time, and would take it for zero. The log says so, once."""
    for _ in range(3):
        assert options_bytes(ca, "tuned", defaults=ca.flags()) == b""
    lines = [line for line in stage.provider.log.read_text().splitlines() if "take the start-up time" in line]
    assert len(lines) == 1


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("generation", ["E"])
def test_063_the_newest_clients_get_options_by_force(ca: Autoscaler) -> None:
    """Statement 63: where the operator insists, every duration they read is there and none is zero."""
    answer = ca.call("NodeGroupGetOptions", id="tuned-forced", defaults=ca.flags())
    options = answer.nodeGroupAutoscalingOptions
    assert [getattr(options, new).seconds // 60 for new in NEW_DURATIONS] == list(EXPECTED_MINUTES)
    assert options.scaleDownUtilizationThreshold == 0.5
    assert options.scaleDownGpuUtilizationThreshold == 0.7
    assert options.ignoreDaemonSetsUtilization


def test_064_a_request_without_defaults_is_answered(ca: Autoscaler, lease: Lease) -> None:
    """Statement 64: with no options, for there is nothing to start from."""
    assert not ca.call("NodeGroupGetOptions", id=lease()).HasField("nodeGroupAutoscalingOptions")


@pytest.mark.usefixtures("stage")
def test_064_nor_with_options_of_its_own(ca: Autoscaler) -> None:
    """Statement 64: the same for a group that has some."""
    assert options_bytes(ca, "tuned") == b""
