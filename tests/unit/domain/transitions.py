"""The state machine of an instance, worked out by hand: which fact may meet which state, and the state after it."""

from collections.abc import Mapping

from app.domain.instance.lifecycle import InstanceState

_TABLE = """
                        requested    submitting   provisioning running   stopped   failed    deleting  lost
requested               -            -            -            -         -         -         -         -
create-attempted        submitting   -            -            -         -         -         -         -
script-assigned         -            submitting   -            -         -         failed    deleting  -
script-fetched          requested    submitting   provisioning running   stopped   failed    deleting  -
created                 provisioning provisioning -            -         -         failed    deleting  -
create-refused          -            requested    requested    -         -         failed    deleting  -
create-outcome-unknown  -            submitting   -            -         -         -         deleting  -
create-ruled-out        -            requested    -            -         -         failed    deleting  -
create-failed           failed       failed       failed       -         -         -         -         -
state-observed          -            -            *            *         *         failed    deleting  -
provider-id-learned     requested    submitting   provisioning running   stopped   failed    deleting  -
node-registered         requested    submitting   provisioning running   stopped   failed    -         -
node-joined             requested    submitting   provisioning running   stopped   failed    -         -
node-measured           requested    submitting   provisioning running   stopped   failed    -         -
node-doubted            requested    submitting   provisioning running   stopped   failed    -         -
provider-id-repair-attempted - -        provisioning running   stopped   failed    -         -
node-preparation-attempted requested    submitting   provisioning running   stopped   failed    -         -
node-prepared           requested    submitting   provisioning running   stopped   failed    -         -
delete-requested        -            deleting     deleting     deleting  deleting  deleting  -         lost
delete-attempted        -            -            -            -         -         -         deleting  -
delete-refused          -            -            -            -         -         -         deleting  -
gone                    -            -            -            -         -         -         gone      -
lost                    -            -            lost         lost      lost      -         -         -
adopted                 -            -            -            -         -         -         -         provisioning
cancelled               cancelled    -            -            -         -         cancelled cancelled -
"""
# "-": no decider ever records this fact in this state. "*": the state that the fact itself carries.

_HEAD, *_ROWS = (line.split() for line in _TABLE.strip().splitlines())

TRANSITIONS: Mapping[tuple[InstanceState, str], str] = {
    (InstanceState(state), f"instance.{event}"): after
    for event, *cells in _ROWS
    for state, after in zip((*_HEAD, "gone", "cancelled"), (*cells, "-", "-"), strict=True)
}
"""(state before, event type) → state after, `-` or `*`. Nothing ever happens to what is gone or cancelled."""
