"""Troubles of the simulated cloud that scenarios use."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from app.simulator.fault_model import Fault, Match, Phase, Say
from app.simulator.inprocess import Call, Hook, Moment

from .stage.process import Killed

NO_H100: Final[Mapping[str, Any]] = {"capacity": {"pools": {"FIN-01": {"H100": 0, "A100": 8, "CPU": 720}}}}
"""H100s are offered and sold out."""


def refusal(status: int, code: str, message: str, times: int = -1, **body: str) -> Fault:
    """Orders are refused in the API's own words; `body` narrows it to orders whose fields match."""
    say = Say(status=status, json_body={"code": code, "message": message})
    match = Match(method="POST", path="/v1/instances", body=body)
    return Fault(match=match, phase=Phase.BEFORE_COMMIT, action=say, times=times)


def meanwhile(operation: str, act: Callable[[], object]) -> Hook:
    """Something happens while the first such call is on its way to the cloud."""
    done: list[Call] = []

    def interrupt(call: Call, when: Moment) -> None:
        if call.operation == operation and when is Moment.BEFORE and not done:
            done.append(call)
            act()

    return interrupt


def killing(operation: str, moment: Moment) -> Hook:
    """The provider is killed in the middle of such a call: before the cloud hears of it, or before it hears back."""

    def kill(call: Call, when: Moment) -> None:
        if call.operation == operation and when is moment:
            raise Killed(operation)

    return kill
