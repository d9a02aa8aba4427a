"""NodeGroupGetOptions: the answer that can hurt most, because a client takes for zero what it does not find."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.nodegroup.spec import AutoscalingOptions
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.generation import Generation, client_generation, encode_options, why_withheld

from .clients import Client

MINUTE_NS = 60_000_000_000
OLD = ("scaleDownUnneededTime", "scaleDownUnreadyTime", "MaxNodeProvisionTime")
NEW = ("scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration")
UNTOUCHED = AutoscalingOptions()
UNNEEDED_HALF_AN_HOUR = AutoscalingOptions(scale_down_unneeded_time=timedelta(minutes=30))


def defaults_of(client: Client, *, minutes: tuple[int, int, int] = (10, 20, 15)) -> Any:
    """What a client sends as its flags: every field it knows, thresholds 0.5 and 0.6."""
    sent = client.NodeGroupAutoscalingOptions(scaleDownUtilizationThreshold=0.5, scaleDownGpuUtilizationThreshold=0.6)
    for old, new, value in zip(OLD, NEW, minutes, strict=True):
        if client.knows("NodeGroupAutoscalingOptions", old):
            getattr(sent, old).duration = value * MINUTE_NS
        if client.knows("NodeGroupAutoscalingOptions", new):
            getattr(sent, new).seconds = value * 60
    return sent


def request_of(client: Client, **kwargs: Any) -> pb.NodeGroupAutoscalingOptionsRequest:
    """A client's request as it arrives here."""
    sent = client.NodeGroupAutoscalingOptionsRequest(id="gpu", defaults=defaults_of(client, **kwargs))
    return pb.NodeGroupAutoscalingOptionsRequest.FromString(sent.SerializeToString())


def answer_to(client: Client, overrides: AutoscalingOptions, **kwargs: Any) -> Any:
    """The client's view of our answer."""
    options = encode_options(request_of(client, **kwargs).defaults, overrides)
    answer = pb.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=options)
    return client.NodeGroupAutoscalingOptionsResponse.FromString(answer.SerializeToString())


def durations_read_by(client: Client, options: Any) -> dict[str, int]:
    """Every duration this generation finds, by field name, in minutes."""
    found = {}
    for name in OLD:
        if client.knows("NodeGroupAutoscalingOptions", name) and options.HasField(name):
            found[name] = getattr(options, name).duration / MINUTE_NS
    for name in NEW:
        if client.knows("NodeGroupAutoscalingOptions", name) and options.HasField(name):
            found[name] = getattr(options, name).seconds / 60
    return found


@pytest.mark.parametrize(
    ("letter", "generation"),
    [
        ("A", Generation.A),
        ("B", Generation.B_OR_C),
        ("C", Generation.B_OR_C),
        ("D", Generation.D),
        ("E", Generation.E),
    ],
)
@pytest.mark.parametrize("minutes", [(10, 20, 15), (0, 0, 0)])
def test_a_clients_generation_shows_in_its_defaults(
    clients: Mapping[str, Client], letter: str, generation: Generation, minutes: tuple[int, int, int]
) -> None:
    """Presence is exact: even durations of zero are sent as messages."""
    assert client_generation(request_of(clients[letter], minutes=minutes).defaults) is generation


@pytest.mark.parametrize("fields", [(), OLD[:1], (*OLD[:2], *NEW), NEW[:2], (*OLD, *NEW[:1]), OLD[2:]], ids="+".join)
def test_other_combinations_belong_to_no_client(fields: tuple[str, ...]) -> None:
    """Better no options than options for a client we do not know."""
    defaults = pb.NodeGroupAutoscalingOptions()
    for name in fields:
        getattr(defaults, name).SetInParent()
    assert client_generation(defaults) is None
    assert encode_options(defaults, UNNEEDED_HALF_AN_HOUR) is None


def test_without_overrides_every_client_gets_the_empty_answer(client: Client) -> None:
    """Conformance 61: the only answer that means "your flags" in every release."""
    answer = answer_to(client, UNTOUCHED)
    assert not answer.HasField("nodeGroupAutoscalingOptions")
    assert answer.SerializeToString() == b""


def test_forcing_alone_overrides_nothing(clients: Mapping[str, Client]) -> None:
    """The switch for new autoscalers is no option of the group."""
    forced = AutoscalingOptions(force_for_new_autoscalers=True)
    assert not answer_to(clients["E"], forced).HasField("nodeGroupAutoscalingOptions")


def test_without_defaults_there_is_nothing_to_start_from() -> None:
    """Conformance 64: such a request is answered like any other, with no options."""
    assert encode_options(None, UNNEEDED_HALF_AN_HOUR) is None
    assert encode_options(pb.NodeGroupAutoscalingOptionsRequest(id="gpu").defaults, UNNEEDED_HALF_AN_HOUR) is None


def test_the_oldest_clients_never_get_options(clients: Mapping[str, Client]) -> None:
    """Conformance 62, F01: 1.27 and 1.28 would take the provision time they cannot receive for zero."""
    forced = UNNEEDED_HALF_AN_HOUR.model_copy(update={"force_for_new_autoscalers": True})
    assert not answer_to(clients["A"], forced).HasField("nodeGroupAutoscalingOptions")


@pytest.mark.parametrize("letter", ["B", "C", "D"])
def test_one_override_leaves_everything_else_as_the_client_sent_it(clients: Mapping[str, Client], letter: str) -> None:
    """Conformance 62: flags of the autoscaler keep working, in each encoding it reads."""
    client = clients[letter]
    options = answer_to(client, UNNEEDED_HALF_AN_HOUR).nodeGroupAutoscalingOptions
    assert options.scaleDownUtilizationThreshold == 0.5
    assert options.scaleDownGpuUtilizationThreshold == 0.6
    expected = dict(zip(OLD, (30, 20, 15), strict=True))
    if letter == "D":
        expected |= dict(zip(NEW, (30, 20, 15), strict=True))
    assert durations_read_by(client, options) == expected


@pytest.mark.parametrize("letter", ["B", "C", "D"])
def test_both_encodings_are_always_sent(clients: Mapping[str, Client], letter: str) -> None:
    """Conformance 62: 15 minutes are 900 000 000 000 in field 5 and 900 seconds in field 10."""
    options = encode_options(
        request_of(clients[letter]).defaults, AutoscalingOptions(max_node_provision_time=timedelta(minutes=15))
    )
    assert options is not None
    assert [getattr(options, name).duration for name in OLD] == [600 * 10**9, 1200 * 10**9, 900 * 10**9]
    assert [getattr(options, name).seconds for name in NEW] == [600, 1200, 900]
    assert [getattr(options, name).nanos for name in NEW] == [0, 0, 0]


def test_all_overrides_arrive(clients: Mapping[str, Client]) -> None:
    """Every option of the configuration has its field."""
    client = clients["C"]
    overrides = AutoscalingOptions(
        scale_down_utilization_threshold=0.0,
        scale_down_gpu_utilization_threshold=0.9,
        scale_down_unneeded_time=timedelta(seconds=90),
        scale_down_unready_time=timedelta(minutes=5),
        max_node_provision_time=timedelta(minutes=45),
        zero_or_max_node_scaling=True,
        ignore_daemon_sets_utilization=True,
    )
    options = answer_to(client, overrides).nodeGroupAutoscalingOptions
    assert options.scaleDownUtilizationThreshold == 0.0
    assert options.scaleDownGpuUtilizationThreshold == 0.9
    assert durations_read_by(client, options) == dict(zip(OLD, (1.5, 5, 45), strict=True))
    assert options.zeroOrMaxNodeScaling
    assert options.ignoreDaemonSetsUtilization


def test_an_override_can_switch_a_flag_off(clients: Mapping[str, Client]) -> None:
    """False is a value, not the absence of one."""
    defaults = request_of(clients["C"]).defaults
    defaults.ignoreDaemonSetsUtilization = True
    defaults.zeroOrMaxNodeScaling = True
    options = encode_options(defaults, AutoscalingOptions(ignore_daemon_sets_utilization=False))
    assert options is not None
    assert options.ignoreDaemonSetsUtilization is False
    assert options.zeroOrMaxNodeScaling is True


def test_new_clients_get_options_only_if_the_operator_insists(clients: Mapping[str, Client]) -> None:
    """Conformance 63: from 1.35 on, any options make the start-up time zero, and a second node is bought."""
    client = clients["E"]
    assert not answer_to(client, UNNEEDED_HALF_AN_HOUR).HasField("nodeGroupAutoscalingOptions")
    forced = UNNEEDED_HALF_AN_HOUR.model_copy(update={"force_for_new_autoscalers": True})
    options = answer_to(client, forced).nodeGroupAutoscalingOptions
    assert durations_read_by(client, options) == dict(zip(NEW, (30, 20, 15), strict=True))
    assert options.scaleDownGpuUtilizationThreshold == 0.6


def test_the_bytes_are_those_worked_out_by_hand(clients: Mapping[str, Client]) -> None:
    """Thresholds 0.5 and 10 minutes three times: nanoseconds in 3 to 5, seconds in 8 to 10."""
    client = clients["B"]
    options = encode_options(
        request_of(client, minutes=(10, 10, 10)).defaults,
        AutoscalingOptions(scale_down_gpu_utilization_threshold=0.5),
    )
    assert options is not None
    assert options.SerializeToString() == bytes.fromhex(
        "09 00 00 00 00 00 00 e0 3f  11 00 00 00 00 00 00 e0 3f"
        "1a 07 08 80 e0 a5 96 bb 11  22 07 08 80 e0 a5 96 bb 11  2a 07 08 80 e0 a5 96 bb 11"
        "42 03 08 d8 04  4a 03 08 d8 04  52 03 08 d8 04"
    )


@pytest.mark.parametrize("letter", ["A", "B", "C", "D", "E"])
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_flag_of_zero_is_not_repeated(clients: Mapping[str, Client], letter: str, zero: int) -> None:
    """F01: no zero ever leaves the server; the empty answer leaves the client its own flag, which is that zero."""
    flags = [10, 20, 15]
    flags[zero] = 0
    overrides = AutoscalingOptions(scale_down_utilization_threshold=0.3, force_for_new_autoscalers=True)
    answer = answer_to(clients[letter], overrides, minutes=(flags[0], flags[1], flags[2]))
    assert not answer.HasField("nodeGroupAutoscalingOptions")


@pytest.mark.parametrize("duration", [timedelta(0), timedelta(seconds=-1)])
def test_an_override_of_zero_is_not_sent(clients: Mapping[str, Client], duration: timedelta) -> None:
    """F01: a node would be deleted in the first loop in which nobody needs it."""
    overrides = AutoscalingOptions(scale_down_unneeded_time=duration)
    assert encode_options(request_of(clients["D"]).defaults, overrides) is None


def test_the_longest_override_is_the_longest_a_client_can_hold(clients: Mapping[str, Client]) -> None:
    """Go counts durations in 63 bits of nanoseconds, 292 years."""
    overrides = AutoscalingOptions(scale_down_unneeded_time=timedelta.max)
    options = encode_options(request_of(clients["D"]).defaults, overrides)
    assert options is not None
    assert options.scaleDownUnneededTime.duration == 2**63 - 1
    assert options.scaleDownUnneededDuration.ToNanoseconds() == 2**63 - 1


def test_a_field_we_do_not_know_is_sent_back(clients: Mapping[str, Client]) -> None:
    """Should a release transport one more option, its flag survives our answer: field 15, a varint of 7."""
    sent = defaults_of(clients["D"]).SerializeToString() + bytes.fromhex("78 07")
    options = encode_options(pb.NodeGroupAutoscalingOptions.FromString(sent), UNNEEDED_HALF_AN_HOUR)
    assert options is not None
    assert bytes.fromhex("78 07") in options.SerializeToString()


@given(
    letter=st.sampled_from("ABCDE"),
    minutes=st.tuples(*[st.integers(0, 90)] * 3),
    unneeded=st.none() | st.timedeltas(timedelta(0), timedelta(days=2)),
    unready=st.none() | st.timedeltas(timedelta(0), timedelta(days=2)),
    provision=st.none() | st.timedeltas(timedelta(0), timedelta(days=2)),
    forced=st.booleans(),
)
def test_no_client_ever_reads_a_zero_duration(
    clients: Mapping[str, Client],
    letter: str,
    minutes: tuple[int, int, int],
    unneeded: timedelta | None,
    unready: timedelta | None,
    provision: timedelta | None,
    forced: bool,  # noqa: FBT001  # an axis of the search
) -> None:
    """F01: either no options at all, or every duration the client reads, above zero and equal in both encodings."""
    client = clients[letter]
    overrides = AutoscalingOptions(
        scale_down_unneeded_time=unneeded,
        scale_down_unready_time=unready,
        max_node_provision_time=provision,
        force_for_new_autoscalers=forced,
    )
    options = encode_options(request_of(client, minutes=minutes).defaults, overrides)
    if options is None:
        return
    assert letter in "BCDE"
    for old, new in zip(OLD, NEW, strict=True):
        nanoseconds = getattr(options, old).duration
        assert nanoseconds > 0
        assert getattr(options, new).ToNanoseconds() == nanoseconds


@pytest.mark.parametrize(
    ("generation", "minutes", "words"),
    [
        ("A", (10, 20, 15), "Cluster Autoscaler 1.25-1.28 would take the provision time"),
        ("B", (10, 20, 15), ""),
        ("D", (10, 0, 15), "a duration of zero would delete nodes before they have booted"),
        ("E", (10, 20, 15), "Cluster Autoscaler 1.35+ would take the start-up time"),
    ],
)
def test_the_reason_for_withholding_is_told(
    clients: Mapping[str, Client], generation: str, minutes: tuple[int, int, int], words: str
) -> None:
    """The operator learns which release makes the group's options useless, and what to do instead."""
    request = request_of(clients[generation], minutes=minutes)
    reason = why_withheld(request.defaults, UNNEEDED_HALF_AN_HOUR)
    assert reason.startswith(words)
    assert bool(reason) == bool(words)
    assert (encode_options(request.defaults, UNNEEDED_HALF_AN_HOUR) is None) == bool(words)
