"""Which clouds a configuration needs, and what becomes of them when it changes."""

from pathlib import Path

import pytest

from app.clock import FakeClock
from app.clouds import Backend, Clouds, backend_of, build_clouds
from app.config.load import load
from app.config.model import Config
from app.domain.service import OWN_MACHINES
from app.errors import ConfigurationError, NotSent

RENTED = """\
  gpu:
    instance_type: 1A100.22V
    image: ubuntu-24.04
    max_size: 3
    location: FIN-01
"""
OWN = """\
  old:
    kind: webhook
    machines:
    - {name: box-1, scale_up_endpoint: "http://a/1/on", scale_down_endpoint: "http://a/1/off", resources: {cpu: "8"}}
    - {name: box-2, scale_up_endpoint: "http://a/2/on", scale_down_endpoint: "http://a/2/off", resources: {cpu: "8"}}
"""
ACCOUNT = {"VERDA_CLIENT_ID": "us", "VERDA_CLIENT_SECRET": "hunter2"}


class Desk:
    """Configurations by their node groups."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def config(self, *groups: str, account: bool = False) -> Config:
        """A configuration of these groups, with or without credentials."""
        self.path.write_text("node_groups:\n" + "".join(groups))
        return load(self.path, environ=ACCOUNT if account else {}).config

    def clouds(self, *groups: str) -> Clouds:
        """What it needs without credentials."""
        backend = Backend(name=OWN_MACHINES, base_url="", client_id="", client_secret="")
        return build_clouds(self.config(*groups), backend, FakeClock(), lambda _: None, lambda: ())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A file to write in."""
    return Desk(tmp_path / "config.yaml")


def endpoints(clouds: Clouds) -> dict[str, dict[str, str]]:
    """Where each machine is switched off."""
    return {
        name: {machine: switch.scale_down_endpoint for machine, switch in group.switches.items()}
        for name, group in clouds.own.groups.items()
    }


BOTH = {"old": {"box-1": "http://a/1/off", "box-2": "http://a/2/off"}}


@pytest.mark.parametrize("left", [RENTED, RENTED.replace("gpu:", "old:")], ids=["removed", "rented from now on"])
def test_the_machines_of_a_group_that_is_no_more_can_still_be_switched(desk: Desk, left: str) -> None:
    """They may be on, and the autoscaler drains them and switches them off one by one."""
    clouds = desk.clouds(OWN)
    clouds.follow(desk.config(left))
    assert endpoints(clouds) == BOTH


def test_a_machine_that_left_its_group_can_still_be_switched_and_the_others_follow_the_file(desk: Desk) -> None:
    """What the file says of a machine is believed before what it said."""
    clouds = desk.clouds(OWN)
    first, _ = OWN.split("    - {name: box-2")
    clouds.follow(desk.config(first.replace("http://a/1/off", "http://b/1/off")))
    assert endpoints(clouds) == {"old": {"box-1": "http://b/1/off", "box-2": "http://a/2/off"}}
    clouds.follow(desk.config(OWN))
    assert endpoints(clouds) == BOTH


@pytest.mark.parametrize("groups", [(RENTED,), (RENTED, OWN), (OWN,)])
def test_an_account_is_used_if_there_is_one(desk: Desk, groups: tuple[str, ...]) -> None:
    """Also after the last rented group left the file: its machines may still be there to be given back."""
    assert backend_of(desk.config(*groups, account=True), None).name == "verda"


def test_machines_of_our_own_need_no_account(desk: Desk) -> None:
    """Nothing is asked at Verda then."""
    assert backend_of(desk.config(OWN), None).name == "webhook"


@pytest.mark.parametrize("groups", [(RENTED,), (RENTED, OWN)])
def test_nothing_is_rented_without_an_account(desk: Desk, groups: tuple[str, ...]) -> None:
    """One group is enough to need one."""
    with pytest.raises(ConfigurationError, match="no credentials: set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET"):
        backend_of(desk.config(*groups), None)


def test_a_group_that_rents_waits_for_a_start_with_an_account(desk: Desk) -> None:
    """Without one it would be listed by nobody; everything else of the file takes effect."""
    clouds = desk.clouds(OWN)
    running = desk.config(OWN)
    second = OWN.replace("old:", "older:")
    assert set(clouds.servable(desk.config(RENTED, OWN, second), running).node_groups) == {"old", "older"}
    changed = clouds.servable(desk.config(RENTED.replace("gpu:", "old:"), second), running)
    assert changed.node_groups["old"] == running.node_groups["old"]
    assert set(changed.node_groups) == {"old", "older"}


def test_with_an_account_nothing_waits(desk: Desk) -> None:
    """Groups of both kinds come and go as they like."""
    config = desk.config(OWN, account=True)
    clouds = build_clouds(config, backend_of(config, None), FakeClock(), lambda _: None, lambda: ())
    assert clouds.rented is not None
    both = desk.config(RENTED, OWN, account=True)
    assert clouds.servable(both, config) == both
    clouds.rented.close()


def test_a_rented_machine_is_never_gone_for_want_of_an_account(desk: Desk) -> None:
    """Nobody has looked."""
    with pytest.raises(NotSent, match="there is no account to look for"):
        desk.clouds(OWN).all.get_instance("1a1a1a1a-0000-4000-8000-000000000001")
