"""Time and money: how long the provider could have acted, and what was paid for machines that nobody wanted."""

from collections.abc import Iterable

from app.domain.books import Books
from app.simulator.records import InstanceRecord
from tests.simulation.stage import Stage


def is_deletable(stage: Stage, item: InstanceRecord) -> bool:
    """The cloud shows the machine and would take its deletion now."""
    return not item.hidden and item.status in stage.world.config.behaviour.allow_delete_in


def is_wanted(books: Books, item: InstanceRecord) -> bool:
    """A live instance stands on the machine, or waits for one of that name."""
    instance = books.instances.get(item.hostname)
    if instance is None or not instance.state.is_live:
        return False
    return instance.instance_id in {None, item.id}


def unwanted(stage: Stage) -> Iterable[InstanceRecord]:
    """Our machines that cost money, that nobody wants, and that could be deleted now."""
    return [item for item in stage.machines if is_deletable(stage, item) and not is_wanted(stage.books, item)]


class Accounts:
    """Counts seconds while time passes."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.alive_s = 0.0
        self.fair_s = 0.0
        self.wasted_s: dict[str, float] = {}

    def advance(self, seconds: float) -> None:
        """So much time has passed with the provider alive: it counts if the disk worked, fairly if the cloud did."""
        stage = self._stage
        if not stage.disk.is_well:
            return
        self.alive_s += seconds
        if stage.cloud.down or stage.cloud.is_blind:
            return
        self.fair_s += seconds
        for item in unwanted(stage):
            self.wasted_s[item.id] = self.wasted_s.get(item.id, 0.0) + seconds
