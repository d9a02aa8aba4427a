"""Steps of the cloud, of its platform and of the other people in the project."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.domain.ids import Mark
from app.simulator.errors import ApiError
from app.simulator.fault_model import Fault, Match, Phase, Say
from app.simulator.records import InstanceRecord, Status
from tests.simulation.setting import CLUSTER
from tests.simulation.stage import Stage

DATA_VOLUME = "somebodys-data"

Args = tuple[tuple[str, JsonValue], ...]


def _words(args: Args) -> str:
    return "".join(f", {key} {value}" for key, value in args)


@dataclass(frozen=True, slots=True)
class CloudFault:
    """A named fault strikes the next fitting request."""

    preset: str
    args: Args = ()

    def __str__(self) -> str:
        return f"the cloud prepares {self.preset}{_words(self.args)}"

    def act(self, stage: Stage) -> None:
        """Install it."""
        stage.cloud.trouble(self.preset, **dict(self.args))


@dataclass(frozen=True, slots=True)
class LateOrder:
    """The next order times out after half a minute and is executed whenever the cloud comes round to it."""

    seconds: float

    def __str__(self) -> str:
        return f"the next order is not answered, and executed after {self.seconds:g} s"

    def act(self, stage: Stage) -> None:
        """Prepare it."""
        stage.cloud.late_s.append(self.seconds)


@dataclass(frozen=True, slots=True)
class Blind:
    """Listings lack machines for minutes."""

    share: float
    seconds: float

    def __str__(self) -> str:
        return f"for {self.seconds:g} s listings lack {self.share:.0%} of the machines"

    def act(self, stage: Stage) -> None:
        """Install it."""
        stage.cloud.go_blind(self.share, self.seconds)


@dataclass(frozen=True, slots=True)
class EmptyCatalogue:
    """The next catalogue is empty."""

    def __str__(self) -> str:
        return "the next catalogue that is read is empty"

    def act(self, stage: Stage) -> None:
        """Install it."""
        match = Match(method="GET", path="/v1/instance-types")
        stage.cloud.inject(Fault(match=match, phase=Phase.BEFORE_COMMIT, action=Say(status=200, json_body=[])))


@dataclass(frozen=True, slots=True)
class Outage:
    """The cloud refuses connections until `Recovery`."""

    def __str__(self) -> str:
        return "the cloud stops answering"

    def act(self, stage: Stage) -> None:
        """Switch it off."""
        stage.cloud.down = True


@dataclass(frozen=True, slots=True)
class Recovery:
    """The cloud answers again."""

    def __str__(self) -> str:
        return "the cloud answers again"

    def act(self, stage: Stage) -> None:
        """Switch it on."""
        stage.cloud.down = False


def _ours(stage: Stage) -> Sequence[InstanceRecord]:
    return [item for item in stage.machines if not item.hidden]


@dataclass(frozen=True, slots=True)
class Befall:
    """Something happens to one of our machines that nobody asked for."""

    act_name: str
    args: Args = ()

    def __str__(self) -> str:
        return f"one of our machines, if there is one: {self.act_name}{_words(self.args)}"

    def act(self, stage: Stage) -> None:
        """Choose one and let it happen, if it can."""
        stage.world.catch_up()
        fitting = [item for item in _ours(stage) if self._can_happen_to(item)]
        if not fitting:
            return
        victim = stage.chance.random.choice(fitting)
        try:
            stage.cloud.trouble(self.act_name, id=victim.id, **dict(self.args))
        except ApiError:
            return

    def _can_happen_to(self, item: InstanceRecord) -> bool:
        """Only spot machines are evicted, and only what was never placed ends for want of capacity."""
        if self.act_name == "evict":
            return item.is_spot
        return item.status == Status.ORDERED or ("status", "no_capacity") not in self.args


@dataclass(frozen=True, slots=True)
class HumanEdit:
    """Somebody changes the description of a machine that the books know by its id."""

    def __str__(self) -> str:
        return "somebody edits the description of one of our machines"

    def act(self, stage: Stage) -> None:
        """Choose one and edit it."""
        known = {item.instance_id for item in stage.books.listed_instances()}
        fitting = [item for item in _ours(stage) if item.id in known]
        if fitting:
            stage.chance.random.choice(fitting).description = "hands off, Bob"


@dataclass(frozen=True, slots=True)
class HumanVolume:
    """Somebody attaches a volume with data to one of our machines."""

    def __str__(self) -> str:
        return "somebody attaches a volume with data to one of our machines"

    def act(self, stage: Stage) -> None:
        """Choose one that runs, make a volume, attach it."""
        fitting = [item for item in _ours(stage) if item.status == Status.RUNNING]
        if fitting:
            node = stage.chance.random.choice(fitting)
            volumes = stage.world.volumes
            volume = volumes.create(name=DATA_VOLUME, size_gb=10, kind="NVMe", location=node.location)
            volumes.attach(volume, node)


@dataclass(frozen=True, slots=True)
class Stranger:
    """Somebody else's machine appears in the project, and looks like one of ours in some respect."""

    likeness: str

    def __str__(self) -> str:
        return f"a stranger's machine appears: {self.likeness}"

    def act(self, stage: Stage) -> None:
        """Create it."""
        stage.world.catch_up()
        name = f"gpu-{stage.chance.random.randrange(36**8):08x}"[:12]
        mark = Mark(cluster=CLUSTER, installation="other", group="gpu")
        args: dict[str, JsonValue] = {"hostname": name, "location_code": "FIN-03"}
        match self.likeness:
            case "same name as one of ours":
                twins = _ours(stage)
                if twins:
                    args["hostname"] = stage.chance.random.choice(twins).hostname
            case "same name as an order of unknown outcome":
                orders = stage.witness.open_orders()
                if orders:
                    args["hostname"] = stage.chance.random.choice(orders)
            case "same cluster, other installation" if stage.books.cloud.first_reached_at is not None:
                args["description"] = mark.text()
            case "our mark, but no name of ours":
                installation = stage.books.installation.installation_id
                args["description"] = Mark(cluster=CLUSTER, installation=installation, group="gpu").text()
                args["hostname"] = f"copy-of-{name}"
            case "other cluster":
                args["description"] = Mark(cluster=f"{CLUSTER}2", installation="other", group="gpu").text()
        try:
            stage.cloud.trouble("foreign_instance", **args)
        except ApiError:
            return


@dataclass(frozen=True, slots=True)
class Stock:
    """Other customers come or go."""

    location: str
    family: str
    free: int

    def __str__(self) -> str:
        return f"{self.free} units of {self.family} are free in {self.location}"

    def act(self, stage: Stage) -> None:
        """Set it."""
        stage.world.catch_up()
        stage.world.capacity.set_free(self.family, self.location, self.free)


@dataclass(frozen=True, slots=True)
class Project:
    """Something happens to the project as a whole."""

    act_name: str
    args: Args = ()

    def __str__(self) -> str:
        return f"the project: {self.act_name}{_words(self.args)}"

    def act(self, stage: Stage) -> None:
        """Let it happen, if it can. Afterwards deadlines that count from the cloud's times may be wrong by its skew."""
        if self.act_name == "clock_skew":
            seconds = (float(str(value)) for key, value in self.args if key == "seconds")
            stage.cloud_slack_s = max(stage.cloud_slack_s, *(abs(one) for one in seconds))
        try:
            stage.cloud.trouble(self.act_name, **dict(self.args))
        except ApiError:
            return
