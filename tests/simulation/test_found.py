"""Stories that once broke an invariant, each told with as few steps as it needs."""

from collections.abc import Sequence

import pytest

from tests.simulation.plan import Planned
from tests.simulation.run import Theatre
from tests.simulation.stage import PutBack
from tests.simulation.steps import Step
from tests.simulation.steps.asking import Delete, DeleteAgain, DeleteFailed, Increase
from tests.simulation.steps.passing import Copy, Kill, KillAtEffect, PutCopyBack, Wait
from tests.simulation.steps.trouble import Befall, CloudFault, HumanEdit, LateOrder, Project, Stranger

_UP = (Wait(30.0), Increase("gpu", 1), Wait(400.0))

_GIVEN_BACK_WHILE_LOST: Sequence[Step] = (*_UP, Befall("vanish"), Wait(60.0), DeleteAgain())
"""The machine is believed lost, the autoscaler gives it back, and then it is there again."""

_UNMARKED_AND_BACK: Sequence[Step] = (
    *_UP,
    HumanEdit(),
    Befall("vanish"),
    Delete("gpu", 1, coming_too=True, one_by_one=False),
    Wait(60.0),
)
"""Somebody has edited the mark away; the cloud says that the deleted machine is no more, and then it is there again."""

_LEFT_BY_AN_EARLIER_ATTEMPT: Sequence[Step] = (
    CloudFault("no_capacity_async"),
    CloudFault("create_timeout_before_commit"),
    CloudFault("create_get_404", (("n", 20),)),
    Wait(30.0),
    Increase("gpu", 1),
    Wait(120.0),
)
"""The record of an order that was never placed is listed while nobody knows what became of the next one."""

_DISK_LEFT_BEHIND: Sequence[Step] = (
    *_UP,
    CloudFault("os_volume_left"),
    Delete("gpu", 1, coming_too=True, one_by_one=False),
    Wait(60.0),
)
"""The cloud deletes the machine and keeps its system disk, detached and billed, although its deletion was asked for."""


_DISK_OF_THE_RETURNED: Sequence[Step] = (
    *_UP,
    Befall("vanish_then_return", (("seconds", 200),)),
    Wait(90.0),
    DeleteAgain(),
    CloudFault("os_volume_left"),
    Wait(300.0),
)
"""A machine given back while it was believed lost is there again and deleted, and the cloud keeps its system disk."""

_DISK_OF_THE_TWIN: Sequence[Step] = (
    LateOrder(240.0),
    CloudFault("delete_refused_provisioning", (("times", 2),)),
    CloudFault("os_volume_left", (("times", 3),)),
    Wait(30.0),
    Increase("gpu", 1),
    Wait(600.0),
)
"""An order is executed after it was ruled out and repeated; of the two machines one goes, and leaves its disk."""

_MOVED_WHILE_LOST: Sequence[Step] = (
    *_UP,
    Befall("set_status", (("value", "migrating"),)),
    Befall("vanish_then_return", (("seconds", 100),)),
    *(Wait(90.0),) * 14,
)
"""A machine that has run was believed lost, and is being moved when it is listed again."""

_NAMESAKE: Sequence[Step] = (
    CloudFault("list_stale", (("lag", 60), ("times", 30))),
    CloudFault("create_reset_after_commit"),
    Wait(30.0),
    Increase("gpu", 1),
    Wait(3.0),
    Stranger("same name as one of ours"),
    Befall("vanish"),
    *(Wait(90.0), Wait(90.0), Wait(90.0), Wait(90.0), Wait(60.0), DeleteFailed(), Wait(90.0), Wait(90.0)),
)
"""A stranger's machine has the name of an order of unknown outcome, whose own machine is nowhere to be seen."""

_KILLED_BEFORE_THE_SECOND_ORDER: Sequence[Step] = (
    CloudFault("no_capacity_async"),
    Wait(30.0),
    Increase("gpu", 1),
    KillAtEffect(20, 3.0),
    Wait(110.0),
    Wait(110.0),
)
"""The first order was never placed; the second is in the log, and the process dies before its call leaves."""

_GIVEN_BACK_WHEN_FORGOTTEN: Sequence[Step] = (
    *_UP,
    Befall("vanish"),
    Wait(60.0),
    Wait(200_000.0),
    Kill(3.0),
    DeleteAgain(),
)
"""A machine was lost days ago, the process has started since, the autoscaler gives it back, and then it is there."""

_PUT_BACK: Sequence[Step] = (
    Wait(30.0),
    Increase("gpu", 1),
    Copy(),
    Wait(400.0),
    Increase("gpu", 1),
    Increase("gpu-spot", 1),
    Wait(400.0),
    PutCopyBack(0, PutBack.RESTORED, 20.0),
    Wait(110.0),
)
"""Machines are made after a copy of the database, and the copy is put back."""

_BEYOND_RECOGNITION: Sequence[Step] = (
    Wait(30.0),
    Copy(),
    Increase("gpu", 1),
    Wait(400.0),
    HumanEdit(),
    PutCopyBack(0, PutBack.COPIED, 3.0),
    Wait(110.0),
)
"""Somebody edits the mark of a machine away, and then an older copy is put back, which never knew the machine's id."""

_SPOT_DISK_BEYOND_THE_BOOKS: Sequence[Step] = (
    Wait(30.0),
    Increase("cpu", 1),
    Copy(),
    Wait(100.0),
    CloudFault("os_volume_left", (("times", 3),)),
    Delete("cpu", 1, coming_too=True, one_by_one=False),
    Wait(5.0),
    PutCopyBack(0, PutBack.COPIED, 3.0),
)
"""The books that are put back do not know that a spot machine was given back; its disk was to go with it anyway."""


_POOR_FOR_DAYS: Sequence[Step] = (
    *_UP,
    Stranger("other cluster"),
    Wait(100.0),
    Project("balance_zero"),
    Wait(200_000.0),
    Wait(200_000.0),
    Increase("gpu", 1),
)
"""The project has no money for days: the platform ends every machine, a stranger's too, and empties the trash."""

_STALE_RECORD: Sequence[Step] = (
    CloudFault("no_capacity_async"),
    Wait(30.0),
    Increase("gpu", 1),
    Wait(20.0),
    LateOrder(240.0),
    Wait(45.0),
    CloudFault("list_stale", (("lag", 60), ("times", 4))),
    Wait(60.0),
    Wait(300.0),
)
"""What an order left that was never placed is deleted, and a stale list shows it when the next one is in doubt."""


@pytest.mark.parametrize(
    "story",
    [
        _GIVEN_BACK_WHILE_LOST,
        _UNMARKED_AND_BACK,
        _LEFT_BY_AN_EARLIER_ATTEMPT,
        _DISK_LEFT_BEHIND,
        _DISK_OF_THE_RETURNED,
        _DISK_OF_THE_TWIN,
        _MOVED_WHILE_LOST,
        _NAMESAKE,
        _KILLED_BEFORE_THE_SECOND_ORDER,
        _GIVEN_BACK_WHEN_FORGOTTEN,
        _PUT_BACK,
        _BEYOND_RECOGNITION,
        _SPOT_DISK_BEYOND_THE_BOOKS,
        _POOR_FOR_DAYS,
        _STALE_RECORD,
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_invariant_holds(theatre: Theatre, seed: int, story: Sequence[Step]) -> None:
    """In the end the books, the cloud and the wishes agree."""
    planned = [Planned(number, step, number) for number, step in enumerate(story, start=1)]
    verdict = theatre.play(seed, planned)
    assert verdict.holds, f"{verdict.invariant}: {verdict.words}"
    assert verdict.machines > 0
