"""Situations that take long to bring about, played once for all generations; each has node groups of its own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from tests.protocol.clients import GENERATIONS, Client

from .autoscaler import RUNNING, Autoscaler
from .cloud import BROKEN
from .provider import Stage
from .settings import KINDS, groups_for_each, name_for, shared_groups
from .until import until

MakeStage = Callable[..., Stage]
Clients = Mapping[str, Client]


@contextmanager
def everyone(clients: Clients, address: str) -> Iterator[Mapping[str, Autoscaler]]:
    """An autoscaler of each generation at one provider."""
    with ExitStack() as channels:
        yield {letter: channels.enter_context(Autoscaler(clients[letter], address)) for letter in GENERATIONS}


def running(ca: Autoscaler, group: str, count: int) -> list[str]:
    """Wait until a group has exactly so many instances and all run; their ids."""

    def all_run() -> bool:
        states = ca.states(group)
        return len(states) == count and set(states.values()) <= {RUNNING}

    until(f"{count} instances of {group} run", all_run)
    return ca.live(group)


def failed(ca: Autoscaler, group: str) -> Any:
    """Wait until the only instance of a group is a failed creation; the instance."""

    def failure() -> Any:
        (instance,) = ca.instances(group)
        return instance if instance.status.errorInfo.errorCode else None

    return until(f"the creation in {group} has failed", failure)


def grow(ca: Autoscaler, group: str, count: int) -> list[str]:
    """Order so many machines into an empty group and wait until all run; their instance ids."""
    ca.increase(group, count)
    return running(ca, group, count)


def hold_slots(stage: Stage, ca: Autoscaler, group: str, count: int, in_flight: int = 2) -> None:
    """Ask for machines while orders are held, and wait until so many orders are under way and the rest waits."""
    ca.increase(group, count)
    until(f"{in_flight} orders of {group} are under way", lambda: _in_flight(stage, group) == in_flight)


def _in_flight(stage: Stage, group: str) -> int:
    return stage.provider.instances("submitting", group)


@contextmanager
def thousand(ca: Autoscaler, group: str) -> Iterator[None]:
    """A thousand instances, all those that can be released again afterwards."""
    ca.increase(group, 1000 - ca.target(group))
    try:
        yield
    finally:
        ca.decrease(group, -1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blackout:
    """The cloud is gone; `before` is what was answered until then.

    Two machines run in `gpu-for-…` and one in `spot-for-…`, a creation has failed in `sold-out-for-…`.
    """

    stage: Stage
    before: Mapping[str, tuple[int, Mapping[str, int]]]
    templates: Mapping[str, bytes]

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until the provider has noticed."""
        groups = {**shared_groups(), **groups_for_each("gpu", "spot", "sold-out", "small", "base")}
        with make_stage(groups) as stage, everyone(clients, stage.address) as autoscalers:
            for letter, ca in autoscalers.items():
                for kind, count in {"gpu": 2, "spot": 1, "sold-out": 1}.items():
                    ca.increase(name_for(kind, letter), count)
            for letter, ca in autoscalers.items():
                running(ca, name_for("gpu", letter), 2)
                running(ca, name_for("spot", letter), 1)
                failed(ca, name_for("sold-out", letter))
            watcher = autoscalers["E"]
            names = list(watcher.groups())
            before = {name: watcher.sizes(name) for name in names}
            templates = {name: template_bytes(watcher, name) for name in names}
            stage.cloud.stop()
            until("the outage is noticed", lambda: stage.provider.metrics("verda_ca_cloud_reachable") == 0)
            yield cls(stage=stage, before=before, templates=templates)


def template_bytes(ca: Autoscaler, group: str) -> bytes:
    """A template's answer as it is on the wire."""
    return ca.raw("NodeGroupTemplateNodeInfo", ca.request("NodeGroupTemplateNodeInfo", id=group).SerializeToString())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging:
    """One machine runs in each `gpu-for-…` and `base-for-…`; every call to the cloud hangs for a minute, or fails."""

    stage: Stage

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until everything runs; the cloud still works."""
        groups = {**shared_groups(), **groups_for_each("gpu", "base", "small", "spot", "crowd")}
        with make_stage(groups) as stage:
            with everyone(clients, stage.address) as autoscalers:
                ready = [(ca, name_for(kind, letter)) for letter, ca in autoscalers.items() for kind in ("gpu", "base")]
                for ca, group in ready:
                    ca.increase(group, 1)
                for ca, group in ready:
                    running(ca, group, 1)
            yield cls(stage=stage)

    def trouble(self, kind: str) -> None:
        """From now on the cloud hangs (`hang`) or answers 500 to everything (`error`)."""
        self.stage.cloud.clear()
        action = BROKEN if kind == "error" else {"kind": "hang", "seconds": 60}
        self.stage.cloud.fault("accept", action, path="/v1/.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """Provider ids have another form than the usual one; each generation has an empty group `gpu-for-…`."""

    stage: Stage

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, template: str) -> Iterator[Self]:
        """Just started."""
        with make_stage(groups_for_each("gpu"), provider_id_template=template) as stage:
            yield cls(stage=stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedOff:
    """The only machines of `stopping-for-…` and `gpu-for-…` are off; the first group's policy is to give those back."""

    stage: Stage
    kept: Mapping[str, str]

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until all are off."""
        with make_stage(groups_for_each("stopping", "gpu")) as stage, everyone(clients, stage.address) as autoscalers:
            groups = [
                (ca, name_for(kind, letter)) for letter, ca in autoscalers.items() for kind in ("stopping", "gpu")
            ]
            for ca, group in groups:
                ca.increase(group, 1)
            machines = {group: running(ca, group, 1)[0] for ca, group in groups}
            for instance_id in machines.values():
                stage.cloud.act(stage.cloud.machine(instance_id), "offline")
            yield cls(stage=stage, kept={letter: machines[name_for("gpu", letter)] for letter in autoscalers})


@dataclass(frozen=True, slots=True, kw_only=True)
class Penniless:
    """An account without money; one wish each in `gpu-for-…` and `small-for-…`, made after it became known."""

    stage: Stage

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until everybody has asked."""
        groups = [name_for(kind, letter) for kind in ("gpu", "small") for letter in GENERATIONS]
        with make_stage(groups_for_each("gpu", "small")) as stage, everyone(clients, stage.address) as autoscalers:
            say = {
                "kind": "say",
                "status": 402,
                "json_body": {"code": "insufficient_funds", "message": "Insufficient balance"},
            }
            stage.cloud.fault("before_commit", say, method="POST", path="/v1/instances")
            ca = autoscalers["E"]
            for group in groups:
                ca.increase(group, 1)
                failed(ca, group)
            yield cls(stage=stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Ids of one generation's instances before the kill, and how often the cloud refused to delete `stubborn`."""

    wishes: list[str]
    pair: list[str]
    stubborn: str
    first: str
    refusals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Revived:
    """Killed right after the last of these answers, which each generation got, and started again.

    * the first of two machines of `spot-for-…` deleted;
    * two more machines wanted in `gpu-for-…`, which had one;
    * two of three wishes of `small-for-…` released.

    Before that the only machine of `base-for-…` was deleted, which the cloud refused until the provider lived again.
    """

    stage: Stage
    kept: Mapping[str, Kept]
    templates: Mapping[str, bytes]
    label: str

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until the provider lives again."""
        plugs = {"plug": KINDS["gpu"], "plug-b": KINDS["gpu"]}
        groups = {**plugs, **groups_for_each("gpu", "spot", "small", "base", "sold-out", "zoned", "tuned")}
        with make_stage(groups) as stage, everyone(clients, stage.address) as autoscalers:
            label = autoscalers["E"].call("GPULabel").label
            templates = {name: template_bytes(autoscalers["E"], name) for name in autoscalers["E"].groups()}
            for letter, ca in autoscalers.items():
                for kind, count in {"spot": 2, "base": 1, "gpu": 1}.items():
                    ca.increase(name_for(kind, letter), count)
            pairs = {letter: running(ca, name_for("spot", letter), 2) for letter, ca in autoscalers.items()}
            bases = {letter: running(ca, name_for("base", letter), 1)[0] for letter, ca in autoscalers.items()}
            firsts = {letter: running(ca, name_for("gpu", letter), 1)[0] for letter, ca in autoscalers.items()}
            refusals = {letter: _refused(stage, ca, name_for("base", letter)) for letter, ca in autoscalers.items()}
            kept: dict[str, Kept] = {}
            with stage.cloud.orders_held(4):
                for plug in plugs:
                    hold_slots(stage, autoscalers["E"], plug, 2)
                for letter, ca in autoscalers.items():
                    ca.increase(name_for("small", letter), 3)
                    until("three wishes are listed", partial(_are_listed, ca, name_for("small", letter), 3))
                    kept[letter] = Kept(
                        wishes=ca.live(name_for("small", letter)),
                        pair=pairs[letter],
                        stubborn=bases[letter],
                        first=firsts[letter],
                        refusals=refusals[letter],
                    )
                for letter, ca in autoscalers.items():
                    ca.delete(name_for("spot", letter), [ca.fake(kept[letter].pair[0])])
                    ca.increase(name_for("gpu", letter), 2)
                    ca.decrease(name_for("small", letter), -2)
                stage.provider.kill()
            restart(stage, autoscalers)
            stage.cloud.clear()
            yield cls(stage=stage, kept=kept, templates=templates, label=label)


def _are_listed(ca: Autoscaler, group: str, count: int) -> bool:
    return len(ca.live(group)) == count


def _refused(stage: Stage, ca: Autoscaler, group: str) -> int:
    """Delete the only machine of a group while the cloud refuses that; how often it has."""
    (instance_id,) = ca.live(group)
    fault = stage.cloud.refuse_deletion(stage.cloud.machine(instance_id))
    ca.delete(group, [ca.real(instance_id)])
    return until(f"the deletion of {instance_id} was refused", lambda: stage.cloud.fired(fault))


def restart(stage: Stage, autoscalers: Mapping[str, Autoscaler]) -> None:
    """Kill, start again, and wait until every channel has found the new process."""
    stage.provider.kill()
    stage.provider.start()
    for ca in autoscalers.values():
        ca.await_provider()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """`gpu-for-…` with two machines each and the empty `small` left the configuration, then a restart."""

    stage: Stage
    machines: Mapping[str, list[str]]

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, clients: Clients) -> Iterator[Self]:
        """Until the provider runs with the smaller configuration."""
        groups = {**groups_for_each("gpu"), "small": KINDS["small"], "base": KINDS["base"]}
        with make_stage(groups) as stage, everyone(clients, stage.address) as autoscalers:
            for letter, ca in autoscalers.items():
                ca.increase(name_for("gpu", letter), 2)
            machines = {letter: running(ca, name_for("gpu", letter), 2) for letter, ca in autoscalers.items()}
            stage.provider.settings["node_groups"] = {"base": KINDS["base"]}
            restart(stage, autoscalers)
            yield cls(stage=stage, machines=machines)
