"""The suite itself: no statement is without a test, no fault goes unnoticed."""

import ast
import re
from collections.abc import Callable, Mapping

import pytest

from tests.protocol.clients import GENERATIONS, Client

from .compatibility import promises, statement_of, written_tests
from .crowd import GROUP, crowd
from .faults import SMOKE, all_faults
from .mutants import judge, prefix_of
from .provider import ROOT, Stage
from .service import Service
from .settings import KINDS

STATEMENTS = {*(str(number) for number in range(1, 71)), "48a"}
_OF_ALL_GENERATIONS = {"ca", "visit", "generation"}


def test_every_statement_has_a_test() -> None:
    """The numbers in the names are those of the statements, all of them and no others."""
    assert {statement_of(test.name) for test in written_tests()} == STATEMENTS


def test_docstrings_carry_the_number() -> None:
    """A test says in its first words which statement it is about."""
    wrong = [
        test.name
        for test in written_tests()
        if not re.match(rf"Statement {statement_of(test.name)}[:,]", ast.get_docstring(test) or "")
    ]
    assert not wrong


def test_every_test_looks_with_the_eyes_of_a_generation() -> None:
    """Each test runs for every generation of the protocol that its statement is about."""
    assert [
        test.name for test in written_tests() if not _OF_ALL_GENERATIONS & {arg.arg for arg in test.args.args}
    ] == []


def test_every_statement_can_fail() -> None:
    """There is a deliberate fault for each statement."""
    noticed_by = {number for fault in all_faults().values() for number in fault.statements}
    assert noticed_by == STATEMENTS


@pytest.mark.mutants
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SMOKE)
def test_a_fault_is_noticed(request: pytest.FixtureRequest, external: Service | None, name: str) -> None:
    """Two of them in every run; `python -m tests.conformance.mutants` tries all."""
    if external is not None or request.config.getoption("--fault", None):
        pytest.skip("this run is about another provider")
    verdict = judge(all_faults()[name])
    assert not verdict.missed, verdict.trouble


def test_names_of_tests_sort_by_number() -> None:
    """Statement 48a has a place of its own."""
    assert [prefix_of(number) for number in ("1", "48", "48a")] == ["test_001", "test_048", "test_048a"]


def test_the_page_of_compatibility_has_every_statement_and_no_failure() -> None:
    """Its results come from a run (`make compatibility`), its promises from the tests as they are now."""
    lines = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)]
    assert {row[0]: row[1] for row in rows} == {number: "<br>".join(words) for number, words in promises().items()}
    assert all(re.fullmatch(r"✓ \d+|-", cell) for row in rows for cell in row[2:])
    assert all(len(row) == 2 + len(GENERATIONS) and "✓" in row[-1] for row in rows)


def test_a_crowd_leaves_everything_consistent(
    external: Service | None, make_stage: Callable[..., Stage], clients: Mapping[str, Client]
) -> None:
    """A few of the fifty that `make crowd` lets in, and for two seconds only."""
    assert external is None
    with make_stage({GROUP: KINDS[GROUP]}) as stage:
        report = crowd(clients, stage, clients=10, seconds=2.0)
    assert not report.broken
    assert len(report.slowest_s) == 15


def test_the_page_of_faults_has_every_fault_and_none_that_was_missed() -> None:
    """Its results come from `make mutants`, its faults are those of today."""
    text = (ROOT / "docs" / "conformance-mutants.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    assert {row[0].strip("`"): (row[1], row[2]) for row in rows} == {
        name: (fault.words, ", ".join(fault.statements)) for name, fault in all_faults().items()
    }
    assert "missed" not in text.partition("was noticed by |")[2]
