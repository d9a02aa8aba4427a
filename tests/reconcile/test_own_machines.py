"""F73: machines behind webhooks, with every job at work: hooks that fail, machines that boot long, one call each."""

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app.cloud.own import placed
from app.cloud.port import Cloud
from app.cloud.several import SeveralClouds
from app.cloud.webhook import PowerSwitch, WebhookCloud, WebhookGroup, instance_type
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import ErrorClass, FailureCode, InstanceCreated
from app.domain.nodegroup.spec import NodeGroupSpec
from app.rpc.client import CallFailed, Client
from examples.power_api import PowerApi
from tests.rpc.serving import address_of, serving

from .house import H100_TYPE, House, spec
from .world import Killed

FIRST, SECOND = "GPU-Worker-1", "gpu-worker-2"
OLD = NodeGroupSpec(
    name="old",
    kind="webhook",
    min_size=0,
    max_size=2,
    instance_type="webhook.old",
    image="none",
    locations=(FIRST, SECOND),
    provider_id_template="webhook://{group}/{location}",
)
KIND = instance_type("old", cpus=32, memory_gb=Decimal(128), gpus=4)
HOUR_S = 3600.0


class Cellar(House):
    """A house with a rented cloud and two machines of its own behind a power API."""

    def __init__(self, path: Path, api: PowerApi) -> None:
        switches = {
            name: PowerSwitch(
                name=name,
                scale_up_endpoint=f"{api.url}/{name}/start",
                scale_down_endpoint=f"{api.url}/{name}/stop",
                status_endpoint=f"{api.url}/{name}/status",
            )
            for name in (FIRST, SECOND)
        }
        self._groups = {"old": WebhookGroup(kind=KIND, switches=switches)}
        super().__init__(path=path)
        self.start(spec(), OLD)
        self.execute(RecordCatalogue(types=(H100_TYPE, KIND)))

    @property
    def cloud(self) -> Cloud:
        """Both."""
        return SeveralClouds(self.world, WebhookCloud(self._groups, self.clock, lambda: placed(self.books)))


@pytest.fixture
def api() -> Iterator[PowerApi]:
    """The reference power API on a free port; what is started boots for an hour of the test's own time."""
    with PowerApi(boot_s=HOUR_S) as api:
        thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield api
        api.shutdown()
        thread.join(10)


@pytest.fixture
def cellar(api: PowerApi, tmp_path: Path) -> Iterator[Cellar]:
    """A first start."""
    cellar = Cellar(tmp_path / "provider.db", api)
    yield cellar
    cellar.close()


def test_a_hook_that_fails_is_called_again_with_pauses_and_never_more_often(cellar: Cellar, api: PowerApi) -> None:
    """500, 500, then 200: after two and four seconds, however often the job runs in between."""
    api.answers = [500, 500]
    (name,) = cellar.grow(group="old")
    calls = []
    for pause in (0, 1, 1, 3, 1):
        cellar.clock.advance(pause)
        for _ in range(5):
            cellar.provision.run()
        calls.append(len(api.calls))
    assert calls == [1, 1, 2, 2, 3]
    assert api.calls == [(FIRST, "start")] * 3
    assert cellar.instance(name).provider_id == f"webhook://old/{FIRST}"


def test_a_machine_that_boots_is_left_alone_and_stopped_once(cellar: Cellar, api: PowerApi) -> None:
    """Five minutes of every job: it is being created, not idle. Only the autoscaler's word switches it off."""
    (name,) = cellar.grow(group="old")
    cellar.ticks(30)
    assert cellar.state(name) == "provisioning"
    assert api.calls == [(FIRST, "start")]
    api.boot_s = 0
    cellar.ticks(2)
    assert cellar.state(name) == "running"
    cellar.ticks(30)
    assert api.calls == [(FIRST, "start")]
    cellar.delete(name, group="old")
    cellar.ticks(6)
    assert cellar.state(name) == "gone"
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]


def test_a_hook_that_never_works_reaches_the_autoscaler(cellar: Cellar, api: PowerApi) -> None:
    """As the error of a creation, within the ten minutes of `create_timeout`; a rented group does not notice."""
    api.answers = [500] * 1000
    (name,) = cellar.grow(group="old")
    (rented,) = cellar.grow()
    cellar.ticks(1)
    assert cellar.state(rented) == "provisioning"
    began = cellar.now
    while cellar.state(name) != "failed":
        cellar.ticks(1)
        assert cellar.now - began < timedelta(minutes=11)
    failed = cellar.instance(name)
    assert (failed.error_class, failed.error_code) == (ErrorClass.OTHER, FailureCode.CLOUD_UNREACHABLE)
    assert f"{FIRST} is not switched on: HTTP 500" in str(failed.error_message)
    assert 10 <= len(api.calls) <= 16  # pauses of 2, 4, 8, 16, 32 and then 60 seconds


def test_a_hook_that_refuses_sends_the_wish_to_the_next_machine(cellar: Cellar, api: PowerApi) -> None:
    """404: that machine is out of order, and the other one is switched on at once."""
    api.answers = [404]
    (name,) = cellar.grow(group="old")
    cellar.provision_until_quiet()
    assert api.calls == [(FIRST, "start"), (SECOND, "start")]
    assert cellar.instance(name).provider_id == f"webhook://old/{SECOND}"


def test_a_node_that_was_given_back_may_be_given_back_again(cellar: Cellar, api: PowerApi) -> None:
    """Its machine is off and nobody's: a repeated call is answered with OK and keeps no other node from going."""
    first, second = cellar.grow(2, group="old")
    cellar.ticks(1)
    with serving(cellar.ledger, clock=cellar.clock) as server, Client(address_of(server)) as client:
        client.delete_nodes("old", [f"webhook://old/{FIRST}"])
        cellar.ticks(6)
        assert cellar.state(first) == "gone"
        client.delete_nodes("old", [f"webhook://old/{FIRST}"])
        assert cellar.state(second) == "provisioning"
        client.delete_nodes("old", [f"webhook://old/{FIRST.lower()}", f"webhook://old/{SECOND}"])
        assert cellar.state(second) == "deleting"
        for stranger in ("webhook://old/attic", f"webhook://h100/{FIRST}", "webhook://old"):
            with pytest.raises(CallFailed) as refused:
                client.delete_nodes("old", [stranger])
            assert refused.value.status == "INVALID_ARGUMENT"
    cellar.ticks(6)
    assert api.calls[2:] == [(FIRST, "stop"), (SECOND, "stop")]


def on_in_spite_of(api: PowerApi, *answers: int) -> None:
    """The first machine has been switched on by the next call, which is answered otherwise, as are those after it."""
    api.answers = list(answers)
    api.started[FIRST] = 0.0


@pytest.mark.parametrize("way", ["shrink", "delete"])
def test_a_machine_that_was_switched_on_without_a_word_goes_with_its_wish(
    cellar: Cellar, api: PowerApi, way: str
) -> None:
    """502 by a gateway: once the wish is gone nobody knows of the machine. One stop, also over a restart."""
    on_in_spite_of(api, 502)
    (name,) = cellar.grow(group="old")
    cellar.provision.run()
    if way == "shrink":
        cellar.shrink(1, group="old")
    else:
        cellar.delete(name, group="old")
    assert (cellar.state(name), cellar.target("old")) == ("cancelled", 0)
    cellar.restart()
    cellar.ticks(6)
    cellar.restart()
    cellar.ticks(6)
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]
    assert api.status(FIRST) == "off"
    assert not cellar.books.cloud.surplus


def test_a_machine_switched_on_right_before_a_crash_goes_with_its_wish(cellar: Cellar, api: PowerApi) -> None:
    """Killed between the hook and its record; the autoscaler gives the wish back before the doubt is resolved."""

    def killed(recorded: Sequence[Recorded[Event]]) -> None:
        if any(isinstance(item.event, InstanceCreated) for item in recorded):
            raise Killed

    (name,) = cellar.grow(group="old")
    cellar.trap.on_append = killed
    with pytest.raises(Killed):
        cellar.provision.run()
    cellar.restart()
    cellar.delete(name, group="old")
    cellar.ticks(20)
    assert cellar.state(name) == "cancelled"
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]
    assert not cellar.books.cloud.surplus


def test_a_wish_that_goes_on_to_another_machine_leaves_none_on(cellar: Cellar, api: PowerApi) -> None:
    """502 and then a refusal, though it is on: the other machine is the wish's, the first is switched off."""
    on_in_spite_of(api, 502, 423)
    (name,) = cellar.grow(group="old")
    cellar.ticks(8)
    assert cellar.instance(name).location == SECOND
    assert sorted(api.calls) == sorted([(FIRST, "start")] * 2 + [(SECOND, "start"), (FIRST, "stop")])
    assert (api.status(FIRST), set(api.started)) == ("off", {SECOND})


def test_a_machine_is_free_again_only_when_it_is_off(cellar: Cellar, api: PowerApi) -> None:
    """What another wish uses is not switched off under it: it takes the other machine, and a third one waits."""
    on_in_spite_of(api, 502)
    (doubtful,) = cellar.grow(group="old")
    cellar.provision.run()
    (second,) = cellar.grow(group="old")
    cellar.provision.run()
    cellar.delete(doubtful, group="old")
    (third,) = cellar.grow(group="old")
    api.answers = [500]
    cellar.ticks(2)
    assert (cellar.state(third), cellar.instance(second).location) == ("requested", SECOND)
    cellar.ticks(6)
    assert cellar.instance(third).provider_id == f"webhook://old/{FIRST}"
    assert api.calls == [
        (FIRST, "start"),
        (SECOND, "start"),
        (FIRST, "stop"),
        (FIRST, "stop"),
        (FIRST, "start"),
    ]


def test_a_wish_that_failed_for_good_leaves_no_machine_on(cellar: Cellar, api: PowerApi) -> None:
    """500 for ten minutes: whether it is on for all that nobody knows, so it is switched off when it is collected."""
    on_in_spite_of(api, *[500] * 1000)
    (name,) = cellar.grow(group="old")
    while cellar.state(name) != "failed":
        cellar.ticks(1)
    api.answers, api.calls = [], []
    cellar.delete(name, group="old")
    cellar.ticks(6)
    assert api.calls == [(FIRST, "stop")]
    assert (cellar.state(name), api.status(FIRST)) == ("cancelled", "off")


def test_a_restart_calls_no_hook_again(cellar: Cellar, api: PowerApi) -> None:
    """The books know which machine is on; the power API need not remember who asked."""
    cellar.grow(2, group="old")
    cellar.ticks(1)
    cellar.restart()
    cellar.ticks(30)
    assert sorted(api.calls) == [(FIRST, "start"), (SECOND, "start")]


def test_nobody_is_asked_for_the_disk_of_a_machine_that_is_switched_off(
    cellar: Cellar, api: PowerApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has none to leave behind, and controllers that do not answer would hold up what else is to be deleted."""
    api.boot_s = 0
    (name,) = cellar.grow(group="old")
    cellar.ticks(2)
    asked: list[str] = []
    monkeypatch.setattr(api, "status", asked.append)
    cellar.delete(name, group="old")
    cellar.terminate.run()
    assert asked == []
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]


def test_a_group_that_rents_from_now_on_keeps_its_own_machines_until_they_are_switched_off(
    cellar: Cellar, api: PowerApi
) -> None:
    """What a machine is, its id says: the group's kind is about the next one."""
    api.boot_s = 0
    (name,) = cellar.grow(group="old")
    cellar.ticks(2)
    cellar.configure(spec(), spec("old"))
    cellar.ticks(30)
    assert cellar.state(name) == "running"
    assert cellar.lost() == {}
    cellar.delete(name, group="old")
    cellar.ticks(6)
    assert cellar.state(name) == "gone"
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]


def test_a_group_whose_machines_are_our_own_from_now_on_gives_the_rented_ones_back(cellar: Cellar) -> None:
    """A rented machine is listed by the cloud that has it and by nobody else, or it would run for ever."""
    (name,) = cellar.running()
    listed = [machine.instance_id for machine in cellar.cloud.list_instances()]
    cellar.configure(OLD.model_copy(update={"name": "h100", "instance_type": "webhook.h100"}), OLD)
    cellar.execute(RecordCatalogue(types=(H100_TYPE, KIND, KIND.model_copy(update={"name": "webhook.h100"}))))
    assert [machine.instance_id for machine in cellar.cloud.list_instances()] == listed
    cellar.delete(name)
    cellar.ticks(6)
    assert cellar.state(name) == "gone"
    assert list(cellar.cloud.list_instances()) == []


def test_a_machine_that_is_switched_off_before_it_was_listed_is_gone_with_the_next_listing(
    cellar: Cellar, api: PowerApi
) -> None:
    """It is looked up first, so that its absence from a list means something at once, and stopped once."""
    api.boot_s = 0
    (name,) = cellar.grow(group="old")
    cellar.provision_until_quiet()
    cellar.delete(name, group="old")
    cellar.ticks(2)
    assert cellar.state(name) == "gone"
    assert api.calls == [(FIRST, "start"), (FIRST, "stop")]
