"""Golden files: what was once written to a log is read for ever, and what is written today is what was agreed on."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.registry import EVENT_TYPES, UnknownEvent, decode
from app.store.columns import canonical

from .golden import DIRECTORY, SAMPLES, content_of, file_of, main

FILES = sorted(DIRECTORY.glob("*.json"))
TO_WRITE = "run `python -m tests.store.golden`; an event that changed needs a new schema version and an upcaster"


def content(file: Path) -> dict[str, Any]:
    """What a file says."""
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_golden_event_can_still_be_read(file: Path) -> None:
    """In whatever schema version it was written; the log is never rewritten."""
    golden = content(file)
    event = decode(golden["type"], golden["schema"], canonical(golden["data"]))
    assert event.type == golden["type"]
    assert file == file_of(golden["type"], golden["schema"])


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_every_event_is_written_as_its_golden_file_says(event: Any) -> None:
    """A field that was renamed, dropped or typed anew shows here, before any log has it."""
    assert content_of(event) == content(file_of(event.type, event.schema_version)), TO_WRITE


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_every_event_survives_its_way_through_the_log(event: Any) -> None:
    """Decimals keep their digits, times their zone, absent stays absent."""
    stored = canonical(event.model_dump(mode="json"))
    assert decode(event.type, event.schema_version, stored) == event
    assert canonical(json.loads(stored)) == stored


def test_every_event_type_has_a_golden_file_of_each_of_its_versions() -> None:
    """Also of the versions that are no longer written."""
    wanted = {
        file_of(name, version) for name, kind in EVENT_TYPES.items() for version in range(1, kind.schema_version + 1)
    }
    assert set(FILES) == wanted, TO_WRITE


def test_every_event_type_has_a_sample() -> None:
    """Or the tests above would silently leave it out."""
    assert sorted(event.type for event in SAMPLES) == sorted(EVENT_TYPES)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_no_event_holds_a_float_outside_of_ratios(event: Any) -> None:
    """Money and times as text: a float in the log is a cost that does not add up."""
    floats = [
        path
        for path, value in _leaves(event.model_dump(mode="json"))
        if isinstance(value, float) and not path.endswith("_threshold")
    ]
    assert floats == []


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item, path)]
    return [(path, value)]


@pytest.mark.parametrize(
    ("name", "version"), [("cloud.teleported", 1), ("cloud.reachable", 2)], ids=["unknown type", "newer version"]
)
def test_what_a_newer_program_wrote_is_never_guessed(name: str, version: int) -> None:
    """Skipping it would make wrong books that look right."""
    with pytest.raises(UnknownEvent, match=f"{name} version {version} was written by a newer version"):
        decode(name, version, "{}")


def test_writing_golden_files_touches_none_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Changing one is a decision, not a side effect."""
    before = {file: file.read_bytes() for file in FILES}
    main()
    assert {file: file.read_bytes() for file in sorted(DIRECTORY.glob("*.json"))} == before
    assert capsys.readouterr().out == ""
