"""A simulator under test: the stock SDK, raw requests with a bearer, and the control plane."""

from collections.abc import Mapping
from typing import Any

import requests
from verda import VerdaClient  # type: ignore[import-untyped]  # the SDK ships no py.typed
from verda.exceptions import APIException  # type: ignore[import-untyped]  # likewise

from app.simulator.config import parse_config
from app.simulator.http import Simulator

__all__ = ["IMAGE", "TIMED", "TYPE", "APIException", "Harness", "VerdaClient", "order"]

TIMED: Mapping[str, Any] = {
    "seed": 7,
    "clock": {"mode": "manual"},
    "auth": {"token_clock": "real"},
    "chances": {"validating": 0},
    "durations": {
        "preset": "fast",
        "ordering": 5,
        "provisioning": 100,
        "guest": 60,
        "shutting_down": 20,
        "booting": 30,
        "deleting": 10,
        "no_capacity": 15,
        "detaching": 2,
    },
}
"""Round durations, so that every expected instant can be worked out by hand: running 105 s after the POST."""

TYPE = "1H100.80S.30V"
IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"


def order(hostname: str = "gpu-1", **changes: object) -> dict[str, Any]:
    """A valid body of POST /instances."""
    body = {"instance_type": TYPE, "image": IMAGE, "hostname": hostname, "location_code": "FIN-01"}
    return {**body, **changes}


class Harness:
    """One running simulator and ways to talk to it."""

    def __init__(self, **config: Any) -> None:
        merged = {**TIMED, **config}
        self.simulator = Simulator(parse_config(merged)).start()
        self.session = requests.Session()
        self.session.trust_env = False

    def close(self) -> None:
        """Stop everything."""
        self.session.close()
        self.simulator.stop()

    @property
    def url(self) -> str:
        """What an SDK is given."""
        return self.simulator.base_url

    def client(self, secret: str = "simulator") -> VerdaClient:  # noqa: S107 - a made-up secret
        """A stock SDK client; constructing it makes one token request."""
        return VerdaClient("simulator", secret, base_url=self.url)

    def token(self) -> dict[str, Any]:
        """A fresh token answer."""
        body = {"grant_type": "client_credentials", "client_id": "simulator", "client_secret": "simulator"}
        answer = self.session.post(f"{self.url}/oauth2/token", json=body, timeout=10)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def login(self) -> None:
        """Give the raw session a bearer."""
        self.session.headers["Authorization"] = f"Bearer {self.token()['access_token']}"

    def raw(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """One request to the data plane, with a bearer."""
        if "Authorization" not in self.session.headers:
            self.login()
        arguments.setdefault("timeout", 10)
        return self.session.request(method, f"{self.url}{path}", allow_redirects=False, **arguments)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """One call to the control plane, which must succeed."""
        answer = requests.request(method, f"{self.simulator.control_url}{path}", json=body, timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def advance(self, seconds: float) -> None:
        """Move simulated time."""
        self.control("POST", "/clock/advance", {"seconds": seconds})

    def preset(self, name: str, **args: Any) -> Any:
        """Install a named fault or do a named act."""
        return self.control("POST", "/faults", {"preset": name, "args": args})

    def truth(self) -> dict[str, Any]:
        """What really is."""
        return dict(self.control("GET", "/truth"))

    def requests(self) -> list[dict[str, Any]]:
        """The log of data-plane requests."""
        return list(self.control("GET", "/requests"))

    def create(self, hostname: str = "gpu-1", **changes: object) -> str:
        """Order an instance by a raw POST; returns its id."""
        answer = self.raw("POST", "/instances", json=order(hostname, **changes))
        assert answer.status_code == 202, answer.text
        return answer.text

    def running(self, hostname: str = "gpu-1", **changes: object) -> str:
        """An instance that has reached `running`, 105 s after its order."""
        instance_id = self.create(hostname, **changes)
        self.advance(105)
        assert self.status(instance_id) == "running"
        return instance_id

    def status(self, instance_id: str) -> str:
        """An instance's status."""
        return str(self.raw("GET", f"/instances/{instance_id}").json()["status"])

    def one(self, instance_id: str) -> dict[str, Any]:
        """The truth about one instance."""
        return next(item for item in self.truth()["instances"] if item["id"] == instance_id)
