"""What concerns the service as a whole: ports, flags of the command line, what this version cannot do yet."""

from pathlib import Path

import pytest

from app.config.load import Overrides
from app.config.notyet import NOT_YET
from app.config.values import Address

from .harness import GROUP, Desk, plain


def test_nothing_is_open_to_others_by_default(desk: Desk) -> None:
    """Whoever reaches the gRPC port can order machines."""
    config = desk.load(GROUP).config
    assert (config.listen, config.http.listen) == (Address("127.0.0.1", 8086), Address("127.0.0.1", 8087))


@pytest.mark.parametrize("listen", ["0.0.0.0:8086", "'[::]:8086'", "10.0.0.1:8086", "provider:8086"])
def test_an_open_port_must_be_said_out_loud(desk: Desk, listen: str) -> None:
    """F69: one missing TLS setting must not open it."""
    ((line, path, message),) = desk.told(GROUP + f"listen: {listen}\n")
    assert (line, path) == (7, "listen")
    assert "can be reached from other machines" in message
    assert "say insecure: true out loud, or add tls, or listen on 127.0.0.1" in message


def test_an_open_port_is_warned_of_at_every_start(desk: Desk) -> None:
    """F69: said once is forgotten soon."""
    ((line, path, message),) = desk.warned(GROUP + "insecure: true\nlisten: 0.0.0.0:8086\n")
    assert (line, path) == (8, "listen")
    assert "let only the autoscaler through" in message
    assert desk.warned(GROUP + "insecure: true\n") == []


def test_an_open_dashboard_is_warned_of(desk: Desk) -> None:
    """Probes need the port open in a cluster, so it is no error."""
    ((line, path, message),) = desk.warned(GROUP + "http:\n  listen: 0.0.0.0:8087\n")
    assert (line, path) == (8, "http.listen")
    assert "shows machines and costs to anyone who can reach it" in message


def test_incomplete_tls_names_what_is_missing(desk: Desk) -> None:
    """F69: all three or none."""
    told = desk.told(GROUP + "tls: {cert: /tls/tls.crt, keys: /tls/tls.key}\n")
    assert [(line, path) for line, path, _ in told] == [
        (7, "tls.key"),
        (7, "tls.client_ca"),
        (7, "tls.keys"),
    ]
    assert told[0][2] == "is missing: Our private key, PEM."
    assert told[2][2] == "is not a known key: did you mean key?"


def test_two_ports_cannot_be_one(desk: Desk) -> None:
    """Told at the one that was written, the HTTP port first."""
    sentence = "gRPC on 127.0.0.1:9000 and HTTP on 127.0.0.1:9000 cannot share a port: give one of them another"
    both = desk.told(GROUP + "listen: 127.0.0.1:9000\nhttp: {listen: 127.0.0.1:9000}\n")
    assert both == [(8, "http.listen", sentence)]
    one = desk.told(GROUP + "listen: 127.0.0.1:8087\n")
    assert one == [(7, "listen", sentence.replace("9000", "8087"))]


def test_credentials_over_an_open_line_are_warned_of(desk: Desk) -> None:
    """A simulator on this machine is fine."""
    ((line, path, message),) = desk.warned(GROUP + "verda: {base_url: 'http://api.example.com/v1'}\n")
    assert (line, path) == (7, "verda.base_url")
    assert "use https://" in message
    assert desk.warned(GROUP + "verda: {base_url: 'http://127.0.0.1:8090/v1'}\n") == []


def test_flags_win_over_the_file(desk: Desk) -> None:
    """They are what an operator types to try something."""
    text = GROUP + "database: a.db\nlogging: {level: error}\nlisten: '[::1]:1'\nhttp: {listen: localhost:2}\n"
    config = desk.load(text, overrides=Overrides(port=8000, http_port=8001, database="b.db", log_level="DEBUG")).config
    assert (config.listen, config.http.listen) == (Address("::1", 8000), Address("localhost", 8001))
    assert (config.database, config.logging.level) == (Path("b.db"), "debug")


def test_a_port_alone_stays_on_loopback(desk: Desk) -> None:
    """As the older provider's only flag, without opening anything."""
    config = desk.load(GROUP, overrides=Overrides(port=9086, http_port=9087)).config
    assert (config.listen, config.http.listen) == (Address("127.0.0.1", 9086), Address("127.0.0.1", 9087))


def test_a_port_keeps_the_files_mistake_at_its_line(desk: Desk) -> None:
    """A flag mends only what it says."""
    told = desk.told(GROUP + "listen: 0.0.0.0:1\n", overrides=Overrides(port=2))
    assert [one[:2] for one in told] == [(7, "listen")]
    told = desk.told(GROUP + "listen: here\n", overrides=Overrides(port=2))
    assert [one[:2] for one in told] == [(7, "listen")]


@pytest.mark.parametrize(
    ("overrides", "flag", "message"),
    [
        (Overrides(port=70_000), "--port", "must be a port between 0 and 65535, is 70000"),
        (Overrides(http_port=-1), "--http-port", "must be a port between 0 and 65535, is -1"),
        (Overrides(database=""), "--database", 'must not be empty, is ""'),
        (
            Overrides(log_level="loud"),
            "--log-level",
            'must be debug, info, warning, error or critical, is "loud"',
        ),
        (
            Overrides(port=8087),
            "--port",
            "gRPC on 127.0.0.1:8087 and HTTP on 127.0.0.1:8087 cannot share a port: give one of them another",
        ),
    ],
)
def test_wrong_flags_are_told_as_flags(desk: Desk, overrides: Overrides, flag: str, message: str) -> None:
    """Not as keys of a file that does not hold them."""
    (problem,) = desk.problems(GROUP, overrides=overrides)
    assert problem.source == "command line"
    assert plain(problem) == (None, flag, message)


def test_the_files_problems_come_before_the_flags(desk: Desk) -> None:
    """Each is named by where it was said."""
    problems = desk.problems(GROUP + "claim: x\n", overrides=Overrides(port=-1))
    assert [problem.source for problem in problems] == [str(desk.path), "command line"]


def test_flags_on_a_section_that_is_none(desk: Desk) -> None:
    """The file's mistake stays the only one."""
    told = desk.told(GROUP + "http: x\nlogging: y\n", overrides=Overrides(http_port=1, log_level="info"))
    assert [one[:2] for one in told] == [(7, "http"), (8, "logging")]


NOT_YET_SAMPLES = {
    "node_groups.*.replace_lost": "    replace_lost: true\n",
}


@pytest.mark.parametrize(("pattern", "more"), NOT_YET_SAMPLES.items())
def test_what_this_version_cannot_do_is_refused(desk: Desk, pattern: str, more: str) -> None:
    """Ignoring it would be a promise broken in silence."""
    path = pattern.replace("*", "gpu")
    assert desk.told(GROUP + more) == [(7, path, f"cannot be used in this version: {NOT_YET[pattern]}")]


def test_webhook_groups_are_judged(desk: Desk) -> None:
    """Their keys are known already."""
    text = """\
node_groups:
  old:
    kind: webhook
    machines:
    - {name: a, gpu_count: 4, scale_up_endpoint: "http://a/up", scale_down_endpoint: "http://a/down"}
    - {name: b, gpu_count: x, scale_up_endpoint: "http://b/up"}
    max_size: 3
"""
    assert desk.told(text) == [
        (6, "node_groups.old.machines[1].gpu_count", 'must be a whole number, is "x"'),
        (6, "node_groups.old.machines[1].scale_down_endpoint", "is missing: POST here switches the machine off."),
        (7, "node_groups.old.max_size", "is not a known key: it belongs to the other kind of node group"),
    ]


def test_a_webhook_group_needs_machines(desk: Desk) -> None:
    """An empty list is no better than none."""
    told = desk.told("node_groups:\n  old:\n    kind: webhook\n    machines: []\n")
    assert told == [(4, "node_groups.old.machines", "must not be empty, is a list")]


def test_every_refused_key_has_its_test() -> None:
    """A line added to the table needs one here."""
    assert set(NOT_YET_SAMPLES) == set(NOT_YET)


def test_defaults_of_refused_keys_are_fine(desk: Desk) -> None:
    """A file that spells out every default is a good file."""
    text = (
        GROUP
        + """\
    kind: verda
    mig_profile: null
    startup_script:
    script_values: {}
tls: null
http: {token_file: null}
backup: {directory: var/backups, every: 1h, keep: 24}
kubernetes: {enabled: false, events: true}
startup_script_server: {listen: null, url: null}
"""
    )
    assert desk.told(text) == []


def test_refused_keys_are_refused_in_defaults_too(desk: Desk) -> None:
    """Once, at their line."""
    told = desk.told(GROUP + "defaults:\n  replace_lost: true\n")
    assert [one[:2] for one in told] == [(8, "defaults.replace_lost")]
