"""Whether the suite notices deliberate faults: `python -m tests.conformance.mutants [NAME…]`.

Runs the statements that are expected to notice a fault against a provider that has it. Without names every fault takes
its turn, and the table goes to `docs/conformance-mutants.md` as well.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.protocol.clients import GENERATIONS

from .faults import Fault, all_faults
from .provider import ROOT

PAGE: Final = ROOT / "docs" / "conformance-mutants.md"
NEWEST: Final = GENERATIONS[-1]
_TIMEOUT_S = 1800.0
_TESTS_FAILED = 1
"""The exit code of pytest that is to be expected here."""

_HEAD = """\
<!-- Made by `python -m tests.conformance.mutants`; do not edit. -->

# Does the conformance suite notice?

Each line is a provider with one behaviour changed on purpose (`tests/conformance/faults.py`).
The statements that must notice were run against it, with the eyes of the newest generation of the protocol that they
are about.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the suite said of one fault: statements with a failed test, out of those that were run."""

    fault: Fault
    caught: tuple[str, ...]
    trouble: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """Statements that should have noticed and did not."""
        return tuple(number for number in self.fault.statements if number not in self.caught)


def judge(fault: Fault) -> Verdict:
    """Have the statements that must notice a fault look at a provider that has it.

    With the eyes of the newest generation first; what it does not see may be there for older ones only.
    """
    caught, trouble = _noticed(fault, fault.statements, f"[{NEWEST} or -{NEWEST}]")
    if rest := tuple(number for number in fault.statements if number not in caught):
        more, trouble = _noticed(fault, rest)
        caught = tuple(sorted({*caught, *more}, key=_by_number))
    verdict = Verdict(fault=fault, caught=caught, trouble=trouble)
    sys.stderr.write(f"{fault.name}: {f'missed by {verdict.missed}' if verdict.missed else 'noticed'}\n")
    return verdict


def _noticed(fault: Fault, statements: Sequence[str], generations: str = "") -> tuple[tuple[str, ...], str]:
    """Statements with a failed test, and what else went wrong; `generations` are words of test ids."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        report = Path(scratch) / "report.xml"
        names = " or ".join(f"{prefix_of(number)}_" for number in statements)
        if generations:
            names = f"({names}) and ({generations})"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "tests/conformance",
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
        ]
        command += ["--fault", fault.name, "-k", names, f"--junitxml={report}"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        trouble = "" if done.returncode == _TESTS_FAILED else done.stdout[-1000:] + done.stderr[-1000:]
        return failed_statements(report) if report.exists() else (), trouble


def prefix_of(number: str) -> str:
    """`13` → `test_013`, `48a` → `test_048a`."""
    digits = number.rstrip("a")
    return f"test_{int(digits):03d}{number[len(digits) :]}"


def failed_statements(report: Path) -> tuple[str, ...]:
    """The statements with a test that failed; one that could not even begin proves nothing."""
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - our own file
    failed = {case.get("name", "").split("_")[1].lstrip("0") for case in cases if case.find("failure") is not None}
    return tuple(sorted(failed, key=_by_number))


def _by_number(statement: str) -> tuple[int, str]:
    return int(statement.rstrip("a")), statement


def table(verdicts: Iterable[Verdict]) -> str:
    """The verdicts in Markdown."""
    lines = ["| fault | what is wrong | must be noticed by | was noticed by |", "|---|---|---|---|"]
    for verdict in verdicts:
        fault = verdict.fault
        caught = ", ".join(verdict.caught) or "-"
        if verdict.missed:
            caught += f" (**missed: {', '.join(verdict.missed)}**)"
        lines.append(f"| `{fault.name}` | {fault.words} | {', '.join(fault.statements)} | {caught} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if everything was noticed by every statement that should."""
    faults = all_faults()
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(faults)}")
    parser.add_argument("--jobs", type=int, default=2, help="faults to judge at the same time (default: 2)")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in faults]
    if unknown:
        parser.error(f"there is no fault {', '.join(unknown)}")
    with ThreadPoolExecutor(given.jobs) as pool:
        verdicts = list(pool.map(judge, [faults[name] for name in given.names] or faults.values()))
    for verdict in verdicts:
        if verdict.trouble:
            sys.stderr.write(f"{verdict.fault.name}: {verdict.trouble}\n")
    noticed = sum(not verdict.missed for verdict in verdicts)
    words = f"{noticed} of {len(verdicts)} faults were noticed by every statement that must notice them.\n"
    sys.stdout.write(f"{table(verdicts)}\n{words}")
    if not given.names:
        PAGE.write_text(f"{_HEAD}\n{table(verdicts)}\n{words}", encoding="utf-8")
    return 0 if noticed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
