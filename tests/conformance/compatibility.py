"""Which statement holds for which generation: a plugin that writes a run's results down as a page."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

import pytest

from tests.protocol.clients import GENERATIONS

HERE: Final = Path(__file__).parent
_TEST = re.compile(r"test_0*(\d+a?)_")
_LETTER = re.compile(rf"\[(?:.*-)?([{''.join(GENERATIONS)}])(?:-.*)?\]$")

_HEAD: Final = """\
<!-- Made by `make compatibility`; do not edit. -->

# What holds for which Cluster Autoscaler

Each statement of the conformance suite ([its README](../tests/conformance/README.md)) and how its tests ended for each
generation of the protocol: A is Cluster Autoscaler 1.25 to 1.28, B 1.29 to 1.32, C 1.33 to 1.34.1, D 1.34.2 and later
1.34, E 1.35 and later.
A tick is a statement all of whose tests passed with the messages of that generation; the number counts the tests.
"""


class Outcome(IntEnum):
    """How a test ended; of several, the greatest counts."""

    SKIPPED = 0
    PASSED = 1
    FAILED = 2


def written_tests() -> Iterator[ast.FunctionDef]:
    """Every test of a statement, as it is written."""
    for module in sorted(HERE.glob("test_*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        tests = (node for node in tree.body if isinstance(node, ast.FunctionDef))
        yield from (test for test in tests if module.name != "test_suite.py" and test.name.startswith("test_"))


def statement_of(name: str) -> str:
    """The number in a test's name: `13`, `48a`; empty if it has none."""
    found = _TEST.match(name)
    return found[1] if found else ""


def promises() -> Mapping[str, Sequence[str]]:
    """Statement → what its tests are called, as words, in the order of the statements."""
    said: dict[str, list[str]] = defaultdict(list)
    for test in written_tests():
        words = _TEST.sub("", test.name).replace("_", " ")
        said[statement_of(test.name)].append(words[0].upper() + words[1:])
    return dict(sorted(said.items(), key=lambda item: (int(item[0].rstrip("a")), item[0])))


class Compatibility:
    """Collects how every statement's tests end for every generation, and writes the page at the end of the run."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._outcomes: dict[tuple[str, str], dict[str, Outcome]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase of one test into account."""
        name = report.nodeid.rpartition("::")[2]
        letter, statement = _LETTER.search(name), statement_of(name)
        if letter is None or not statement or (report.when != "call" and report.passed):
            return
        outcome = Outcome[report.outcome.upper()]
        ended = self._outcomes[statement, letter[1]]
        ended[name] = max(outcome, ended.get(name, Outcome.SKIPPED))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page, in the process that has all results."""
        if not hasattr(session.config, "workerinput"):
            self._page.write_text(page(self._cells()), encoding="utf-8")

    def _cells(self) -> Mapping[tuple[str, str], str]:
        return {key: _cell(list(ended.values())) for key, ended in self._outcomes.items()}


def _cell(ended: Sequence[Outcome]) -> str:
    if Outcome.FAILED in ended:
        return f"✗ {ended.count(Outcome.FAILED)} of {len(ended)}"
    passed = ended.count(Outcome.PASSED)
    return f"✓ {passed}" if passed else "-"


def page(cells: Mapping[tuple[str, str], str]) -> str:
    """The page; `cells` by (statement, generation), a dash where nothing ran."""
    lines = [f"| | promise | {' | '.join(GENERATIONS)} |", f"|---|---|{'---|' * len(GENERATIONS)}"]
    for statement, words in promises().items():
        results = " | ".join(cells.get((statement, letter), "-") for letter in GENERATIONS)
        lines.append(f"| {statement} | {'<br>'.join(words)} | {results} |")
    return f"{_HEAD}\n" + "\n".join(lines) + "\n"
