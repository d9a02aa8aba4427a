"""The command line: run many stories, tell one, hunt defects."""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.simulation.defects.catalogue import chosen, hunt
from tests.simulation.defects.page import page
from tests.simulation.report import replay, told, where
from tests.simulation.run import STEPS, Theatre, Verdict
from tests.simulation.shrink import Shrinker


def _say(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a command line program


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Run stories of the whole provider, one a seed, and hold every invariant.",
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many stories to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed of them")
    parser.add_argument("--seed", type=int, help="run this one and tell it, the shortest form if it breaks")
    parser.add_argument("--steps", type=int, default=STEPS, help="length of a story")
    parser.add_argument("--only", help="numbers of the steps to take, separated by commas")
    parser.add_argument("--any-order", action="store_true", help="use the maps of production; runs cannot be repeated")
    parser.add_argument("--keep-going", action="store_true", help="name every broken invariant, explain none")
    parser.add_argument("--defects", nargs="*", metavar="NAME", help="make these defects, or all, until one is noticed")
    return parser.parse_args(arguments)


def _tell_one(theatre: Theatre, seed: int, length: int, only: frozenset[int] | None) -> int:
    """Tell a story as it is if every invariant holds or it is in parts already, else the shortest that still breaks."""
    lines: list[str] = []
    verdict = theatre.run(seed, length, only=only, tell=lambda words, facts: lines.append(told(words, facts)))
    if verdict.holds:
        _say("\n".join(lines))
        _say(f"seed {seed}: every invariant holds, the log ends with {verdict.head}")
        return 0
    if only is not None:
        _say("\n".join(lines))
    _say(f"seed {seed}: {verdict.invariant} broken {where(verdict)}: {verdict.words}")
    if only is None:
        _explain(theatre, verdict, length)
    return 1


def _explain(theatre: Theatre, broken: Verdict, length: int) -> None:
    kept = Shrinker(theatre, broken, length).shrink()
    _say(f"the shortest story found that still breaks it has {len(kept)} steps:")
    again = theatre.run(broken.seed, length, only=frozenset(kept), tell=lambda words, facts: _say(told(words, facts)))
    _say(f"{again.invariant} broken {where(again)}: {again.words}")
    _say(f"again: {replay(broken, length, kept)}")


def _run_many(theatre: Theatre, seeds: range, length: int, *, keep_going: bool) -> int:
    began, broken, events, effects, lives, machines = time.monotonic(), 0, 0, 0, 0, 0
    for count, seed in enumerate(seeds, start=1):
        verdict = theatre.run(seed, length)
        events, effects = events + verdict.events, effects + verdict.effects
        lives, machines = lives + verdict.lives, machines + verdict.machines
        if not verdict.holds:
            broken += 1
            _say(f"seed {seed}: {verdict.invariant} broken {where(verdict)}: {verdict.words}")
            _say(f"again: {replay(verdict, length)}")
            if not keep_going:
                _explain(theatre, verdict, length)
                return 1
        if count % 50 == 0 or count == len(seeds):
            took = time.monotonic() - began
            _say(
                f"{count} stories in {took:.0f} s, {broken} broken: {events} events, {machines} machines, "
                f"{effects} effects, {lives} lives of the provider"
            )
    return 1 if broken else 0


def _hunt(theatre: Theatre, names: Sequence[str], seeds: range, length: int) -> int:
    """Tell on the side what was noticed, and print the page if it was about all of them."""
    catches = []
    for defect in chosen(names):
        catch = hunt(theatre, defect, seeds, length)
        catches.append(catch)
        found = catch.verdict
        words = f"{found.invariant}, seed {found.seed}: {found.words}" if found else "NOT NOTICED"
        print(f"{defect.name}: {words}", file=sys.stderr, flush=True)  # noqa: T201 - a command line program
    if not names:
        _say(page(catches))
    return 0 if all(catch.verdict for catch in catches) else 1


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if an invariant broke."""
    wanted = _parse(arguments)
    only = frozenset(int(number) for number in wanted.only.split(",")) if wanted.only else None
    with Theatre() as theatre:
        if wanted.seed is not None:
            return _tell_one(theatre, wanted.seed, wanted.steps, only)
        seeds = range(wanted.first, wanted.first + wanted.seeds)
        if wanted.defects is not None:
            return _hunt(theatre, wanted.defects, seeds, wanted.steps)
        return _run_many(theatre, seeds, wanted.steps, keep_going=wanted.keep_going)
