"""Which clouds there are: an account at Verda or the simulator, machines of our own, or both as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.clock import Clock
from app.cloud.own import switches
from app.cloud.port import Cloud
from app.cloud.several import SeveralClouds
from app.cloud.verda.calls import Observer
from app.cloud.verda.cloud import VerdaCloud
from app.cloud.verda.transport import Limits
from app.cloud.webhook import Placed, WebhookCloud
from app.config.groups import NodeGroup
from app.config.model import Config
from app.errors import ConfigurationError, Problem
from app.simulator.http import Simulator

SIMULATOR_CLIENT = "simulator"
"""Id and secret that the embedded simulator accepts; the real API has never heard of them."""


OWN_MACHINES = "webhook"
"""The backend of an installation that rents nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Which cloud to talk to, and as whom."""

    name: str
    base_url: str
    client_id: str
    client_secret: str


def backend_of(config: Config, simulator: Simulator | None) -> Backend:
    """The simulator if there is one, else the configured account; never one in place of the other.

    Raises:
        ConfigurationError: there is no simulator and no complete pair of credentials.
    """
    if simulator is not None:
        return Backend(
            name="simulator",
            base_url=simulator.base_url,
            client_id=SIMULATOR_CLIENT,
            client_secret=SIMULATOR_CLIENT,
        )
    verda = config.verda
    if not any(isinstance(group, NodeGroup) for group in config.node_groups.values()) and config.node_groups:
        return Backend(name=OWN_MACHINES, base_url="", client_id="", client_secret="")
    if verda.client_id is None or verda.client_secret is None:
        message = "no credentials: set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET, or say --with-simulator"
        raise ConfigurationError((Problem(source="environment", line=None, path="verda", message=message),))
    return Backend(
        name="simulator" if _is_loopback(verda.base_url) else "verda",
        base_url=verda.base_url,
        client_id=verda.client_id,
        client_secret=verda.client_secret.get_secret_value(),
    )


def _is_loopback(base_url: str) -> bool:
    """Verda itself is never on this machine, so what listens here is a simulator."""
    return (urlsplit(base_url).hostname or "") in {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clouds:
    """`all` is what the jobs work with: `rented`, the account, if there is one, and `own`, machines of our own."""

    all: Cloud
    rented: VerdaCloud | None
    own: WebhookCloud

    def follow(self, config: Config) -> None:
        """Other machines of our own take effect at once."""
        self.own.groups = switches(config)


def build_clouds(
    config: Config, backend: Backend, clock: Clock, observer: Observer, placed: Callable[[], Sequence[Placed]]
) -> Clouds:
    """The adapters that the configuration needs; calls none of them. `placed` tells which own machines are on."""
    rented = None if backend.name == OWN_MACHINES else _rented(config, backend, clock, observer)
    own = WebhookCloud(switches(config), clock, placed)
    return Clouds(all=SeveralClouds(rented, own), rented=rented, own=own)


def _rented(config: Config, backend: Backend, clock: Clock, observer: Observer) -> VerdaCloud:
    return VerdaCloud(
        base_url=backend.base_url,
        client_id=backend.client_id,
        client_secret=backend.client_secret,
        limits=Limits(timeout=config.verda.timeout, rate_share=config.verda.rate_share),
        clock=clock,
        observer=observer,
        backend=backend.name,
    )
