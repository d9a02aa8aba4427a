"""How much is done: all of it, or a little to see that it works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`rounds` of what takes milliseconds, `few` of what takes longer; lengths of logs and fleets.

    `loops` of the autoscaler; `wanted` machines of a real installation in real time, none if 0.
    """

    rounds: int = 2000
    few: int = 15
    short_log: int = 1_000
    long_log: int = 1_000_000
    fleet: int = 5_000
    groups: int = 50
    group_size: int = 40
    loops: int = 100
    wanted: int = 100


FULL = Scale()
QUICK = Scale(rounds=40, few=2, short_log=500, long_log=2_000, fleet=60, groups=3, group_size=4, loops=3, wanted=0)
