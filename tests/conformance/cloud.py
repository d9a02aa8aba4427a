"""Hands on the simulated cloud: what is really there, what goes wrong next, and when."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from app.simulator.config import parse_config
from app.simulator.http import Simulator
from app.simulator.remote import control

from .settings import CLOUD_SETTINGS

_ENDED: Final = frozenset({"discontinued", "no_capacity"})
_DELETE: Final = {"action": "^(delete|discontinue)$"}
BROKEN: Final[Mapping[str, Any]] = {
    "kind": "say",
    "status": 500,
    "json_body": {"code": "server_error", "message": "Internal server error"},
}
"""What the API says when it is broken."""


class Cloud:
    """One simulated cloud in this process, spoken to over HTTP like the real one, and its control plane."""

    def __init__(self, **changes: Any) -> None:
        self.simulator = Simulator(parse_config({**CLOUD_SETTINGS, **changes})).start()

    @property
    def base_url(self) -> str:
        """Where the provider finds it."""
        return self.simulator.base_url

    def stop(self) -> None:
        """Be unreachable from now on."""
        self.simulator.stop()

    def control(self, method: str, path: str, body: object = None) -> Any:
        """One call to the control plane."""
        return control(self.simulator.control_url, method, path, body)

    def truth(self) -> dict[str, Any]:
        """What really is."""
        return dict(self.control("GET", "/truth"))

    def orders(self) -> int:
        """Orders that have ever reached the cloud."""
        return int(self.truth()["creates_requested"])

    def machines(self, group: str) -> list[dict[str, Any]]:
        """Every machine ever ordered for a group, ended ones too; without strangers that only look like it."""
        machines = self.truth()["instances"]
        return [machine for machine in machines if machine["group"] == group and not machine["foreign"]]

    def alive(self, group: str) -> list[dict[str, Any]]:
        """The machines of a group that exist and cost money."""
        return [machine for machine in self.machines(group) if machine["status"] not in _ENDED]

    def machine(self, instance_id: str) -> dict[str, Any]:
        """The machine behind an instance id of the form `verda://<hostname>`."""
        hostname = instance_id.removeprefix("verda://")
        return next(machine for machine in self.truth()["instances"] if machine["hostname"] == hostname)

    def act(self, machine: Mapping[str, Any], act: str, **arguments: object) -> None:
        """Do something to a machine that the provider has not asked for."""
        self.control("POST", f"/instances/{machine['id']}/{act}", arguments)

    def preset(self, name: str, **arguments: object) -> Any:
        """Put a named fault in force, or do a named act."""
        return self.control("POST", "/faults", {"preset": name, "args": arguments})

    def order_preset(self, name: str, group: str, **arguments: object) -> Any:
        """A named fault on orders, for those of one group alone."""
        return self.preset(name, body={"description": f"group={group}( |$)"}, **arguments)

    def fault(self, phase: str, action: Mapping[str, Any], *, times: int = -1, **match: Any) -> str:
        """Put a fault of one's own in force; returns its id."""
        body = {"phase": phase, "action": dict(action), "times": times, "match": match}
        fault_id: str = self.control("POST", "/faults", body)["faults"][0]
        return fault_id

    def refuse_orders(self, group: str, status: int, message: str, *, code: str, times: int = 1) -> str:
        """Refuse the next orders of a group in the API's own words."""
        say = {"kind": "say", "status": status, "json_body": {"code": code, "message": message}}
        body = {"description": f"group={group}( |$)"}
        return self.fault("before_commit", say, times=times, method="POST", path="/v1/instances", body=body)

    def refuse_deletion(self, machine: Mapping[str, Any]) -> str:
        """Answer every deletion of a machine with an error until the fault is lifted."""
        body = {**_DELETE, "id": machine["id"]}
        return self.fault("before_commit", BROKEN, method="PUT", path="/v1/instances", body=body)

    def lift(self, fault_id: str) -> None:
        """Take a fault away."""
        self.control("DELETE", f"/faults/{fault_id}")

    def fired(self, fault_id: str) -> int:
        """How often a fault has struck."""
        found = next(fault for fault in self.control("GET", "/faults") if fault["id"] == fault_id)
        return int(found["fired"])

    def clear(self) -> None:
        """Take every fault away."""
        self.control("DELETE", "/faults")

    def listings(self) -> int:
        """How often the machines have been listed."""
        return int(self.truth()["requests_by_route"].get("GET /instances", 0))

    @contextmanager
    def orders_held(self, count: int) -> Iterator[None]:
        """Hold the next `count` orders, of whatever group, at the door of the cloud until the block is left."""
        self.control("POST", "/barrier", {"route": "POST /v1/instances", "n": count + 1})
        try:
            yield
        finally:
            knocking = [threading.Thread(target=self._knock) for _ in range(count + 1)]
            for thread in knocking:
                thread.start()
            for thread in knocking:
                thread.join()

    def _knock(self) -> None:
        """An order without credentials: it counts at the barrier and is refused behind it."""
        url = f"{self.base_url}/instances"
        request = urllib.request.Request(url, method="POST", data=b"{}")  # noqa: S310 - our own loopback server
        try:
            with urllib.request.urlopen(request, timeout=40):  # noqa: S310 - our own loopback server
                pass
        except urllib.error.HTTPError as refusal:
            refusal.close()
