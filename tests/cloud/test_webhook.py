"""Machines of our own behind the port of a cloud, against the reference power API. F73."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.cloud.port import Deletion, DeletionResult
from app.cloud.several import SeveralClouds
from app.cloud.webhook import Placed, PowerSwitch, WebhookCloud, WebhookGroup, instance_type
from app.domain.ids import Mark
from app.domain.machine import Order
from app.domain.offering import Contract
from app.errors import NotSent, Rejected
from examples.power_api import PowerApi

NAME = "GPU-Worker-1"
INSTANCE = "old-a2b3c4d5"
ID = f"webhook:old/{NAME}@{INSTANCE}"
ORDER = Order(
    hostname=INSTANCE,
    instance_type="webhook.old",
    image="none",
    location=NAME,
    contract=Contract.ON_DEMAND,
    description=Mark(cluster="c", installation="i", group="old").text(),
)


class Cellar:
    """A cloud of two machines, and what the books say is on."""

    def __init__(self, api: PowerApi, *, with_status: bool = True, token_file: Path | None = None) -> None:
        self.clock = FakeClock()
        self.on: list[Placed] = []
        switches = {
            name: PowerSwitch(
                name=name,
                scale_up_endpoint=f"{api.url}/{name}/start",
                scale_down_endpoint=f"{api.url}/{name}/stop",
                status_endpoint=f"{api.url}/{name}/status" if with_status else None,
                token_file=token_file,
            )
            for name in (NAME, "gpu-worker-2")
        }
        kind = instance_type("old", cpus=32, memory_gb=Decimal(128), gpus=4)
        self.cloud = WebhookCloud({"old": WebhookGroup(kind=kind, switches=switches)}, self.clock, lambda: self.on)

    def start(self) -> str:
        """Switch one on, and have the books know."""
        made = self.cloud.create_instance(ORDER)
        self.on.append(
            Placed(instance_id=made, instance=INSTANCE, node_group="old", machine=NAME, created_at=self.clock.now())
        )
        return made

    def statuses(self) -> list[str]:
        """What a listing shows."""
        return [machine.status for machine in self.cloud.list_instances()]


@pytest.fixture
def api() -> Iterator[PowerApi]:
    """The reference power API on a free port."""
    with PowerApi() as api:
        thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield api
        api.shutdown()
        thread.join(10)


def test_a_machine_is_on_until_it_is_switched_off(api: PowerApi) -> None:
    """One start and one stop; its id says which machine serves which wish."""
    cellar = Cellar(api)
    assert cellar.cloud.list_instances() == []
    assert cellar.start() == ID
    (machine,) = cellar.cloud.list_instances()
    assert (machine.instance_id, machine.hostname, machine.status, machine.location) == (ID, INSTANCE, "running", NAME)
    (answer,) = cellar.cloud.delete_instances([Deletion(instance_id=ID, volume_ids=None)])
    assert answer.result is DeletionResult.ACCEPTED
    assert cellar.cloud.list_instances() == []
    assert cellar.cloud.get_instance(ID) is None
    assert api.calls == [(NAME, "start"), (NAME, "stop")]


def test_a_machine_that_boots_is_being_created(api: PowerApi) -> None:
    """F73: not idle, so nobody switches it off again; without a status it counts as booting for five minutes."""
    api.boot_s = 3600
    cellar = Cellar(api)
    cellar.start()
    assert cellar.statuses() == ["booting"]
    blind = Cellar(api, with_status=False)
    blind.start()
    assert blind.statuses() == ["provisioning"]
    blind.clock.advance(timedelta(minutes=5))
    assert blind.statuses() == ["running"]


def test_somebody_else_switched_it_off(api: PowerApi) -> None:
    """Then it is stopped, not gone: it is still ours to switch."""
    cellar = Cellar(api)
    cellar.start()
    api.started.clear()
    assert cellar.statuses() == ["offline"]


def test_a_hook_that_fails_may_be_called_again(api: PowerApi) -> None:
    """F73: 500, then 200: power calls are harmless to repeat, so nothing is unknown."""
    api.answers = [500]
    cellar = Cellar(api)
    with pytest.raises(NotSent, match=f"{NAME} is not switched on: HTTP 500"):
        cellar.cloud.create_instance(ORDER)
    assert cellar.start() == ID


def test_a_hook_that_refuses_says_so(api: PowerApi) -> None:
    """The next machine is tried then."""
    api.answers = [404]
    with pytest.raises(Rejected, match=f"{NAME} is not switched on: HTTP 404"):
        Cellar(api).cloud.create_instance(ORDER)


def test_a_power_api_that_is_away_is_no_answer() -> None:
    """Nothing is lost: the machine's status is unknown, the order is tried again."""
    with PowerApi() as api:
        cellar = Cellar(api)
    cellar.on.append(Placed(instance_id=ID, instance=INSTANCE, node_group="old", machine=NAME, created_at=None))
    assert cellar.statuses() == ["unknown"]
    with pytest.raises(NotSent, match="no answer"):
        cellar.cloud.create_instance(ORDER)
    (answer,) = cellar.cloud.delete_instances([Deletion(instance_id=ID, volume_ids=None)])
    assert (answer.result, answer.code) == (DeletionResult.REFUSED, "webhook_failed")


def test_a_token_is_in_no_error(api: PowerApi, tmp_path: Path) -> None:
    """It is read for every call, and its absence is told by kind."""
    token = tmp_path / "token"
    token.write_text("hunter2\n", "utf-8")
    cellar = Cellar(api, token_file=token)
    api.answers = [401]
    with pytest.raises(Rejected) as refusal:
        cellar.cloud.create_instance(ORDER)
    assert "hunter2" not in str(refusal.value)
    token.unlink()
    with pytest.raises(NotSent, match=r"no answer \(FileNotFoundError\)"):
        cellar.cloud.create_instance(ORDER)


def test_without_an_account_there_is_only_what_is_ours(api: PowerApi) -> None:
    """No disk, no script, no price; every machine is switched here."""
    cellar = Cellar(api)
    both = SeveralClouds(None, cellar.cloud)
    assert both.backend == "webhook"
    assert both.create_instance(ORDER) == ID
    assert [kind.name for kind in both.instance_types()] == ["webhook.old"]
    assert (both.volumes(), both.scripts(), both.locations(), both.images()) == ((), (), (), ())
    (answer,) = both.delete_instances([Deletion(instance_id=ID, volume_ids=None)])
    assert answer.result is DeletionResult.ACCEPTED
