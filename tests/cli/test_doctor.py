"""`doctor` against a simulated account: each mistake is found, with its remedy, and nothing else is blamed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.certificates import issue, make_authority
from app.cli.checks import machine, past
from app.cli.checks.finding import Verdict
from app.clock import FakeClock, SystemClock
from app.config.load import load
from app.config.model import Config
from app.domain.instance.commands import AttemptCreate, RecordCreateRefused, Refusal
from app.simulator.http import Simulator
from tests.e2e.harness import control, simulator
from tests.store.harness import CA, one_more, opened, start

from .prompt import run

KEY = "11111111-2222-4333-8444-555555555555"
SCRIPT = "99999999-8888-4777-8666-555555555555"
GROUP: dict[str, Any] = {
    "instance_type": "1A100.22V",
    "image": "ubuntu-24.04-cuda-12.8-open-docker",
    "location": "FIN-01",
    "max_size": 3,
    "ssh_key_ids": [KEY],
    "startup_script_id": SCRIPT,
}


@pytest.fixture(scope="module")
def account() -> Iterator[Simulator]:
    """An account with a key and a script."""
    settings = {
        "durations": {"preset": "fast"},
        "limits": {"enabled": False},
        "ssh_keys": [{"name": "anna", "id": KEY, "text": "ssh-ed25519 AAAA anna"}],
        "scripts": [{"name": "join", "id": SCRIPT, "text": "#!/bin/sh"}],
    }
    with simulator(settings) as sim:
        yield sim


class Patient:
    """A configuration to be looked at."""

    def __init__(self, directory: Path, sim: Simulator) -> None:
        self.directory = directory
        self.settings: dict[str, Any] = {
            "verda": {"base_url": sim.base_url, "client_id": "simulator", "client_secret": "simulator"},
            "database": str(directory / "provider.db"),
            "node_groups": {"gpu": dict(GROUP)},
        }

    @property
    def path(self) -> Path:
        """The file."""
        path = self.directory / "config.yaml"
        path.write_text(yaml.safe_dump(self.settings))
        return path

    def config(self) -> Config:
        """As the checks get it."""
        return load(self.path, environ={}).config

    def findings(self, code: int = 0) -> dict[str, tuple[str, str, str]]:
        """Verdict, what was seen and remedy of each check that is not fine, as the command tells them."""
        result = run("doctor", "--config", self.path, "--output", "yaml")
        assert result.exit_code == code, (result.output, result.exception)
        found = yaml.safe_load(result.stdout)
        assert all(bool(one["remedy"]) == (one["verdict"] != "fine") for one in found)
        told = {one["check"]: (one["verdict"], one["seen"], one["remedy"]) for one in found}
        for expected in ("server", "quota"):  # nobody serves here, and there is no database yet
            assert told.pop(expected)[0] == "unknown"
        return {check: one for check, one in told.items() if one[0] != "fine"}


@pytest.fixture
def patient(tmp_path: Path, account: Simulator) -> Patient:
    """One to whom nothing is wrong."""
    return Patient(tmp_path, account)


def test_who_is_well_is_told_so(patient: Patient) -> None:
    """And everything was looked at."""
    told = run("doctor", "--config", patient.path)
    assert told.exit_code == 0
    for words in (
        "ok    configuration: 1 node groups, nothing odd",
        "ok    tls: plain text on loopback",
        "ok    volume: ",
        "ok    clock: agrees with the API's",
        "ok    credentials: the API takes them",
        "ok    scope: machines, disks and catalogue can be read",
        "ok    balance: 100000.0 usd, and nothing rented",
        "ok    node_groups.gpu: 1A100.22V, ubuntu-24.04-cuda-12.8-open-docker, FIN-01: ",
    ):
        assert words in told.stdout


@pytest.mark.parametrize(
    ("key", "value", "check", "seen", "remedy"),
    [
        ("location", "FIN-09", "location", "there is no location FIN-09", "name one of FIN-01, "),
        ("instance_type", "1A100.23V", "instance_type", "there is no type 1A100.23V", "name one of 1A100.22V"),
        ("image", "ubuntu-99.04", "image", "there is no image ubuntu-99.04", "name one of "),
        ("ssh_key_ids", ["nobody"], "ssh_key_ids", "the project has no SSH key nobody", "add it there, or remove"),
        ("startup_script_id", "none", "startup_script", "the project has no script none", "create it in Verda's"),
    ],
)
def test_what_a_group_names_must_exist(
    key: str, value: object, check: str, seen: str, remedy: str, patient: Patient
) -> None:
    """Or the first order is refused, when somebody waits for it."""
    patient.settings["node_groups"]["gpu"][key] = value
    found = patient.findings(code=1)
    verdict, told, advice = found.pop(f"node_groups.gpu.{check}")
    assert (verdict, told) == ("wrong", seen)
    assert advice.startswith(remedy)
    assert {verdict for verdict, _, _ in found.values()} <= {"warning"}  # what is nowhere is also out of stock


def test_an_image_must_fit_the_type(patient: Patient) -> None:
    """Verda starts some images on some types only."""
    patient.settings["node_groups"]["gpu"] |= {"instance_type": "1H100.80S.30V", "image": "ubuntu-20.04"}
    verdict, seen, remedy = patient.findings(code=1)["node_groups.gpu.image"]
    assert (verdict, seen) == ("wrong", "1H100.80S.30V cannot start ubuntu-20.04")
    assert remedy.startswith("name one of ")
    assert "ubuntu-20.04," not in remedy


def test_a_machine_without_a_script_never_becomes_a_node(patient: Patient) -> None:
    """Unless the image does it by itself, so it is a warning."""
    del patient.settings["node_groups"]["gpu"]["startup_script_id"]
    assert patient.findings()["node_groups.gpu.startup_script"][0] == "warning"


def test_a_script_that_is_made_here_needs_no_id(patient: Patient) -> None:
    """The configuration has tried it when it was loaded."""
    group = patient.settings["node_groups"]["gpu"]
    del group["startup_script_id"]
    group["startup_script"] = "#!/bin/sh\njoin {{ hostname }}\n"
    assert "node_groups.gpu.startup_script" not in patient.findings()


def test_machines_of_our_own_are_not_looked_for_at_verda(patient: Patient) -> None:
    """And need no account."""
    hooks = {"scale_up_endpoint": "http://p/up", "scale_down_endpoint": "http://p/down"}
    patient.settings["node_groups"]["old"] = {"kind": "webhook", "machines": [{"name": "a", "gpu_count": 1, **hooks}]}
    assert "node_groups.old" not in patient.findings()
    del patient.settings["node_groups"]["gpu"]
    del patient.settings["verda"]
    assert "credentials" not in patient.findings()


def test_wrong_credentials_are_one_finding(patient: Patient) -> None:
    """Everything else that needs them is not even asked."""
    patient.settings["verda"]["client_secret"] = "wrong-secret"
    found = patient.findings(code=1)
    assert list(found) == ["credentials"]
    verdict, seen, remedy = found["credentials"]
    assert verdict == "wrong"
    assert "wrong-secret" not in seen + remedy
    assert "VERDA_CLIENT_ID" in remedy


def test_a_missing_scope_is_no_empty_account(patient: Patient, account: Simulator) -> None:
    """F67: the token is good, and every call is forbidden. The scope that is needed is named."""
    control(account, "POST", "/faults", {"preset": "token_scope_403", "args": {"times": -1}})
    try:
        found = patient.findings(code=1)
    finally:
        control(account, "DELETE", "/faults")
    (verdict, seen, remedy) = found.pop("credentials")
    assert (verdict, seen) == ("wrong", "not allowed: Insufficient scope")
    assert remedy == "give the credentials the scope cloud-api-v1"
    assert found == {}


def test_an_api_that_cannot_be_reached_is_nobodys_mistake(patient: Patient) -> None:
    """Exit code 3, and the words are those of the connection."""
    patient.settings["verda"]["base_url"] = "http://127.0.0.1:1/v1"
    found = patient.findings(code=3)
    assert {check: verdict for check, (verdict, _, _) in found.items()} == {
        "clock": "unknown",
        "credentials": "unknown",
    }


def test_money_that_does_not_last_is_told_in_hours(patient: Patient, account: Simulator) -> None:
    """An empty account stops every machine."""
    control(account, "POST", "/balance", {"amount": 0})
    try:
        assert patient.findings(code=1)["balance"][0] == "wrong"
    finally:
        control(account, "POST", "/balance", {"amount": 100_000})


def test_certificates_are_looked_at_before_they_end(patient: Patient) -> None:
    """Each file by itself: soon, over, missing, not what it should be."""
    now = SystemClock().now()
    authority = make_authority("test", now)

    def certificate(name: str, lifetime: timedelta) -> str:
        pair = issue(authority, ["localhost"], is_server=True, now=now - timedelta(days=2), lifetime=lifetime)
        (patient.directory / name).write_bytes(pair.certificate_pem)
        return str(patient.directory / name)

    key = patient.directory / "key.pem"
    key.write_bytes(authority.key_pem)
    tls = {"key": str(key), "cert": certificate("soon.pem", timedelta(days=12, hours=1))}
    patient.settings["tls"] = {**tls, "client_ca": certificate("over.pem", timedelta(days=1))}
    found = patient.findings(code=1)
    assert found["tls.cert"][0] == "warning"
    assert "soon.pem ends in 10 d" in found["tls.cert"][1]
    assert found["tls.client_ca"][0] == "wrong"
    assert "over.pem ended 1 d " in found["tls.client_ca"][1]
    patient.settings["tls"] = {**tls, "cert": str(key), "client_ca": str(patient.directory / "missing.pem")}
    found = patient.findings(code=1)
    assert "holds no PEM certificate" in found["tls.cert"][1]
    assert "cannot read" in found["tls.client_ca"][1]


def test_a_clock_that_is_off_is_found_by_the_apis_own_answers(patient: Patient) -> None:
    """Tokens and certificates live by it."""
    (found,) = machine.clock(patient.config(), SystemClock().now() + timedelta(hours=1, seconds=5))
    assert found.verdict is Verdict.WRONG
    assert "this machine is 1 h" in found.seen


def test_a_used_up_quota_is_known_from_the_log(patient: Patient) -> None:
    """The API tells no quota, but the last refusal did."""
    clock = FakeClock(datetime(2026, 1, 5, tzinfo=UTC))
    with opened(patient.config().database, clock) as ledger:
        start(ledger)
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        ledger.execute(AttemptCreate(instance="gpu-aaaaaaaa"), CA)
        refusal = RecordCreateRefused(
            instance="gpu-aaaaaaaa",
            attempt=1,
            refusal=Refusal.REJECTED,
            status=403,
            code="forbidden_action",
            message="GPU quota exceeded",
            retry_after=None,
        )
        ledger.execute(refusal, CA)
    (found,) = past.quota(patient.config(), clock.now())
    assert found.verdict is Verdict.WARNING
    assert "quota-exceeded" in found.seen
    (later,) = past.quota(patient.config(), clock.now() + timedelta(days=2))
    assert later.verdict is Verdict.FINE


def test_a_directory_that_is_not_there_yet_is_told(patient: Patient) -> None:
    """A log inside the container would be gone with it."""
    patient.settings["database"] = str(patient.directory / "elsewhere" / "provider.db")
    assert "there is no" in patient.findings()["volume"][1]
    assert not (patient.directory / "elsewhere").exists()
    assert [path.name for path in patient.directory.iterdir()] == ["config.yaml"]
