"""The suite itself: no statement is without a test, no fault goes unnoticed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .faults import SMOKE, all_faults
from .mutants import judge, prefix_of
from .service import Service

STATEMENTS = {*(str(number) for number in range(1, 71)), "48a"}
_OF_ALL_GENERATIONS = {"ca", "visit", "generation"}


def written_tests() -> Iterator[ast.FunctionDef]:
    """Every test of the suite, as it is written."""
    for module in sorted(Path(__file__).parent.glob("test_*.py")):
        if module.name != Path(__file__).name:
            tree = ast.parse(module.read_text(encoding="utf-8"))
            yield from (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_")


def statement_of(test: ast.FunctionDef) -> str:
    """The number in a test's name."""
    found = re.match(r"test_0*(\d+a?)_", test.name)
    assert found, test.name
    return found[1]


def test_every_statement_has_a_test() -> None:
    """The numbers in the names are those of the statements, all of them and no others."""
    assert {statement_of(test) for test in written_tests()} == STATEMENTS


def test_docstrings_carry_the_number() -> None:
    """A test says in its first words which statement it is about."""
    wrong = [
        test.name
        for test in written_tests()
        if not re.match(rf"Statement {statement_of(test)}[:,]", ast.get_docstring(test) or "")
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
    """Two of them in every run, for the newest generation; `python -m tests.conformance.mutants` tries all."""
    if external is not None or request.config.getoption("--fault", None):
        pytest.skip("this run is about another provider")
    verdict = judge(all_faults()[name], generation="E")
    assert not verdict.missed, verdict.trouble


def test_names_of_tests_sort_by_number() -> None:
    """Statement 48a has a place of its own."""
    assert [prefix_of(number) for number in ("1", "48", "48a")] == ["test_001", "test_048", "test_048a"]
