"""What the commands say of the story of tests/audit/scenario.py, worked out by hand there."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from app.cli.main import cli
from app.domain.ids import Mark
from app.domain.instance.commands import AttemptCreate, RecordCreated
from app.domain.instance.events import Found
from app.domain.machine import Machine
from app.domain.nodegroup.commands import ApplyConfiguration, PauseNodeGroup
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract
from app.errors import StoreCorrupt, StoreError, StoreUnavailable
from tests.audit.scenario import A, B, C, D, E, F
from tests.store.harness import CA, altered, group, one_more, opened, start

from .prompt import answer, run, typed

LOOKED_FOR = "it may have been bought, so it is looked for, not ordered again"


def test_status_tells_how_the_cloud_is_and_how_large_the_groups_are(story: Path) -> None:
    """The first thing to type at three in the morning."""
    told = typed("status", "--database", story)
    assert "cluster prod, installation inst1, epoch 1\n" in told
    assert "served by no process that can be seen from here: what follows is as the last event left it\n" in told
    assert re.search(r"^cloud simulator reachable since 2026-01-05 13:20:00 \(\d+ d .*ago\)$", told, re.MULTILINE)
    assert re.search(r"^gpu +0 .* 1H100\.80S\.30V ", told, re.MULTILINE)
    assert "worth a look" not in told
    spoken = answer("status", "--database", story)
    assert (spoken["obstacles"], spoken["remarks"]) == ([], [])
    assert [group["node_group"] for group in spoken["node_groups"]] == ["gpu", "batch"]


def test_status_tells_what_readyz_would(tmp_path: Path) -> None:
    """Which group is paused or retired, and that nobody can know anything before the first listing."""
    path = tmp_path / "provider.db"
    with opened(path) as ledger:
        ledger.execute(ApplyConfiguration(specs=(group(),), sha256="c0ffee", cluster_name="prod"), CA)
    told = typed("status", "--database", path, code=1)
    assert "NOT READY, cloud-never-reached: the cloud was never reached: no listing has come back yet" in told
    with opened(path) as ledger:
        start(ledger, group(), group("old"))
        ledger.execute(one_more("old-aaaaaaaa", "old"), CA)
        ledger.execute(AttemptCreate(instance="old-aaaaaaaa"), CA)
        ledger.execute(ApplyConfiguration(specs=(group(),), sha256="beef", cluster_name="prod"), CA)
        ledger.execute(PauseNodeGroup(node_group="gpu", operator="anna", reason="new driver"), CA)
    told = typed("status", "--database", path)
    assert "worth a look, paused: node group gpu is paused by anna: new driver\n" in told
    assert re.search(r"^gpu .* paused: new driver ", told, re.MULTILINE)
    rows = {row["node_group"]: row for row in answer("groups", "--database", path)}
    assert [rows["old"][key] for key in ("retired", "target_size", "min_size", "max_size")] == [1, 1, 0, 1]
    assert re.search(r"^old .* retired ", told, re.MULTILINE)


@pytest.mark.parametrize(
    ("width", "columns", "more"),
    [
        (40, "instance state", "contract, cost, currency, instance type, hours, location, instance id, reason"),
        (80, "instance state contract cost currency", "instance type, hours, location, instance id, reason"),
        (200, "instance state contract cost currency instance type hours location instance id reason", None),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_and_whole_names(
    width: int, columns: str, more: str | None, story: Path
) -> None:
    """A name that is cut can neither be read nor copied into the next command."""
    terminal = {"COLUMNS": str(width), "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    words = ["instances", "--all", "--database", str(story)]
    told = re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(cli, words, env=terminal).output)
    assert [name for name in (A, B, C, D, E, F) if name not in told] == []
    head = next(line for line in told.splitlines() if line.strip().startswith("instance"))
    assert " ".join(head.split()) == columns
    table, _, rest = told.partition("wider terminals show more: ")
    assert max(map(len, table.splitlines())) <= width
    assert " ".join(rest.split()) == (more or "")


def test_what_happened_is_told_on_any_terminal(story: Path) -> None:
    """Who did it goes first when there is no room."""
    terminal = {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    words = ["events", "--limit", "1", "--database", str(story)]
    told = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(cli, words, env=terminal).output).split())
    assert "80 2026-01-06T02:00:00.000000Z gpu-bbbbbbbb is gone, cost 43.200000 usd" in told
    assert "wider terminals show more: actor" in told


def test_answers_for_programs_are_json_or_yaml_with_the_same_content(story: Path) -> None:
    """Whatever the program reads."""
    as_yaml = yaml.safe_load(typed("groups", "--database", story, "-o", "yaml"))
    assert as_yaml == answer("groups", "--database", story)
    assert as_yaml[1]["max_size"] == 5


def test_instances_that_have_ended_are_shown_on_demand(story: Path) -> None:
    """All six have, and four of them cost something."""
    assert answer("instances", "--database", story) == []
    everything = answer("instances", "--all", "--database", story)
    assert [(row["instance"], row["cost"], row["reason"]) for row in everything] == [
        (A, "1.200000", "evicted"),
        (B, "43.200000", "scale-down"),
        (C, "3.005000", "scale-down"),
        (D, "0.400000", "scale-down"),
        (E, None, "deleted"),
        (F, None, "target-decreased"),
    ]
    assert [row["instance"] for row in answer("instances", "-a", "-g", "batch", "--database", story)] == [D]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--limit", "2"], ["01:59 instance.delete-attempted", "02:00 instance.gone"]),
        (["--type", "nodegroup.paused"], ["16:00 nodegroup.paused"]),
        (
            ["--type", "cloud.", "--since", "2026-01-05T12:00", "--until", "2026-01-05T13:20"],
            ["12:00 cloud.catalogue-changed", "12:00 cloud.price-changed", "13:00 cloud.unreachable"],
        ),
        (["--actor", "operator"], ["16:00 nodegroup.paused", "17:00 nodegroup.resumed"]),
        (["--correlation-id", "rpc-11:05"], ["11:05 nodegroup.scale-up-requested", "11:05 instance.requested"]),
        (["--instance", D, "--limit", "2"], ["11:13 instance.delete-attempted", "11:15 instance.gone"]),
        (
            ["--node-group", "batch", "--until", "2026-01-05T11:05:00+00:00"],
            ["00:00 nodegroup.configured", "11:00 nodegroup.scale-up-rejected"],
        ),
        (
            ["--node-group", "batch", "--until", "2026-01-05T12:05:00+01:00"],
            ["00:00 nodegroup.configured", "11:00 nodegroup.scale-up-rejected"],
        ),
        (["--instance", "i-d", "--limit", "1"], ["11:15 instance.gone"]),
        (["--type", "nodegroup.retired"], []),
    ],
)
def test_events_can_be_asked_for_in_many_ways(filters: list[str], found: list[str], story: Path) -> None:
    """The newest that fit, oldest first."""
    told = answer("events", *filters, "--database", story)
    assert [f"{row['recorded_at'][11:16]} {row['type']}" for row in told] == found


def test_history_is_one_machines_life_with_the_time_between(story: Path) -> None:
    """By whatever name it is known."""
    told = typed("history", "i-d", "--database", story)
    assert told == typed("history", f"verda://{D}", "--database", story) == typed("history", D, "--database", story)
    assert re.search(r"11:10:00\S+ +\+300\.0s +reconcile/observe +\S+ is provisioning: the cloud says error", told)


def test_an_instance_is_explained_on_one_page(story: Path) -> None:
    """Who asked, what was tried and answered, why it ended and by whose call (F77), what it cost."""
    assert typed("explain", C, "--database", story).splitlines() == [
        "gpu-cccccccc of node group gpu is gone.",
        "",
        "Who asked?",
        "  2026-01-05 10:00:00  cluster-autoscaler, 1 more in one call, target size 2 (correlation id rpc-10:00).",
        "",
        "What was tried, and what was answered?",
        "  2026-01-05 10:01:00  order 1: 1H100.80S.30V spot in FIN-01, 0.60 usd/h, image ubuntu-24.04.",
        f"  2026-01-05 10:01:00  no clear answer (read timed out): {LOOKED_FOR}.",
        "  2026-01-05 10:02:00  the machine i-c was found by its name: the order had gone through.",
        "  2026-01-05 10:03:00  a machine too many, i-x, carries its name (duplicate): it is deleted.",
        "  2026-01-05 10:05:00  the cloud says running.",
        "  2026-01-05 10:13:00  i-x, the machine too many, is gone.",
        "  2026-01-05 12:00:00  price 0.90.",
        "  2026-01-05 14:00:00  delete call 1 for i-c, OS volume included.",
        "",
        "Where does it stand?",
        "  2026-01-05 14:00:00  given back by cluster-autoscaler, as a scale-down.",
        "  2026-01-05 14:01:00  it ended: its machine was deleted and is proven gone.",
        "",
        "What did it cost?",
        "  3.005000 usd: 4 h at 0.90 an hour since 2026-01-05 12:00:00, another price before.",
        "  Of it 0.040000 usd for 4 min before it was seen running.",
        "  On top 0.100000 usd for i-x, the machine too many: 10 min at 0.60 an hour.",
    ]


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        (A, ["Verda took the spot machine back, as spot machines may be at any time", "1.200000 usd: 2 h at 0.60"]),
        (B, ["order 1: 1H100.80S.30V spot in FIN-01", "refused, out-of-stock", "order 3: 1H100.80S.30V on-demand"]),
        (B, ["43.200000 usd: 18 h at 2.40 an hour.", "2 more in one call, target size 2 (correlation id rpc-08:00)"]),
        (D, ["given up and told to the autoscaler, machine-error", "it was never seen running"]),
        (E, ["given up and told to the autoscaler, out-of-stock", "Nothing: no machine was ever created for it."]),
        (F, ["Nothing yet: no order was placed.", "decreased before a machine was ordered; nothing was bought"]),
    ],
)
def test_every_fate_is_told_in_plain_words(name: str, sentences: list[str], story: Path) -> None:
    """Eviction, fallback, failed boot, stock-out, a wish that was taken back."""
    told = typed("explain", name, "--database", story)
    assert [sentence for sentence in sentences if sentence not in told] == []


def test_orders_that_were_never_placed_are_explained_as_free(tmp_path: Path) -> None:
    """The record that the first one left behind, and the one at the last place that the wish failed with."""
    path = tmp_path / "provider.db"
    first = Machine(
        instance_id="i-1",
        hostname="gpu-aaaaaaaa",
        status="no_capacity",
        description=Mark(cluster="prod", installation="inst1", group="gpu").text(),
        instance_type="1H100.80S.30V",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=Decimal("0.60"),
        created_at=datetime(2026, 1, 5, tzinfo=UTC),
    )
    last = replace(first, instance_id="i-2", location="FIN-03")
    with opened(path) as ledger:
        start(ledger, group(contracts=(Contract.SPOT,)))
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        for number, machines in enumerate(((first,), (first, last)), 1):
            ledger.execute(AttemptCreate(instance="gpu-aaaaaaaa"), CA)
            made = RecordCreated(instance="gpu-aaaaaaaa", instance_id=f"i-{number}", found=Found.ANSWERED)
            ledger.execute(made, CA)
            ledger.execute(ObserveMachines(machines=machines, backend="simulator", claim=False), CA)
    told = typed("explain", "gpu-aaaaaaaa", "--database", path)
    assert "a machine too many, i-1, carries its name (never placed): it is deleted." in told
    assert told.partition("What did it cost?\n")[2] == "  Nothing: no machine was ever created for it.\n"


def test_a_group_is_explained_with_what_became_of_the_last_wishes(story: Path) -> None:
    """Also those that were refused, by whose word."""
    told = typed("explain", "gpu", "--database", story)
    assert "Node group gpu: 0 to 4 x 1H100.80S.30V, spot or on-demand, in FIN-01 or FIN-03." in told
    assert "Yes, by up to 4" in told
    assert "cluster-autoscaler: 1 more, refused: node group gpu is paused since 2026-01-05 16:00 UTC by anna" in told
    assert "2026-01-05 16:00:00  operator: paused by anna: new GPU driver." in told
    assert "2026-01-05 17:00:00  operator: resumed by anna: the driver is out." in told
    assert f"{A}: lost, evicted" in told
    assert f"{E}: out-of-stock" in told
    assert B not in told  # it was refused at first and then had its machine
    batch = typed("explain", "batch", "--database", story)
    assert "3 more, refused: node group batch: 0 an hour now, 3 more at 2.40 make 7.20" in batch


@pytest.mark.parametrize(
    ("by", "costs"),
    [
        ("group", [("gpu", 3, "47.405000"), ("batch", 1, "0.400000")]),
        ("day", [("2026-01-05", 4, "43.005000"), ("2026-01-06", 1, "4.800000")]),
        ("contract", [("spot", 2, "4.205000"), ("on-demand", 2, "43.600000")]),
        ("instance", [(A, 1, "1.200000"), (B, 1, "43.200000"), (C, 1, "3.005000"), (D, 1, "0.400000")]),
    ],
)
def test_costs_add_up_whatever_they_are_added_up_by(by: str, costs: list[tuple[str, int, str]], story: Path) -> None:
    """And what was of no use stands apart: D never booted, and C's double was nobody's."""
    told = answer("costs", "--by", by, "--database", story)
    assert [(*tuple(row.values())[:2], row["cost"]) for row in told["costs"]] == costs
    assert [(row["cost"], row["currency"]) for row in told["total"]] == [("47.805000", "usd")]
    waste = {row["waste"]: (row["instances"], row["cost"]) for row in told["waste"]}
    assert waste == {"failed-boot": (1, "0.400000"), "ghost": (1, "0.100000")}


def test_costs_of_a_time_are_cut_at_its_ends(story: Path) -> None:
    """From nine to half past nine: A 0.30 and B 1.20; the new day: B's two hours."""
    half_an_hour = ("--since", "2026-01-05T09:00", "--until", "2026-01-05T09:30")
    part = answer("costs", *half_an_hour, "--by", "contract", "--database", story)
    assert {row["contract"]: row["cost"] for row in part["costs"]} == {"on-demand": "1.200000", "spot": "0.300000"}
    assert part["waste"] == []
    assert answer("costs", "--since", "2026-01-06", "--database", story)["total"][0]["cost"] == "4.800000"


def test_time_travel_shows_things_as_they_were(story: Path) -> None:
    """At nine two machines ran; when they had just been wanted, nothing was ordered yet."""
    then = answer("state", "--at", "2026-01-05T09:00", "--database", story)
    assert [(row["instance"], row["state"], row["cost"]) for row in then["instances"]] == [
        (A, "running", "0.600000"),
        (B, "running", "2.400000"),
    ]
    wished = answer("events", "--type", "instance.requested", "--instance", B, "--database", story)
    early = answer("state", "--position", str(wished[0]["position"]), "--database", story)
    assert early["position"] == wished[0]["position"]
    assert [(row["instance"], row["state"]) for row in early["instances"]] == [(A, "requested"), (B, "requested")]
    assert answer("state", "--at", "2025-12-31", "--database", story)["node_groups"] == []


def test_a_position_of_the_log_has_the_costs_of_its_time(story: Path) -> None:
    """Not those of today: at noon B had cost 2.40 an hour since eight, and C 0.60 since one past ten."""
    seen = answer("events", "--type", "instance.state-observed", "--instance", C, "--database", story)
    (noon,) = (row["position"] for row in seen if "price 0.90" in row["what"])
    then = answer("state", "--position", str(noon), "--database", story)
    assert {row["instance"]: row["cost"] for row in then["instances"]} == {B: "9.600000", C: "1.190000"}


def test_a_time_to_come_has_cost_nothing_yet(tmp_path: Path) -> None:
    """What is known ends now, and so do the costs."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)
        ledger.execute(one_more(A), CA)
        ledger.execute(AttemptCreate(instance=A), CA)
        ledger.execute(RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED), CA)
    (to_come,) = answer("state", "--at", "2999-01-01", "--database", database)["instances"]
    (now,) = answer("state", "--database", database)["instances"]
    assert 0 < Decimal(to_come["cost"]) <= Decimal(now["cost"])


def test_the_log_can_be_taken_out_whole(story: Path, tmp_path: Path) -> None:
    """A JSON object a line with everything a row has, or CSV; never over a file that is there."""
    lines = typed("export", "--database", story).splitlines()
    assert len(lines) == answer("status", "--database", story)["position"]
    first = json.loads(lines[0])
    assert (first["position"], first["type"], first["data"]) == (
        1,
        "service.installation-created",
        {"installation_id": "inst1"},
    )
    assert len(first["hash"]) == 64
    target = tmp_path / "costs.csv"
    typed("export", "costs-daily", "--format", "csv", "--to", target, "--database", story)
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [row["cost"] for row in rows] == ["0.400000", "38.400000", "4.205000", "4.800000"]
    refused = run("export", "--to", target, "--database", story)
    assert refused.exit_code == 2
    assert "exists: name a new file" in refused.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["history", "gpu-zzzzzzzz"], "there is no instance 'gpu-zzzzzzzz': `instances --all` lists them"),
        (["explain", "nothing"], "there is no instance and no node group 'nothing'"),
        (["state", "--at", "yesterday"], "'yesterday' is no time such as"),
        (["costs", "--by", "moon"], "moon"),
        (["events", "--limit", "0"], "--limit"),
        (["events", "--instance", "nobody"], "there is no instance 'nobody'"),
        (
            ["events", "--type", "instance.craeted"],
            "no type of event begins with 'instance.craeted': there are instance.",
        ),
        (["events", "--type", "moon"], "there are cloud., cluster., instance., "),
        (["instances", "-g", "gup"], "there is no node group 'gup': known are batch, gpu"),
        (["costs", "-g", "gup"], "there is no node group 'gup': known are batch, gpu"),
        (["events", "-g", "gup"], "there is no node group 'gup': known are batch, gpu"),
        (["costs", "--since", "2026-02-01", "--until", "2026-01-01"], "is not after --since 2026-02-01T00:00:00+00:00"),
        (
            ["events", "--since", "2026-02-01", "--until", "2026-02-01"],
            "is not after --since 2026-02-01T00:00:00+00:00",
        ),
        (["state", "--at", "2026-01-05", "--position", "3"], "give a time or a position, not both"),
        (["state", "--position", "81"], "the log ends at position 80"),
    ],
)
def test_wrong_questions_are_told_with_the_remedy(arguments: list[str], words: str, story: Path) -> None:
    """Exit code 2, and the words that help. A slip must not look like an empty answer."""
    result = run(*arguments, "--database", story)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["status", "groups", "instances", "events", "costs", "state", "export"])
def test_a_database_that_is_not_there_is_not_made(command: str, tmp_path: Path) -> None:
    """A mistyped path is a mistake and not an empty answer."""
    result = run(command, "--database", tmp_path / "mistyped.db")
    assert isinstance(result.exception, StoreUnavailable)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"", StoreUnavailable, "{path} is no database of this program: there is no log in it"),
        (b"nonsense" * 1000, StoreCorrupt, "{path}: the database is damaged: file is not a database"),
        (None, StoreUnavailable, "{path} is a directory: name the database in it"),
    ],
    ids=["empty", "nonsense", "directory"],
)
def test_a_file_that_is_no_database_is_named(
    content: bytes | None, kind: type[StoreError], words: str, tmp_path: Path
) -> None:
    """Exit code 3; and nothing is written into what is somebody else's."""
    path = tmp_path / "other.db"
    path.mkdir() if content is None else path.write_bytes(content)
    for command in ("status", "events", "costs"):
        result = run(command, "--database", path)
        assert isinstance(result.exception, kind)
        assert result.exception.message == words.format(path=path)
    assert content is None or path.read_bytes() == content


def test_a_database_of_another_version_is_told_with_the_way_out(story: Path, tmp_path: Path) -> None:
    """Its views may not be there, or say something else."""
    other = Path(shutil.copy(story, tmp_path / "other.db"))
    altered(other, "UPDATE alembic_version SET version_num = '0001'")
    for command in ("status", "costs", "state"):
        result = run(command, "--database", other)
        assert isinstance(result.exception, StoreUnavailable)
        assert "has schema revision 0001, this version reads" in result.exception.message
        assert "start this version's server on it once" in result.exception.message


def test_looking_changes_nothing(story: Path, tmp_path: Path) -> None:
    """The bytes of the file are the same after every command, whoever may write it."""
    copy = Path(shutil.copy(story, tmp_path / "copy.db"))
    before = copy.read_bytes()
    for command in ("status", "groups", "instances", "events", "costs", "state", "export"):
        typed(command, "--database", copy)
    typed("explain", "gpu", "--database", copy)
    assert copy.read_bytes() == before


@pytest.mark.parametrize("words", [["events"], ["export"], ["status", "-o", "json"]], ids=" ".join)
def test_an_answer_that_cannot_be_written_is_one_sentence(words: list[str], story: Path) -> None:
    """The disk of a redirected answer is full: exit code 3, and nothing of Python."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "app.cli.main", *words, "--database", str(story)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=100,
        )
    assert (done.returncode, done.stderr) == (3, "error: the answer cannot be written: No space left on device\n")
