"""Every command that the documentation gives works, and every place that it points to is there."""

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from app.cli.main import cli, with_default_command
from tests.deploy.test_monitoring import RULES

from .blocks import ROOT, Block, Desk, blocks

PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
TAUGHT = ("README", "quickstart", "operations", "failures", "security", "disaster-recovery", "migrating")
"""Pages with commands. Their blocks are run, each of them, in the order in which they stand."""

SHELL = frozenset({"sh", "sh serves", "sh cluster"})
KINDS = SHELL | {"yaml", "sql", "text", "mermaid"}
"""`sql` and its `text` are the business of tests/audit."""

MAKE_RUN = "verda-cloud-provider serve --config examples/config.yaml --with-simulator 127.0.0.1:8090"
"""What `make run` comes down to."""

_SIMULATE = """\
verda-cloud-provider simulate --port 8090 --seed 1 > simulator.log 2>&1 &
echo $! > simulator.pid
export VERDA_BASE_URL=http://127.0.0.1:8090/v1 DATACRUNCH_CLIENT_ID=simulator DATACRUNCH_CLIENT_SECRET=simulator
"""
_STOP = """\
kill "$(cat provider.pid)"
while kill -0 "$(cat provider.pid)" 2> /dev/null; do sleep 0.1; done
rm -r var
"""


def served(text: str) -> str:
    """Have what ends with a command that serves started, and wait until it is ready."""
    command = re.sub(r"^(?=verda-cloud-provider )", "exec ", text.strip(), flags=re.MULTILINE)
    return f"""\
mkdir -p var
( {command} ) > provider.log 2>&1 &
echo $! > provider.pid
curl --silent --fail --retry 60 --retry-delay 1 --retry-all-errors http://127.0.0.1:8087/readyz
"""


_START = served("verda-cloud-provider --config config.yaml --with-simulator 127.0.0.1:8090")
"""What the pages after the quick start take for granted: a server of the example's configuration."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A reader's desk; a server that a page left running is ended."""
    made = Desk(tmp_path)
    yield made
    for pid_file in tmp_path.glob("*.pid"):
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
    done = desk.run(texts, timeout_s=900)
    log = desk.directory / "provider.log"
    assert done.returncode == 0, done.stdout[-3000:] + (log.read_text()[-2000:] if log.exists() else "")
    return done.stdout


def commands(page: Path) -> list[str]:
    """The blocks of a page that are to be run: all of them."""
    return [block.text for block in blocks(page) if block.info in SHELL]


@pytest.mark.timeout(1000)
def test_the_quick_start_leads_to_a_working_pair(desk: Desk) -> None:
    """Line by line: certificates, server, scripted autoscaler over mutual TLS, stop; then the cluster's part."""
    said = run_all(desk, commands(ROOT / "docs" / "quickstart.md"))
    assert "gpu-workers: target size 2, 0 to 4" in said
    assert said.count("Creating") + said.count("Running") >= 2
    assert "UNAVAILABLE" in said  # without a certificate
    assert (desk.directory / "certs" / "client.crt").exists()


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("names", [("operations", "failures", "security"), ("disaster-recovery",)], ids=" ".join)
def test_commands_of_pages_work(desk: Desk, names: tuple[str, ...]) -> None:
    """On the server of the example's configuration, page after page."""
    said = run_all(desk, [_START, *(text for name in names for text in commands(ROOT / "docs" / f"{name}.md"))])
    assert "Traceback" not in said
    assert "secret" not in (desk.directory / "provider.log").read_text().lower().replace("secret_file", "")


@pytest.mark.timeout(1000)
def test_commands_of_the_readme_work(desk: Desk) -> None:
    """What a reader types while `make run` runs."""
    first, *others = commands(ROOT / "README.md")
    assert len(others) == 1
    said = run_all(desk, [first, served(MAKE_RUN), *others])
    assert desk.own(f".venv/bin/{MAKE_RUN}\n") in desk.own(said)
    assert "gpu-workers: target size 3, 0 to 10" in said
    assert len(set(re.findall(r"\bgpu-workers-[a-z2-7]{8}\b", said))) == 3


@pytest.mark.timeout(1000)
def test_commands_of_the_migration_page_work(desk: Desk) -> None:
    """First beside the Python provider's settings; then flags of the in-tree provider start a server of their own."""
    page = [block for block in blocks(ROOT / "docs" / "migrating.md") if block.info in SHELL]
    assert [block.info for block in page] == ["sh", "sh serves", "sh"]
    texts = [block.text if block.info == "sh" else _STOP + _SIMULATE + served(block.text) for block in page]
    said = run_all(desk, [_START, *texts])
    assert said.count("no machine's host name begins with 'gpu-workers-'") == 1
    assert said.count("nothing was changed: say --yes to do it") == 2
    assert "nothing to do: gpu is so already" in said


def test_targets_that_the_readme_names_are_there() -> None:
    """`make` takes no unknown target kindly."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [block.text for page in PAGES for block in blocks(page) if block.info in SHELL]
    named = {name for text in texts for name in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)}
    assert {"run", "test", "setup", "image"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A new kind would be run by nobody."""
    assert [(block.line, block.info) for block in blocks(page) if block.info not in KINDS] == []
    assert page.stem in TAUGHT or not [block.line for block in blocks(page) if block.info in SHELL]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_the_options_that_they_are_given(page: Path) -> None:
    """Also in the midst of a sentence."""
    text = page.read_text()
    for code in re.findall(
        r"`(verda-cloud-provider [^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    ):
        for arguments in our_commands(code):
            if arguments[0] != "COMMAND":
                parse(arguments, f"{page.name}: {code}")
    for block in blocks(page):
        if block.info in SHELL:
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
def test_yaml_is_what_it_is_shown_as(page: Path) -> None:
    """Pieces of our configuration fit its published schema; others are the autoscaler's cloud.yaml, or objects."""
    schema = json.loads((ROOT / "docs" / "configuration.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for block in blocks(page):
        if block.info == "yaml":
            piece = yaml.safe_load(block.text)
            if "kind" not in piece and not piece.keys() <= {"address", "cert", "key", "cacert", "grpc_timeout"}:
                whole = {"node_groups": {}, **piece}
                assert [error.message for error in validator.iter_errors(whole)] == [], block.line


@pytest.mark.parametrize("path", ["examples/config.yaml", "deploy/compose/config.yaml"])
def test_examples_tell_editors_where_their_schema_is(path: str) -> None:
    """Relative to the file, as the editors' language server reads it."""
    said = re.match(r"# yaml-language-server: \$schema=(\S+)\n", (ROOT / path).read_text())
    assert said is not None
    assert ((ROOT / path).parent / said[1]).resolve() == ROOT / "docs" / "configuration.schema.json"


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
    assert first == Block(info="sh", text='make setup\nexport PATH="$PWD/.venv/bin:$PATH"\n', line=10)
