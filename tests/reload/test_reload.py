"""A configuration that changes while the service runs."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.clock import FakeClock, SeededIds
from app.config.load import LoadedConfig, load_given
from app.config.model import Config
from app.config.specs import to_specs
from app.domain.envelope import Cause
from app.domain.nodegroup.commands import ApplyConfiguration
from app.errors import StoreUnavailable
from app.ledger.ledger import Ledger, open_ledger
from app.reload import Origin, Reload

GROUP = """\
node_groups:
  gpu:
    instance_type: 1A100.22V
    image: ubuntu-24.04
    max_size: 3
    location: FIN-01
"""
LARGER = GROUP.replace("max_size: 3", "max_size: 5")
BROKEN = GROUP.replace("max_size: 3", "max_size: 2\n    min_size: 3")
CAUSE = Cause(actor="test", correlation_id="test")


@dataclass(kw_only=True)
class House:
    """A service whose configuration lies in `path`. `followed` has what it was asked to follow.

    With `groups_wait` other groups cannot be served before the next start.
    """

    path: Path
    ledger: Ledger
    followed: list[LoadedConfig] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    groups_wait: bool = False
    nodes: tuple[str, ...] = ()
    is_full: bool = False

    def __post_init__(self) -> None:
        """Start with what is in the file."""
        origin = Origin.before_reading(self.path, lambda: load_given(self.path, self.nodes, environ=self.environ))
        running = origin.load()
        self.apply(running, CAUSE)
        self.reload = Reload(
            origin,
            running,
            self.ledger,
            apply=self.apply,
            follow=self.followed.append,
            token=SeededIds(1).token,
            servable=self.servable,
        )

    def apply(self, loaded: LoadedConfig, cause: Cause) -> None:
        """As the service does it; with a full disk nothing can be written."""
        if self.is_full:
            raise StoreUnavailable("the disk is full")
        config = loaded.config
        self.ledger.execute(
            ApplyConfiguration(
                specs=to_specs(config),
                sha256=loaded.sha256,
                cluster_name=config.cluster_name or "prod",
                max_hourly_cost=config.max_hourly_cost,
            ),
            cause,
        )

    def servable(self, config: Config, running: Config) -> Config:
        """Everything, or everything but other groups."""
        return config.model_copy(update={"node_groups": running.node_groups}) if self.groups_wait else config

    def news(self, act: Callable[[], object]) -> list[str]:
        """The types of the events that come of an act."""
        seen: list[str] = []
        before = self.ledger.head.position
        self.ledger.subscribe(lambda items: seen.extend(it.event.type for it in items if it.position > before))
        act()
        return seen

    def reasons(self) -> list[str]:
        """Codes of what `/readyz` remarks."""
        return [reason.code for reason in self.reload.reasons()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A service with one group."""
    path = tmp_path / "config.yaml"
    path.write_text(GROUP)
    ledger = open_ledger(tmp_path / "provider.db", FakeClock(), "test")
    yield House(path=path, ledger=ledger)
    ledger.close()


def test_a_changed_group_takes_effect(house: House) -> None:
    """Without a restart, and with its event."""
    house.path.write_text(LARGER)
    assert house.news(house.reload.run) == ["service.configuration-loaded", "nodegroup.configured"]
    assert house.ledger.books.groups["gpu"].spec.max_size == 5
    assert house.reload.hashes[0] == house.reload.hashes[1] == house.ledger.books.installation.configuration_sha256
    assert len(house.followed) == 1


def test_the_same_content_is_no_event(house: House) -> None:
    """F71: a ConfigMap is swapped whole, with new files, also when nothing in it has changed."""
    house.path.unlink()
    house.path.write_text(GROUP)
    assert house.news(house.reload.run) == []
    assert house.followed == []


def test_a_file_that_is_moved_into_its_place_is_noticed(house: House) -> None:
    """F71: as editors and `mv` do it: another file, whose times may be older."""
    other = house.path.with_name("other.yaml")
    other.write_text(LARGER)
    os.utime(other, (1, 1))
    other.replace(house.path)
    assert house.news(house.reload.run) == ["service.configuration-loaded", "nodegroup.configured"]
    assert house.reload.hashes[0] == house.reload.hashes[1]


def test_a_swapped_directory_is_noticed(house: House) -> None:
    """F71: in a mounted ConfigMap the file is a link to a link, and only the inner one is replaced."""
    root = house.path.parent
    for name, text in {"first": GROUP, "second": LARGER}.items():
        (root / name).mkdir()
        (root / name / "config.yaml").write_text(text)
    (root / "..data").symlink_to("first")
    house.path.unlink()
    house.path.symlink_to("..data/config.yaml")
    assert house.news(house.reload.run) == []
    (root / "..next").symlink_to("second")
    (root / "..next").replace(root / "..data")
    assert house.news(house.reload.run) == ["service.configuration-loaded", "nodegroup.configured"]


def test_a_broken_file_changes_nothing_and_is_told_once(house: House) -> None:
    """F11: minimum above maximum. The one before stays; every problem in the log, the first in the event."""
    house.path.write_text(BROKEN)
    assert house.news(house.reload.run) == ["service.configuration-rejected"]
    assert house.news(house.reload.run) == []
    assert house.ledger.books.groups["gpu"].spec.max_size == 3
    assert house.reasons() == ["configuration-rejected"]
    (reason,) = house.reload.reasons()
    assert "/config.yaml:5: node_groups.gpu.max_size: " in reason.message
    house.path.write_text(GROUP)
    assert house.news(house.reload.run) == []
    assert house.reasons() == []


def test_a_deleted_file_changes_nothing(house: House) -> None:
    """F75: the last good configuration stays, and an alarm says so."""
    house.path.unlink()
    assert house.news(house.reload.run) == ["service.configuration-rejected"]
    assert house.news(house.reload.run) == []
    assert house.ledger.books.groups["gpu"].spec.max_size == 3
    assert house.reload.hashes[1] == "none"
    assert house.reasons() == ["configuration-rejected"]


def test_a_group_that_leaves_the_file_is_retired(house: House) -> None:
    """As after a restart."""
    house.path.write_text("node_groups: {}\n")
    assert house.news(house.reload.run) == ["service.configuration-loaded", "nodegroup.retired"]


def test_what_was_built_into_the_process_waits_for_a_restart(house: House) -> None:
    """It is told, and nothing else of the file waits for it."""
    house.path.write_text(LARGER + "listen: 127.0.0.1:9999\ngpu_label: example.com/gpu\n")
    house.reload.run()
    spec = house.ledger.books.groups["gpu"].spec
    assert (spec.max_size, spec.gpu_label) == (5, "verda.com/gpu")
    (reason,) = house.reload.reasons()
    assert reason.code == "restart-needed"
    assert reason.message.endswith(": listen, gpu_label")
    house.path.write_text(LARGER)
    house.reload.run()
    assert house.reasons() == []


def test_who_asks_gets_the_files_read_again(house: House) -> None:
    """The main file is the same; what it refers to is not."""
    house.path.write_text(GROUP + "    labels: {tier: '${TIER}'}\n")
    house.environ["TIER"] = "a"
    house.reload.run()
    house.environ["TIER"] = "b"
    assert house.news(house.reload.run) == []
    house.reload.ask()
    assert house.news(house.reload.run) == ["nodegroup.configured"]
    assert house.ledger.books.groups["gpu"].spec.labels["tier"] == "b"


def test_a_group_that_cannot_be_served_yet_waits_for_a_restart(house: House) -> None:
    """It is told like a key that was built into the process, and comes into the books when it can be served."""
    house.groups_wait = True
    house.path.write_text(GROUP + GROUP.partition("\n")[2].replace("gpu:", "more:"))
    house.reload.run()
    assert set(house.ledger.books.groups) == {"gpu"}
    assert [set(loaded.config.node_groups) for loaded in house.followed] == [{"gpu"}]
    (reason,) = house.reload.reasons()
    assert reason.code == "restart-needed"
    assert reason.message.endswith(": node_groups.more")
    house.path.write_text(GROUP)
    house.reload.run()
    assert house.reasons() == []


def test_a_file_beside_flags_is_read_when_it_changes_and_not_before(house: House) -> None:
    """What is loaded comes from more than the file then, so its hash is never that of the file."""
    house.path.write_text("defaults: {image: ubuntu-24.04}\n")
    flagged = House(path=house.path, ledger=house.ledger, nodes=("0:3:1A100.22V:FIN-01:gpu",))
    running, latest = flagged.reload.hashes
    assert running == latest == house.ledger.books.installation.configuration_sha256
    flagged.reload.run()
    assert flagged.followed == []
    house.path.write_text("defaults: {image: debian-12}\n")
    assert flagged.news(flagged.reload.run) == ["service.configuration-loaded", "nodegroup.configured"]
    flagged.reload.run()
    assert len(flagged.followed) == 1
    assert flagged.reload.hashes[0] == flagged.reload.hashes[1] != running


def test_a_change_while_the_service_starts_is_noticed(house: House) -> None:
    """Between the first reading and the first run of the job."""

    def read() -> LoadedConfig:
        loaded = load_given(house.path, (), environ={})
        house.path.write_text(LARGER)
        return loaded

    origin = Origin.before_reading(house.path, read)
    reload = Reload(
        origin,
        origin.load(),
        house.ledger,
        apply=house.apply,
        follow=house.followed.append,
        token=SeededIds(1).token,
        servable=house.servable,
    )
    reload.run()
    assert house.ledger.books.groups["gpu"].spec.max_size == 5


def test_what_was_asked_for_is_not_forgotten_while_the_disk_is_full(house: House) -> None:
    """The main file is the same, so nothing else would have the other one read again."""
    house.path.write_text(GROUP + "    labels: {tier: '${TIER}'}\n")
    house.environ["TIER"] = "a"
    house.reload.run()
    house.environ["TIER"] = "b"
    house.reload.ask()
    house.is_full = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            house.reload.run()
    house.is_full = False
    assert house.news(house.reload.run) == ["nodegroup.configured"]
    assert house.news(house.reload.run) == []


def test_a_rejection_ends_when_another_file_is_mended(house: House) -> None:
    """What was wrong is not in the main file, which nobody changes; it is told once, and again when it is different."""
    script = house.path.with_name("join.sh")
    house.path.write_text(GROUP + f"    startup_script_file: {script}\n")
    assert house.news(house.reload.run) == ["service.configuration-rejected"]
    assert house.news(house.reload.run) == []
    script.write_text("#!/bin/sh\n{{ not_a_variable }}\n")
    assert house.news(house.reload.run) == ["service.configuration-rejected"]
    assert house.news(house.reload.run) == []
    script.write_text("#!/bin/sh\n")
    assert house.news(house.reload.run) == ["service.configuration-loaded", "nodegroup.configured"]
    assert house.reasons() == []
    assert house.news(house.reload.run) == []
