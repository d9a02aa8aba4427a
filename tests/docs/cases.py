"""Cases from the field: what went wrong for others, what must happen here, and the tests that see to it.

`python -m tests.docs.cases > docs/field-cases.md` makes the page. A test covers a case by naming it in its docstring.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"
_NUMBER: Final = re.compile(r"\bF(\d\d)\b")


class Case(NamedTuple):
    """A case; `then` is what must happen."""

    title: str
    then: str


CASES: Final[Mapping[str, Mapping[int, Case]]] = {
    "The protocol and the size of a group": {
        1: Case("Options full of zeros", "no duration of zero ever leaves; without overrides no options at all"),
        2: Case("Generations of the protocol", "old and new clients read the same node, price and options"),
        3: Case("A decrease that is refused for ever", "what is not ordered yet is released; target and list agree"),
        4: Case("Deleting a stand-in node", "OK, twice; the target falls once"),
        5: Case("A failed machine at the minimum", "it can be deleted; nothing is bought in its place by ourselves"),
        6: Case("The same deletion again and again", "the target falls once for each machine"),
        7: Case("Provider ids of others", "OK with no group, whatever the id looks like, and no noise in the log"),
        8: Case("A kubelet with another spelling", "the node is recognised, its own spelling listed from then on"),
        9: Case("Target and list disagree", "they never do, after any sequence of events"),
        10: Case("One broken group", "it is not listed and says why; the others are untouched"),
        11: Case("A maximum below what runs", "nothing dies; deletions are taken, growth is refused"),
        12: Case("A group removed while its machines run", "it stays until it is empty and cannot grow"),
        13: Case("One name is the beginning of another", "machines belong by their mark, not by a prefix"),
        14: Case("Names a kubelet refuses", "refused together when the configuration is loaded, each with a valid one"),
        15: Case("A race to the maximum", "exactly as many succeed as there is room for"),
        16: Case("Cleanup", "OK, and nothing is deleted by it"),
        17: Case("The autoscaler restarts during a deletion", "the node is nobody's and does not count, from then on"),
        18: Case("Pings on an idle connection", "the connection stays"),
    },
    "Capacity, quota, money, spot": {
        19: Case("Out of stock", "reported as out of resources at once; rungs that refused rest, also over a restart"),
        20: Case("No money", "out of resources with Verda's words; few attempts, and recovery by itself"),
        21: Case("No quota", "that rung rests for long, the next is tried"),
        22: Case("The image does not fit", "a failure of class other with a code that says so; no other site is tried"),
        23: Case("Slow boot", "creating all the time; nobody is killed before the time-out"),
        24: Case("429 with a body that is no JSON", "a shared pause as long as asked for; nothing is lost"),
        25: Case("One empty list", "no instance changes; it is confirmed first"),
        26: Case("The quota of scripts is used up", "unused scripts of ours are swept, then the order goes on"),
        27: Case("A spot machine is evicted", "lost, with its time and cost; target and list fall together"),
        28: Case("Deleting what is gone", "success, once its absence is confirmed"),
        29: Case("A deleted machine's paid volume", "it is named in the deletion; what is left over is swept"),
        30: Case("Prices for the price expander", "whole machines, spot where spot is ordered, never zero"),
        31: Case("Spot dearer than on demand", "the operator's order is followed; the price is the one obtained"),
        32: Case("A spot group that orders on demand", "the order says spot in both places, and the label says it too"),
    },
    "Templates and GPUs": {
        33: Case("A GPU group at zero", "the template has GPUs, the GPU label and everything a pod asks for"),
        34: Case("A second node while the driver starts", "the label keeps the autoscaler waiting: one machine"),
        35: Case("The GPU label on a group without GPUs", "refused; such templates never carry it"),
        36: Case("More memory promised than there is", "the template stays below the real node"),
        37: Case("Several sites and a zone selector", "no list of zones in a label; a hint when the file is read"),
        38: Case("Taints and start-up taints", "the template has the lasting ones; bad ones are refused"),
        39: Case("A node smaller than promised", "the difference is written down; the template follows reality"),
        40: Case("A GPU nobody knew", "it works without a release"),
    },
    "Booting and joining": {
        41: Case("An expired join token", "after some machines that never joined the group pauses"),
        42: Case("A script that is too large", "refused when the configuration is loaded"),
        43: Case("The package manager is locked at boot", "the script waits"),
        44: Case("A host name twice", "names are never used again"),
        45: Case("A node without provider id", "known by its name"),
    },
    "Crashes, and the truth about machines": {
        46: Case("A crash between order and record", "one machine for each slot, found by its host name"),
        47: Case("An order whose answer is unreadable", "an unknown outcome; no second order before it is settled"),
        48: Case("A new machine that is not listed yet", "still creating; not lost, not ordered again"),
        49: Case("kill -9 at random", "nothing is forgotten or bought twice, and the log has no gap"),
        50: Case("A deletion and a wish for more", "the deleted one never comes back under its name"),
        51: Case("The database is lost", "not serving before the first list; machines are taken in, not deleted"),
        52: Case("A status nobody knew", "it exists and may cost; nothing changes for the autoscaler"),
        53: Case("A machine switched off by a person", "still a member and paid, until the policy says otherwise"),
        78: Case("Two clusters in one project", "each sees its own, exactly"),
    },
    "SQLite, the volume, the only writer": {
        54: Case("Locked after a restart; network file systems", "a bounded wait; a refusal that names the holder"),
        55: Case("A reader that becomes a writer", "nobody is told `database is locked`"),
        56: Case("A full disk", "writes are refused at once and change nothing, reading goes on, it heals by itself"),
        57: Case("A corrupt database or log", "refused with the command that restores it; never a silent new one"),
        58: Case("Two processes on one volume", "the second refuses and names the first"),
        59: Case("An interrupted migration", "the next start completes it"),
        60: Case("A volume that cannot be written", "one line with path, user and mode"),
    },
    "Time": {
        61: Case("Daylight saving", "no times of day are offered, and asking for one is refused; the log is in UTC"),
        62: Case("No time zone data", "it works; zones are not offered, and UTC needs none"),
        63: Case("A call that hangs", "it ends by its deadline; other jobs go on"),
        64: Case("Capacity by office hours", "not offered, and asking for it is refused"),
    },
    "TLS, credentials, secrets": {
        65: Case("Certificates are rotated", "read again without a restart"),
        66: Case("A token dies in mid-flight", "one new login, and each call is sent once more"),
        67: Case("A missing scope", "told as such, not as an empty account"),
        68: Case("Secrets in logs", "nowhere"),
        69: Case("Insecure by accident", "refused without the explicit word"),
    },
    "Configuration, Kubernetes, operations": {
        70: Case("Nodes without machines", "removed with two witnesses, capped, and never a stranger's"),
        71: Case("A swapped ConfigMap", "noticed; the same content is no event"),
        72: Case("SIGTERM", "not serving, calls finish, exit 0; a second one ends at once"),
        73: Case("Machines behind webhooks", "one start call a wish; failures reach the autoscaler"),
        74: Case("The in-tree provider's flags", "the same groups; bad ones each told with their place"),
        75: Case("The configuration is deleted", "the last good one stays; a start without one is refused"),
        76: Case("Groups that wait for each other", "one group's trouble does not delay another"),
        77: Case("Who ended my job?", "the log names the call and its time"),
    },
}
"""Cases by topic."""


def known() -> set[int]:
    """The numbers of all cases."""
    return {number for cases in CASES.values() for number in cases}


def covering() -> Mapping[int, list[str]]:
    """Case → the tests that name it, `path::test`, or `path` where the whole module is about it."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        module = path.relative_to(TESTS.parent)
        for name, words in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            for number in sorted({int(each) for each in _NUMBER.findall(words)}):
                found[number].append(f"{module}::{name}" if name else str(module))
    return found


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    yield "", ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def page() -> str:
    """All cases, and for each the tests."""
    tests = covering()
    lines = [
        "<!-- Made by `python -m tests.docs.cases`; do not edit. -->",
        "",
        "# Cases from the field",
        "",
        "What has gone wrong for autoscalers, cloud providers and their users elsewhere, and what must happen here.",
        "The numbers are those that tests carry in their docstrings.",
    ]
    for topic, cases in CASES.items():
        lines += ["", f"## {topic}", "", "| | case | what must happen | tests |", "|---|---|---|---|"]
        for number, case in cases.items():
            names = [f"[{_short(test)}](../{test.partition('::')[0]})" for test in tests.get(number, [])]
            lines.append(f"| F{number:02d} | {case.title} | {case.then} | {'<br>'.join(names) or 'none yet'} |")
    return "\n".join(lines) + "\n"


def _short(test: str) -> str:
    path, _, name = test.partition("::")
    return name.removeprefix("test_").replace("_", " ") or Path(path).stem


if __name__ == "__main__":
    sys.stdout.write(page())
