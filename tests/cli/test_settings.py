import json
import os
from collections.abc import Iterable
from pathlib import Path

import jsonschema
import pytest
import yaml

from app.config.schema import page, schema
from app.errors import ConfigurationError
from tests.config.harness import GROUP
from tests.store.harness import opened, start

from .prompt import run, typed

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = jsonschema.Draft202012Validator(schema())


def complaints(errors: Iterable[jsonschema.ValidationError]) -> str:
    """Everything that is said, also of the parts of alternatives."""
    return " ".join(f"{error.message} {complaints(error.context)}" for error in errors)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A valid file."""
    path = tmp_path / "config.yaml"
    path.write_text(GROUP)
    return path


def test_a_sound_file_is_told_so(config: Path) -> None:
    """What `serve` would take."""
    assert typed("config", "check", "--config", config) == f"{config}: fine, 1 node groups\n"


def test_a_wrong_file_is_an_error_with_line_and_remedy(config: Path) -> None:
    """The same words as at start, without starting."""
    config.write_text(GROUP.replace("max_size: 3", "max_sise: 3"))
    result = run("config", "check", "--config", config)
    assert isinstance(result.exception, ConfigurationError)
    assert f"{config}:5: node_groups.gpu.max_sise: is not a known key: did you mean max_size?" in str(result.exception)


def test_the_whole_configuration_is_shown_without_its_secrets(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every default, and what the environment adds; what is shown is a valid file again."""
    monkeypatch.setenv("VERDA_CLIENT_ID", "the-id")
    monkeypatch.setenv("VERDA_CLIENT_SECRET", "the-secret-itself")
    told = typed("config", "show", "--config", config)
    shown = yaml.safe_load(told)
    assert "the-secret-itself" not in told
    assert shown["verda"]["client_id"] == "the-id"
    assert shown["intervals"] == {"observe": "10s", "catalog": "5m", "housekeeping": "10m"}
    assert shown == json.loads(typed("config", "show", "--config", config, "--output", "json"))
    again = config.with_name("again.yaml")
    again.write_text(told)
    assert yaml.safe_load(typed("config", "show", "--config", again)) == shown


def test_two_files_are_compared_key_by_key(config: Path) -> None:
    """Exit code 1 if anything differs, as `diff` has it."""
    newer = config.with_name("newer.yaml")
    newer.write_text(GROUP.replace("max_size: 3", "max_size: 5") + "max_hourly_cost: 9.50\n")
    told = typed("config", "diff", config, "--config", newer, code=1)
    assert told.splitlines() == ["max_hourly_cost: not set -> 9.50", "node_groups.gpu.max_size: 3 -> 5"]
    assert typed("config", "diff", config, "--config", config) == "no difference\n"


def test_a_file_is_compared_with_what_is_in_effect(config: Path, tmp_path: Path) -> None:
    """The log knows the groups of the running server, wherever its file has gone."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)  # gpu: three at most, at two places, spot before on demand
    told = typed("config", "diff", "--config", config, "--database", database, code=1).splitlines()
    assert "node_groups.gpu.instance_type: 1H100.80S.30V -> 1A100.22V" in told
    assert "node_groups.gpu.locations: [FIN-01, FIN-03] -> [FIN-01]" in told
    assert "cluster_name: prod -> inst1" in told
    assert not any("max_size" in line for line in told)


def test_the_published_schema_is_that_of_the_model() -> None:
    """`python -m app.config.schema > docs/configuration.schema.json` makes it anew."""
    assert (ROOT / "docs" / "configuration.schema.json").read_text() == page() == typed("config", "schema")
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("example", ["config.yaml", "from-python-provider.yaml"])
def test_the_schema_takes_what_the_loader_takes(example: str) -> None:
    """An editor that marks a good file red is switched off."""
    VALIDATOR.validate(yaml.safe_load((ROOT / "examples" / example).read_text()))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("max_size: 3", "max_sise: 3"), "'max_sise' was unexpected"),
        (("max_size: 3", "max_size: many"), "'many'"),
        (("max_size: 3", "create_timeout: soon"), "'soon'"),
        (("node_groups:", "intervalls: {}\nnode_groups:"), "'intervalls' was unexpected"),
    ],
)
def test_the_schema_finds_the_usual_mistakes(change: tuple[str, str], complaint: str) -> None:
    """While they are typed."""
    assert complaint in complaints(VALIDATOR.iter_errors(yaml.safe_load(GROUP.replace(*change))))


@pytest.mark.parametrize("value", ["${MAX}", None, 3])
def test_the_schema_takes_references_and_empty_keys(value: object) -> None:
    """As the loader does."""
    VALIDATOR.validate({"node_groups": {"gpu": {"instance_type": "1A100.22V", "max_size": value}}})
    assert os.environ.get("MAX") is None


def test_another_tool_s_flags_are_checked_and_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `serve` would take, and as a file of ours that is never written over another."""
    monkeypatch.setenv("DATACRUNCH_CLUSTER_CONFIG_JSON", '{"node_configs": {"gpu": {"image_type": "ubuntu-24.04"}}}')
    flag = "--nodes=0:4:1A100.22V:FIN-01:gpu"
    assert typed("config", "check", flag) == "--nodes: fine, 1 node groups\n"
    target = tmp_path / "ours.yaml"
    assert run("config", "convert", flag, "--output", target).exit_code == 0
    assert typed("config", "check", "--config", target).endswith("fine, 1 node groups\n")
    assert target.stat().st_mode & 0o777 == 0o600
    assert run("config", "convert", flag, "--output", target).exit_code != 0
    assert run("config", "convert").exit_code != 0
