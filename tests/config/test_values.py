"""Single values: durations, addresses, numbers, text, templates, quantities."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.config import values
from app.config.model import Config
from app.config.values import Address

from .harness import GROUP, Desk


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10s", timedelta(seconds=10)),
        ("15m", timedelta(minutes=15)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1d", timedelta(days=1)),
        ("1d2h3m4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("500ms", timedelta(milliseconds=500)),
        ("90m", timedelta(minutes=90)),
        ("0s", timedelta(0)),
    ],
)
def test_durations(text: str, length: timedelta) -> None:
    """Any of the units, the largest first."""
    assert values.duration(text) == length


@given(st.integers(min_value=0, max_value=366 * 86_400_000).map(lambda ms: timedelta(milliseconds=ms)))
def test_durations_are_written_as_they_are_read(length: timedelta) -> None:
    """So that a shown configuration can be loaded again."""
    assert values.duration(values.duration_text(length)) == length


@pytest.mark.parametrize("written", ["30", "1.5", "abc", '""', "30 s", "-5s", "5s1m", "1h 30m", "٣s", "[1s]", "true"])
def test_a_duration_needs_its_unit(desk: Desk, written: str) -> None:
    """A bare 30 was seconds to one reader and minutes to the next."""
    ((line, path, message),) = desk.told(GROUP + f"verda:\n  timeout: {written}\n")
    assert (line, path) == (8, "verda.timeout")
    assert message.startswith("must be a duration with its unit, is ")
    assert message.endswith(": write it like 30s, 15m, 1h30m or 1d")


def test_the_offending_value_is_told_as_written(desk: Desk) -> None:
    """Numbers bare, text in quotes."""
    number = desk.told(GROUP + "verda: {timeout: 030.50}\n")[0][2]
    text = desk.told(GROUP + "verda: {timeout: soon}\n")[0][2]
    assert ", is 030.50: " in number
    assert ', is "soon": ' in text


@pytest.mark.parametrize(
    ("written", "words"),
    [("0s", "must be longer than 0s"), ("9999d", "must be at most 366d"), ("367d", "at most 366d")],
)
def test_durations_have_bounds(desk: Desk, written: str, words: str) -> None:
    """Nothing waits for ever and no job runs without pause."""
    ((line, path, message),) = desk.told(GROUP + f"intervals: {{observe: {written}}}\n")
    assert (line, path) == (7, "intervals.observe")
    assert words in message
    assert message.endswith(f'is "{written}"')


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:8086", "127.0.0.1", 8086, True),
        ("127.8.0.1:1", "127.8.0.1", 1, True),
        ("localhost:8086", "localhost", 8086, True),
        ("[::1]:8086", "::1", 8086, True),
        ("[0:0:0:0:0:0:0:1]:0", "::1", 0, True),
        ("[::]:8086", "::", 8086, False),
        ("0.0.0.0:8086", "0.0.0.0", 8086, False),
        ("provider.kube-system.svc:8086", "provider.kube-system.svc", 8086, False),
    ],
)
def test_addresses(text: str, host: str, port: int, loopback: bool) -> None:  # noqa: FBT001 - a table's column
    """Host and port, and whether other machines can reach it."""
    address = values.address(text)
    assert (address.host, address.port, address.is_loopback()) == (host, port, loopback)
    assert values.address(str(address)) == address


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("8086", "must be host:port, is 8086: write 127.0.0.1:8086 to be reached from this machine only"),
        ('"8086"', 'must be host:port, is "8086": write it like 127.0.0.1:8086'),
        ('":8086"', "write 0.0.0.0:8086 if you mean every network of this machine"),
        ('"::1:8086"', "an IPv6 address stands in brackets, like [::1]:8086"),
        ('"[::g]:8086"', "an IPv6 address looks like [::1]:8086"),
        ('"[127.0.0.1]:8086"', "must be host:port"),
        ("127.0.0.1:http", "must be a whole number"),
        ("127.0.0.1:70000", "must be a port between 0 and 65535"),
        ("127.0.0.1:-1", "must be a port between 0 and 65535"),
        ("a b:1", "must be host:port"),
        ("http://127.0.0.1:8086", "must be host:port"),
        ("[a]", "must be text, is a list"),
        ("true", "must be text, is true: put it in quotes"),
    ],
)
def test_wrong_addresses(desk: Desk, written: str, words: str) -> None:
    """Each with its own remedy: these are typed at night."""
    ((line, path, message),) = desk.told(GROUP + f"listen: {written}\n")
    assert (line, path) == (7, "listen")
    assert words in message


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("127.0.0.1:1", "127.0.0.1:1", True),
        ("0.0.0.0:1", "127.0.0.1:1", True),
        ("127.0.0.1:1", "[::]:1", True),
        ("127.0.0.1:1", "127.0.0.2:1", False),
        ("127.0.0.1:1", "127.0.0.1:2", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
    ],
)
def test_overlapping_addresses(one: str, other: str, overlap: bool) -> None:  # noqa: FBT001 - a table's column
    """Port 0 is a different one each time."""
    assert values.address(one).overlaps(values.address(other)) is overlap


@pytest.mark.parametrize(
    ("key", "written", "words"),
    [
        ("loss_brake", "20%", 'must be a number, is "20%": write it like 0.60'),
        ("loss_brake", "1.5", "must be at most 1"),
        ("loss_brake", "0", "must be more than 0"),
        ("loss_brake", "true", "must be a number, is true"),
        ("max_hourly_cost", "-3", "must be more than 0, is -3"),
        ("max_hourly_cost", ".inf", "must be a number"),
        ("max_hourly_cost", ".nan", "must be a number"),
        ("max_hourly_cost", "1e99", "must be a number"),
        ("max_hourly_cost", "5000000", "must be at most 1000000"),
        ("max_hourly_cost", "[1]", "must be a number, is a list"),
        ("insecure", "maybe", 'must be true or false, is "maybe"'),
        ("insecure", "1", "must be true or false, is 1"),
        ("cluster_name", "17", "must be text, is 17: put it in quotes"),
        ("cluster_name", "no", "must be text, is no: put it in quotes"),
        ("cluster_name", "2026-01-01", "must be a name without spaces"),
        ("cluster_name", "my cluster", 'must be a name without spaces, is "my cluster": letters, digits'),
        ("cluster_name", "{a: 1}", "must be text, is a mapping"),
        ("claim", "manuel", 'must be manual or auto, is "manuel": did you mean manual?'),
        ("orphans", "keep", 'must be adopt, delete or report, is "keep"'),
        ("orphans", "3", "must be adopt, delete or report, is 3"),
        ("database", '""', 'must not be empty, is ""'),
        ("database", "sqlite:///var/x.db", "must be the path of a file"),
        ("database", '":memory:"', "write it like var/provider.db"),
        ("gpu_label", "a b", "must be a Kubernetes label key"),
        ("provider_id_template", '"verda://{host}"', "{hostname}, {instance_id}, {location}, {group}"),
        ("provider_id_template", '"verda://{hostname!r}"', "must have no placeholders but"),
        ("provider_id_template", '"verda://{hostname:>9}"', "must have no placeholders but"),
        ("provider_id_template", '"verda://{}"', "must have no placeholders but"),
        ("provider_id_template", '"verda://{hostname"', "must have its braces in pairs"),
        ("provider_id_template", '"verda://{group}"', "must hold {hostname} or {instance_id}"),
        ("provider_id_template", '"{hostname}"', "must look like scheme://something"),
        ("verda", "fast", "must be a mapping of keys and values"),
        ("verda", "[a]", "must be a mapping of keys and values, is a list"),
        ("node_groups2", "{}", "is not a known key: did you mean node_groups?"),
    ],
)
def test_wrong_values(desk: Desk, key: str, written: str, words: str) -> None:
    """What it must be, what it is, and how to mend it."""
    ((line, path, message),) = desk.told(GROUP + f"{key}: {written}\n")
    assert (line, path) == (7, key)
    assert words in message


@pytest.mark.parametrize(
    ("key", "written", "words"),
    [
        ("base_url", "api.verda.com", "must be an http:// or https:// address"),
        ("base_url", "ftp://api.verda.com", "must be an http:// or https:// address"),
        ("base_url", "http://[::1", "must be an http:// or https:// address"),
        ("base_url", "https://x:y/z", "must be an http:// or https:// address"),
        ("base_url", "'https://a b'", "must be an http:// or https:// address"),
        ("rate_share", "2", "must be at most 1, is 2"),
        ("parallel_creates", "0", "must be at least 1, is 0"),
        ("parallel_creates", "65", "must be at most 64, is 65"),
        ("parallel_creates", "8.5", "must be a whole number, is 8.5"),
        ("parallel_creates", "yes", "must be a whole number, is yes"),
        ("parallel_creates", "0x10", 'must be a whole number, is "0x10"'),
        ("client_id", "''", "must not be empty"),
        ("timeot", "3s", "is not a known key: did you mean timeout?"),
        ("qqq", "3s", "is not a known key: known are base_url, client_id, "),
    ],
)
def test_wrong_values_in_a_section(desk: Desk, key: str, written: str, words: str) -> None:
    """Also one level down."""
    ((line, path, message),) = desk.told(GROUP + f"verda:\n  # a comment\n  {key}: {written}\n")
    assert (line, path) == (9, f"verda.{key}")
    assert words in message


def test_the_cloud_may_end_in_a_slash(desk: Desk) -> None:
    """Paths are appended to it."""
    config = desk.load(GROUP + "verda: {base_url: 'http://127.0.0.1:8090/v1/'}\n").config
    assert config.verda.base_url == "http://127.0.0.1:8090/v1"


def test_numbers_may_be_text(desk: Desk) -> None:
    """Templating tools quote everything."""
    config = desk.load(GROUP + 'insecure: "true"\nloss_brake: "0.5"\nbackup: {keep: "24"}\n').config
    assert (config.insecure, config.loss_brake, config.backup.keep) == (True, 0.5, 24)


def test_the_level_may_be_in_capitals(desk: Desk) -> None:
    """As the older provider's flag was."""
    assert desk.load(GROUP + "logging: {level: INFO}\n").config.logging.level == "info"


def test_the_model_takes_values_as_they_come_from_python() -> None:
    """Other parts of the program build a configuration without a file."""
    group = {
        "instance_type": "1A100.22V",
        "image": "x",
        "max_size": 3,
        "location": "FIN-01",
        "hourly_price": Decimal(1),
    }
    config = Config.model_validate({
        "listen": Address("127.0.0.1", 0),
        "verda": {"timeout": timedelta(seconds=3), "rate_share": 0.25},
        "node_groups": {"gpu": group},
    })  # fmt: skip
    assert (config.listen.port, config.verda.timeout, config.verda.rate_share) == (0, timedelta(seconds=3), 0.25)


def test_a_written_configuration_can_be_read_again(desk: Desk) -> None:
    """`model_dump(mode="json")` uses the file's own forms."""
    config = desk.load(GROUP + "listen: '[::1]:1'\nverda: {timeout: 1h30m}\n    \n").config
    assert Config.model_validate(config.model_dump(mode="json", exclude_none=True)) == config
    assert config.model_dump(mode="json")["verda"]["timeout"] == "1h30m"


def test_the_model_has_a_json_schema() -> None:
    """For editors that complete keys."""
    schema = Config.model_json_schema()
    assert schema["properties"]["listen"]["type"] == "string"
    assert schema["additionalProperties"] is False
