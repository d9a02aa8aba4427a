"""Every figure, each as a ratio to something measured in the same run: `python -m bench [--quick] [NAME …]`.

Prints a table; `--json FILE` writes the figures as well, `--gross FACTOR` fails only where a goal is missed that far.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from app.log import set_up_logging
from bench import answers, append, fleet, listing, logs, orders
from bench.figures import Figure, Sense, row, table
from bench.history import Histories
from bench.scale import FULL, QUICK, Scale

PARTS: Mapping[str, Callable[[Scale, Histories], Iterator[Figure]]] = {
    "answers": answers.figures,
    "append": append.figures,
    "logs": logs.figures,
    "fleet": fleet.figures,
    "listing": listing.figures,
    "orders": orders.figures,
}


def misses(figure: Figure, factor: float) -> bool:
    """Whether it misses its goal by more than this factor; tails are held to the goal itself or not at all."""
    if figure.is_tail and factor != 1.0:
        return False
    if figure.sense is Sense.AT_LEAST:
        return figure.ratio * factor < figure.goal
    return figure.ratio > figure.goal * factor


def main(arguments: Sequence[str]) -> int:
    """0 if every goal is met, or at least nearly."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"parts to measure: {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="a little of everything, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--gross", type=float, default=1.0, metavar="FACTOR", help="how far a goal may be missed")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: choose from {', '.join(PARTS)}")
    scale = QUICK if given.quick else FULL
    set_up_logging("error", "json")
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as scratch:
        histories = Histories(Path(scratch), scale)
        for name in given.names or PARTS:
            for figure in PARTS[name](scale, histories):
                sys.stderr.write(f"{row(figure)}\n")
                found.append(figure)
    sys.stdout.write(table(found))
    if given.json is not None:
        given.json.write_text(
            json.dumps([asdict(figure) | {"met": figure.is_met} for figure in found], indent=2) + "\n"
        )
    return 1 if any(misses(figure, given.gross) for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
