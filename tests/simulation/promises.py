"""Every invariant by its name, in one sentence: what the provider promises, and what a story holds it to."""

from collections.abc import Mapping

from tests.simulation.invariants.always import ALWAYS
from tests.simulation.invariants.bounded import ALONE, FAIR
from tests.simulation.invariants.calls import DELETIONS, ORDERS, SWEEPS
from tests.simulation.invariants.facts import FACTS
from tests.simulation.invariants.sampled import SAMPLED
from tests.simulation.invariants.settled import SETTLED

_IN_PASSING: Mapping[str, str] = {
    "a_copy_can_be_put_back": "A copy of the database that was made can take its place.",
    "a_decrease_is_seen_at_once": "A decrease that was answered with OK took back something, and no more than asked.",
    "a_deletion_is_seen_at_once": "A deletion that was answered with OK lowers the target by what it named, once.",
    "a_refusal_changes_nothing": "A call that was answered with an error changed nothing.",
    "a_settled_provider_writes_nothing": "When nothing changes any more, nothing is written any more.",
    "an_increase_is_seen_at_once": "An increase that was answered with OK raises the target by exactly that many.",
    "nothing_breaks_off": "No job and no call ends in an error that nobody expected.",
    "nothing_is_answered_before_the_first_look": "A new database answers nothing before the cloud has been looked at.",
    "nothing_is_done_for_callers_who_left": "A call whose deadline has passed changes nothing.",
    "strangers_are_not_given_back": "A call that names a stranger's node is refused as a whole.",
    "the_provider_starts": "Whatever it was killed at, the provider starts again.",
    "what_nobody_wants_costs_little": "Machines that nobody wants cost little in a whole story.",
    "work_waits_for_something": "No work wakes other work without end.",
}
_CHECKS = (*ALWAYS, *FACTS, *ORDERS, *DELETIONS, *SWEEPS, *SAMPLED, *SETTLED, *FAIR, *ALONE)

PROMISES: Mapping[str, str] = dict(_IN_PASSING) | {
    check.__name__: (check.__doc__ or "").partition("\n")[0] for check in _CHECKS
}
