import json
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from app.cli import maintain
from app.cli.main import cli, exit_code
from app.errors import ProviderError
from tests.store.harness import CA, altered, one_more, opened, rows, start


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Six events, closed."""
    path = tmp_path / "provider.db"
    with opened(path) as ledger:
        start(ledger)
    return path


def run(*arguments: object) -> Result:
    """A command as it is typed."""
    cli = typer.Typer()
    maintain.register(cli)
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def refusal(*arguments: object) -> tuple[int, str]:
    """Exit code and words of a command that is refused."""
    error = run(*arguments).exception
    assert isinstance(error, ProviderError)
    return exit_code(error), error.message


def test_verify_says_sound_with_the_head(database: Path) -> None:
    """What an auditor writes down: it vouches for everything before it."""
    ((head,),) = rows(database, "SELECT hash FROM events WHERE position = 6")
    done = run("verify", "--database", database)
    assert (done.exit_code, done.stdout) == (
        0,
        f"sound: 6 events, no gap, projections equal the log; head {head}\n",
    )
    told = json.loads(run("verify", "--database", database, "-o", "json").stdout)
    assert told == {"sound": True, "findings": [], "position": 6, "head_hash": head}


def test_verify_works_while_a_server_writes(database: Path) -> None:
    """It sees one moment."""
    with opened(database) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        assert run("verify", "--database", database).stdout.startswith("sound: 8 events")


def test_verify_finds_tampering_and_says_no(database: Path) -> None:
    """Exit code 1: the answer is no. With every finding in a sentence."""
    altered(database, "UPDATE events SET actor = 'nobody' WHERE position = 3")
    done = run("verify", "--database", database)
    assert done.exit_code == 1
    assert "position 3 was changed after it was written, or its predecessor was" in done.stdout


@pytest.mark.parametrize("harm", ["garbage", "a byte of a backup"])
def test_verify_says_no_to_what_cannot_even_be_read(database: Path, harm: str) -> None:
    """No traceback, no other exit code."""
    run("backup", "--database", database)
    (copy,) = (database.parent / "backups").glob("*.db")
    content = bytearray(copy.read_bytes())
    content[100] ^= 1
    copy.write_bytes(b"garbage" * 1000 if harm == "garbage" else bytes(content))
    done = run("verify", "--database", copy)
    assert (done.exit_code, done.exception is None or isinstance(done.exception, SystemExit)) == (1, True)
    assert "is not the file that was backed up" in done.stdout


def test_rebuild_mends_projections_and_keeps_out_while_a_server_writes(database: Path) -> None:
    """The log is the truth; exit code 4 while it is held."""
    altered(database, "DELETE FROM node_groups")
    assert run("verify", "--database", database).exit_code == 1
    assert run("rebuild", "--database", database).stdout == "the projections stand for position 6\n"
    assert run("verify", "--database", database).exit_code == 0
    drawn = CliRunner().invoke(cli, ["rebuild", "--database", str(database)], env={"FORCE_COLOR": "1", "TERM": "xterm"})
    assert "folding events" in drawn.stderr
    assert drawn.stdout == "the projections stand for position 6\n"
    with opened(database, holder="pod provider-0"):
        code, words = refusal("rebuild", "--database", database)
    assert code == 4
    assert "in use by pod provider-0" in words


def test_backup_while_a_server_writes_then_restore(database: Path) -> None:
    """The whole way, as it is typed: refused while held, refused while it loses something, then done and listed."""
    with opened(database, holder="pod provider-0") as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        (made,) = json.loads(run("backup", "--database", database, "-o", "json").stdout)
        assert (made["position"], made["reason"]) == (8, "by-hand")
        ledger.execute(one_more("gpu-bbbbbbbb"), CA)
        code, words = refusal("restore", "newest", "--database", database, "--discard-newer")
        assert (code, "in use by pod provider-0" in words) == (4, True)
    code, words = refusal("restore", "newest", "--database", database)
    assert code == 2
    assert "has 2 events more" in words
    done = run("restore", "newest", "--database", database, "--discard-newer")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{database} is {made['path']} now and ends at position 10\n")
    assert "what it replaced ended at 10 and is kept as" in done.stdout
    assert run("verify", "--database", database).exit_code == 0
    assert rows(database, "SELECT actor FROM events WHERE position = 9") == [("operator",)]
    listed = json.loads(run("backup", "--list", "--database", database, "-o", "json").stdout)
    assert [one["path"] for one in listed] == [made["path"]]


def test_restore_wants_a_file_that_is_there(database: Path, tmp_path: Path) -> None:
    """Exit code 3 for a missing file, 2 where no backup was ever made."""
    code, words = refusal("restore", tmp_path / "x.db", "--database", database)
    assert (code, words) == (3, f"there is no database at {tmp_path / 'x.db'}")
    code, words = refusal("restore", "newest", "--database", database)
    assert (code, words) == (2, f"there is no backup of {database} in {tmp_path / 'backups'}: name the file")


def test_restore_of_a_plain_copy_of_the_file(database: Path, tmp_path: Path) -> None:
    """What people made with `cp` of a stopped server is good too."""
    shutil.copy(database, tmp_path / "taken.db")
    database.unlink()
    assert run("restore", tmp_path / "taken.db", "--database", database).exit_code == 0
    assert run("verify", "--database", database).exit_code == 0


def test_a_backup_of_a_database_that_is_not_sound_is_made_and_told(database: Path) -> None:
    """The copy is all there is, so it is kept; nobody should believe it is good."""
    altered(database, "UPDATE node_groups SET spec = '{}'")
    code, words = refusal("backup", "--database", database)
    assert code == 3
    assert "was made, and the database is not sound" in words


def test_claim_refuses_what_nobody_saw(database: Path) -> None:
    """Exit code 2, with the installations that were seen."""
    code, words = refusal("claim", "inst9", "--database", database)
    assert code == 2
    assert words == "no machine of installation 'inst9' was seen; those seen that use our cluster's name: none"
    assert run("claim", "inst1", "--database", database).stdout == "nothing to do: inst1 is so already\n"


def test_claim_makes_no_database(tmp_path: Path) -> None:
    """A wrong path is told."""
    code, words = refusal("claim", "inst9", "--database", tmp_path / "x.db")
    assert (code, words) == (3, f"there is no database at {tmp_path / 'x.db'}")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def _on_nfs(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system says that the test's directory is on a network volume, after the database was made."""
    read_text = Path.read_text

    def told(path: Path, *arguments: str | None, **more: str | None) -> str:
        if path == Path("/proc/self/mountinfo"):
            return f"31 30 0:50 / {database.parent.resolve()} rw,relatime - nfs4 server:/export rw\n"
        return read_text(path, *arguments, **more)

    monkeypatch.setattr(Path, "read_text", told)


@pytest.mark.usefixtures("_on_nfs")
def test_restore_and_claim_work_where_the_operator_answers_for_the_volume(database: Path, tmp_path: Path) -> None:
    """The server runs there by its configuration, which neither of them reads."""
    copy = tmp_path / "copy.db"
    shutil.copyfile(database, copy)
    answered = ("--database-network-filesystems", "nfs4")
    code, words = refusal("restore", copy, "--database", database)
    assert code == 3
    assert words.endswith("--database-network-filesystems nfs4 on the command line of restore and claim")
    assert run("restore", copy, "--database", database, *answered).exit_code == 0
    assert refusal("claim", "inst1", "--database", database) == (code, words)
    told = run("claim", "inst1", "--database", database, *answered).stdout
    assert told == "nothing to do: inst1 is so already\n"
