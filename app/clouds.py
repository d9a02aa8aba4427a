"""Which clouds there are: an account at Verda or the simulator, machines of our own, or both as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.clock import Clock
from app.cloud.own import switches, with_former
from app.cloud.port import Cloud
from app.cloud.several import SeveralClouds
from app.cloud.verda.calls import Observer
from app.cloud.verda.cloud import VerdaCloud
from app.cloud.verda.transport import Limits
from app.cloud.webhook import Placed, WebhookCloud
from app.config.groups import NodeGroup
from app.config.model import Config
from app.domain.service import OWN_MACHINES
from app.errors import ConfigurationError, Problem
from app.simulator.http import Simulator

SIMULATOR_CLIENT = "simulator"
"""Id and secret that the embedded simulator accepts; the real API has never heard of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Which cloud to talk to, and as whom."""

    name: str
    base_url: str
    client_id: str
    client_secret: str


def backend_of(config: Config, simulator: Simulator | None) -> Backend:
    """The simulator if there is one, else the configured account; never one in place of the other.

    An account is used also if all groups are machines of our own: those that left may have rented ones to give back.

    Raises:
        ConfigurationError: there is no simulator and no complete pair of credentials, and a group that rents.
    """
    if simulator is not None:
        return Backend(
            name="simulator",
            base_url=simulator.base_url,
            client_id=SIMULATOR_CLIENT,
            client_secret=SIMULATOR_CLIENT,
        )
    verda = config.verda
    if verda.client_id is None or verda.client_secret is None:
        if not may_rent(config):
            return Backend(name=OWN_MACHINES, base_url="", client_id="", client_secret="")
        message = "no credentials: set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET, or say --with-simulator"
        raise ConfigurationError((Problem(source="environment", line=None, path="verda", message=message),))
    return Backend(
        name="simulator" if _is_loopback(verda.base_url) else "verda",
        base_url=verda.base_url,
        client_id=verda.client_id,
        client_secret=verda.client_secret.get_secret_value(),
    )


def may_rent(config: Config) -> bool:
    """Whether a group rents its machines; of none at all nobody knows yet."""
    groups = config.node_groups.values()
    return not groups or any(isinstance(group, NodeGroup) for group in groups)


def _is_loopback(base_url: str) -> bool:
    """Verda itself is never on this machine, so what listens here is a simulator."""
    return (urlsplit(base_url).hostname or "") in {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clouds:
    """`all` is what the jobs work with: `rented`, the account, if there is one, and `own`, machines of our own."""

    all: Cloud
    rented: VerdaCloud | None
    own: WebhookCloud

    def servable(self, config: Config, running: Config) -> Config:
        """The configuration as far as it needs no restart: without an account, groups that rent stay as they are."""
        if self.rented is not None:
            return config
        groups = {name: group for name, group in config.node_groups.items() if not isinstance(group, NodeGroup)}
        waiting = config.node_groups.keys() - groups.keys()
        former = {name: group for name, group in running.node_groups.items() if name in waiting}
        return config.model_copy(update={"node_groups": former | groups})

    def follow(self, config: Config) -> None:
        """Other machines of our own take effect at once; those that left can be switched off until the next start."""
        self.own.groups = with_former(switches(config), self.own.groups)


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
