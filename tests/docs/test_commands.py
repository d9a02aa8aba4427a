"""Every command that the documentation gives works, and every place that it points to is there."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from app.cli.main import cli, with_default_command
from tests.deploy.test_monitoring import RULES

from .blocks import ROOT, Block, Desk, blocks

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
TAUGHT = ("quickstart", "operations", "failures", "security", "disaster-recovery")
"""Pages whose command blocks are run."""

KINDS = frozenset({"sh", "sh cluster", "sh setup", "bash", "yaml", "sql", "text", "mermaid", "json"})

_START = """\
mkdir -p var
verda-cloud-provider --config config.yaml --with-simulator 127.0.0.1:8090 > provider.log 2>&1 &
echo $! > provider.pid
curl --silent --show-error --fail --retry 60 --retry-delay 1 --retry-all-errors http://127.0.0.1:8087/readyz
"""
"""What the pages after the quick start take for granted: a server of the example's configuration."""

README_COMMANDS = 2
"""Which block of the README is run; the first one is `make run`, which is that server."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A reader's desk; a server that a page left running is ended."""
    made = Desk(tmp_path)
    yield made
    pid_file = tmp_path / "provider.pid"
    if pid_file.exists():
        _end(int(pid_file.read_text()))


def _end(pid: int) -> None:
    end = time.monotonic() + 30
    try:
        os.kill(pid, signal.SIGTERM)
        while time.monotonic() < end:
            os.kill(pid, 0)
            time.sleep(0.05)  # noqa: TID251 - it is nobody's child here, so nothing can be waited for
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def run_all(desk: Desk, texts: list[str]) -> str:
    """Run the texts; what they said."""
    done = desk.run(texts, timeout_s=240)
    log = desk.directory / "provider.log"
    assert done.returncode == 0, done.stdout[-3000:] + (log.read_text()[-2000:] if log.exists() else "")
    return done.stdout


def commands(page: Path) -> list[str]:
    """The blocks of a page that are to be run, those for a cluster with its stand-ins."""
    return [block.text for block in blocks(page) if block.info in {"sh", "sh cluster"}]


@pytest.mark.timeout(300)
def test_the_quick_start_leads_to_a_working_pair(desk: Desk) -> None:
    """Line by line: certificates, server, scripted autoscaler over mutual TLS, stop; then the cluster's part."""
    said = run_all(desk, commands(ROOT / "docs" / "quickstart.md"))
    assert "gpu-workers: target size 2, 0 to 4" in said
    assert said.count("Creating") + said.count("Running") >= 2
    assert "UNAVAILABLE" in said  # without a certificate
    assert (desk.directory / "certs" / "client.crt").exists()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("names", [("operations", "failures", "security"), ("disaster-recovery",)], ids=" ".join)
def test_commands_of_pages_work(desk: Desk, names: tuple[str, ...]) -> None:
    """On the server of the example's configuration, page after page."""
    said = run_all(desk, [_START, *(text for name in names for text in commands(ROOT / "docs" / f"{name}.md"))])
    assert "Traceback" not in said
    assert "secret" not in (desk.directory / "provider.log").read_text().lower().replace("secret_file", "")


@pytest.mark.timeout(300)
def test_commands_of_the_readme_work(desk: Desk) -> None:
    """What a reader types while `make run` runs."""
    own = [block for block in blocks(ROOT / "README.md") if block.info == "sh"]
    assert len(own) == README_COMMANDS
    said = run_all(desk, [_START, own[1].text])
    assert "gpu-workers: target size 3, 0 to 10" in said
    assert len(set(re.findall(r"\bgpu-workers-[a-z2-7]{8}\b", said))) == 3


def test_targets_that_the_readme_names_are_there() -> None:
    """`make` takes no unknown target kindly."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [block.text for page in PAGES for block in blocks(page) if block.info.startswith("sh")]
    named = {name for text in texts for name in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)}
    assert {"run", "test", "setup", "image"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A new kind would be run by nobody."""
    assert [(block.line, block.info) for block in blocks(page) if block.info not in KINDS] == []
    taught = page.stem in {*TAUGHT, "README"}
    assert taught or not [block.line for block in blocks(page) if block.info == "sh cluster"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_the_options_that_they_are_given(page: Path) -> None:
    """Also on pages whose blocks nobody runs, for want of what they speak of."""
    for block in blocks(page):
        if block.info.startswith("sh"):
            for arguments in our_commands(block.text):
                parse(arguments, f"{page.name}:{block.line}")


def our_commands(text: str) -> Iterator[list[str]]:
    """The arguments of every call of our program in a block."""
    for line in text.replace("\\\n", " ").splitlines():
        for found in re.findall(r"(?:^|\s)(?:\.venv/bin/)?verda-cloud-provider( [^|&>#;]*)", line):
            words = shlex.split(found)
            if "/" not in words[0] and words[0] not in {"--namespace", "-c"}:
                yield with_default_command(words)


def parse(arguments: list[str], where: str) -> None:
    """Have the command line parse them, and nothing more: its help comes after every option was understood."""
    done = CliRunner().invoke(cli, [*arguments, "--help"])
    assert done.exit_code == 0, f"{where}: {done.output}"


def test_wrong_options_are_noticed() -> None:
    """The check above can fail, and finds commands behind a path or a pipe."""
    assert list(our_commands("a && .venv/bin/verda-cloud-provider events --limit 3 | head # x")) == [
        ["events", "--limit", "3"]
    ]
    for wrong in (["events", "--limits", "3"], ["vents"], ["config", "chek"]):
        with pytest.raises(AssertionError):
            parse(wrong, "here")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_yaml_is_yaml_and_scripts_parse(page: Path) -> None:
    """Examples that are not run are at least well formed."""
    for block in blocks(page):
        if block.info == "yaml":
            assert yaml.safe_load(block.text) is not None, block.line
        if block.info == "bash":
            done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), block.line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    """Files are there, and headings behind `#` as well."""
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, heading = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.exists() or (heading and heading not in headings(other)):
            broken.append(target)
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are made of its headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_alert_has_a_paragraph_of_its_own() -> None:
    """And no paragraph speaks of an alert that is not there."""
    told = re.findall(r"^### (Verda\w+)$", (ROOT / "docs" / "failures.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(rule["alert"] for rule in RULES)


def test_blocks_are_found() -> None:
    """The reader of pages reads them: fences inside of a list would be overlooked."""
    for page in PAGES:
        text = page.read_text()
        assert text.count("\n```") + text.startswith("```") == 2 * len(list(blocks(page))), page
    first = next(blocks(ROOT / "docs" / "quickstart.md"))
    assert first == Block(info="sh setup", text='make setup\nexport PATH="$PWD/.venv/bin:$PATH"\n', line=10)
