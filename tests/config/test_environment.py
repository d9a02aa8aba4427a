"""Variables, `.env`, credentials and the files that hold secrets."""

import pytest
from pydantic import SecretStr

from app.config.groups import NodeGroup
from app.config.load import load
from app.config.model import Config, Verda

from .harness import GROUP, Desk, plain, refusal

ID, SECRET = "an-id", "a-secret-of-some-length"


def secret_of(config: Config) -> str | None:
    """The client secret in clear."""
    secret = config.verda.client_secret
    return None if secret is None else secret.get_secret_value()


def test_variables_are_replaced_anywhere(desk: Desk) -> None:
    """In whole values and within them, in lists, and for numbers."""
    text = """\
cluster_name: ${NAME}
node_groups:
  gpu:
    instance_type: ${COUNT}A100.22V
    image: ${A}-${B}
    max_size: ${MAX}
    location: FIN-01
    hourly_price: ${PRICE}
    ssh_key_ids: ["${A}", b]
    labels: {team: "${A}"}
insecure: ${YES}
intervals: {observe: "${SECONDS}s"}
"""
    environ = {
        "NAME": "prod", "COUNT": "1", "A": "ubuntu", "B": "24.04", "MAX": "7", "PRICE": "0.60", "YES": "true",
        "SECONDS": "3",
    }  # fmt: skip
    config = desk.load(text, environ=environ).config
    group = config.node_groups["gpu"].model_dump(mode="json")
    assert (config.cluster_name, config.insecure) == ("prod", True)
    assert (group["instance_type"], group["image"], group["max_size"]) == ("1A100.22V", "ubuntu-24.04", 7)
    assert (group["hourly_price"], group["ssh_key_ids"], group["labels"]) == (
        "0.60",
        ["ubuntu", "b"],
        {"team": "ubuntu"},
    )
    assert config.intervals.observe.total_seconds() == 3


def test_a_missing_variable_is_told_with_its_line(desk: Desk) -> None:
    """And nothing else about the value, which is not there."""
    told = desk.told(GROUP.replace("max_size: 3", "max_size: ${MAX}") + "    image2: ${A}${B}${A}\n")
    assert told == [
        (5, "node_groups.gpu.max_size", "MAX is not set in the environment: set it, or write $${ for a literal ${"),
        (
            7,
            "node_groups.gpu.image2",
            "A and B are not set in the environment: set it, or write $${ for a literal ${",
        ),
    ]


@pytest.mark.parametrize("written", ["${", "${}", "${a-b}", "${A:-b}", "a ${ b", "${1}"])
def test_what_looks_like_a_variable_and_is_none(desk: Desk, written: str) -> None:
    """A shell's default values are not known here."""
    told = desk.told(GROUP + f"cluster_name: '{written}'\n", environ={"A": "x"})
    assert told == [(7, "cluster_name", "holds a ${ that begins no ${NAME}: write $${ if you mean the two characters")]


@pytest.mark.parametrize(
    ("written", "value"), [("$${A}", "${A}"), ("$${A}${A}", "${A}x"), ("$A", "$A"), ("$$", "$$"), ("a$${", "a${")]
)
def test_dollars_can_be_written(desk: Desk, written: str, value: str) -> None:
    """Passwords have them."""
    text = GROUP + f"verda: {{client_id: '{written}', client_secret: s}}\n"
    assert desk.load(text, environ={"A": "x"}).config.verda.client_id == value


def test_a_value_is_not_replaced_twice(desk: Desk) -> None:
    """What a variable holds is taken as it is."""
    text = GROUP + "verda: {client_id: '${A}', client_secret: s}\n"
    assert desk.load(text, environ={"A": "${B}", "B": "x"}).config.verda.client_id == "${B}"


def test_a_wrong_value_of_a_variable_is_told_by_its_name(desk: Desk) -> None:
    """Its content may be a secret that got into the wrong variable."""
    told = desk.told(GROUP.replace("max_size: 3", "max_size: ${MAX}"), environ={"MAX": "hunter2"})
    assert told == [(5, "node_groups.gpu.max_size", "must be a whole number, is the content of ${MAX}")]


def test_a_startup_script_keeps_its_own_variables(desk: Desk) -> None:
    """They are the shell's."""
    group = desk.load(GROUP + '    startup_script: "#!/bin/sh\\necho ${HOME}\\n"\n').config.node_groups["gpu"]
    assert isinstance(group, NodeGroup)
    assert group.startup_script is not None
    assert group.startup_script.get_secret_value() == "#!/bin/sh\necho ${HOME}\n"


def test_credentials_come_from_the_environment(desk: Desk) -> None:
    """The usual way in a cluster."""
    config = desk.load(GROUP, environ={"VERDA_CLIENT_ID": ID, "VERDA_CLIENT_SECRET": SECRET}).config
    assert (config.verda.client_id, secret_of(config)) == (ID, SECRET)
    assert config.verda.missing_credentials() == ()


def test_the_older_names_of_the_credentials(desk: Desk) -> None:
    """The company had another name; today's one wins."""
    older = {"DATACRUNCH_CLIENT_ID": ID, "DATACRUNCH_CLIENT_SECRET": SECRET}
    config = desk.load(GROUP, environ=older).config
    assert (config.verda.client_id, secret_of(config)) == (ID, SECRET)
    config = desk.load(GROUP, environ=older | {"VERDA_CLIENT_ID": "new", "VERDA_CLIENT_SECRET": ""}).config
    assert (config.verda.client_id, secret_of(config)) == ("new", SECRET)


def test_the_file_wins_over_the_environment(desk: Desk) -> None:
    """What is written down is meant."""
    environ = {"VERDA_CLIENT_ID": "x", "VERDA_CLIENT_SECRET": "y", "VERDA_BASE_URL": "http://z"}
    text = GROUP + f"verda: {{client_id: {ID}, client_secret: {SECRET}, base_url: 'https://a/v1'}}\n"
    config = desk.load(text, environ=environ).config
    assert (config.verda.client_id, secret_of(config), config.verda.base_url) == (ID, SECRET, "https://a/v1")


def test_the_base_url_comes_from_the_environment(desk: Desk) -> None:
    """Also when the section is there and empty."""
    environ = {"VERDA_BASE_URL": "http://127.0.0.1:8090/v1"}
    for text in (GROUP, GROUP + "verda:\n", GROUP + "verda: {base_url: null}\n"):
        assert desk.load(text, environ=environ).config.verda.base_url == "http://127.0.0.1:8090/v1"


def test_a_wrong_value_of_the_environment_is_told_as_such(desk: Desk) -> None:
    """Without its content."""
    (problem,) = desk.problems(GROUP, environ={"VERDA_BASE_URL": "hunter2"})
    assert problem.source == "environment"
    assert plain(problem) == (None, "VERDA_BASE_URL", "must be an http:// or https:// address, is something else")


def test_no_credentials_are_no_problem(desk: Desk) -> None:
    """The simulator needs none; whoever calls the real API asks for what is missing."""
    loaded = desk.load(GROUP)
    assert loaded.warnings == ()
    assert loaded.config.verda.missing_credentials() == ("client_id", "client_secret")
    assert Verda(client_secret=SecretStr("x")).missing_credentials() == ("client_id",)


def test_half_of_the_credentials_is_warned_of(desk: Desk) -> None:
    """A variable that did not arrive."""
    assert desk.warned(GROUP + f"verda: {{client_id: {ID}}}\n") == [
        (7, "verda.client_id", "is set without client_secret: Verda's API needs both")
    ]
    (warning,) = desk.load(GROUP, environ={"VERDA_CLIENT_SECRET": SECRET}).warnings
    assert (warning.source, warning.path) == ("environment", "VERDA_CLIENT_SECRET")


def test_a_secret_comes_from_a_file(desk: Desk) -> None:
    """Without the newline that editors put at its end, and before the environment."""
    path = desk.write(f"{SECRET}\r\n", "secret")
    text = GROUP + f"verda: {{client_id: {ID}, client_secret_file: {path}}}\n"
    assert secret_of(desk.load(text).config) == SECRET
    assert secret_of(desk.load(text, environ={"VERDA_CLIENT_SECRET": "another"}).config) == SECRET


def test_blanks_of_a_secret_are_kept(desk: Desk) -> None:
    """They may belong to it."""
    path = desk.write(f" {SECRET} \n", "secret")
    assert secret_of(desk.load(GROUP + f"verda: {{client_secret_file: {path}}}\n").config) == f" {SECRET} "


def test_a_secret_and_its_file_exclude_each_other(desk: Desk) -> None:
    """Which one was rotated?"""
    path = desk.write(SECRET, "secret")
    told = desk.told(GROUP + f"verda:\n  client_secret: x\n  client_secret_file: {path}\n")
    assert told == [
        (9, "verda.client_secret_file", "client_secret and client_secret_file are both given: keep one of them")
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "the file of the secret cannot be used: there is no such file"),
        (b"", "the file of the secret is empty"),
        (b"\n \n", "the file of the secret is empty"),
        (b"\xff\xfe", "the file of the secret is not UTF-8 text: is it the right file?"),
        (b"x" * 70_000, "the file of the secret cannot be used: is larger than 65536 bytes: is it the right file?"),
    ],
)
def test_a_secret_file_that_is_none(desk: Desk, content: bytes | None, words: str) -> None:
    """Told at the key that names it."""
    path = desk.directory / "secret"
    if content is not None:
        desk.write(content, "secret")
    assert desk.told(GROUP + f"verda:\n  client_secret_file: {path}\n") == [(8, "verda.client_secret_file", words)]


def test_a_secret_file_that_is_a_directory(desk: Desk) -> None:
    """A mounted Secret is a directory of files."""
    ((line, path, message),) = desk.told(GROUP + f"verda: {{client_secret_file: {desk.directory}}}\n")
    assert (line, path) == (7, "verda.client_secret_file")
    assert "is a directory, not a file" in message


@pytest.mark.parametrize("written", ["[a]", "17", "''"])
def test_a_secret_file_without_a_name(desk: Desk, written: str) -> None:
    """Left for the model to refuse."""
    told = desk.told(GROUP + f"verda: {{client_secret_file: {written}}}\n")
    assert [one[:2] for one in told] == [(7, "verda.client_secret_file")]


def test_dotenv_stands_beside_the_file(desk: Desk) -> None:
    """Where the older provider's users have it."""
    desk.write(f"# a comment\nexport VERDA_CLIENT_ID={ID}\nVERDA_CLIENT_SECRET='{SECRET}'\nNAME=prod\nEMPTY\n", ".env")
    config = desk.load(GROUP + "cluster_name: ${NAME}\n").config
    assert (config.verda.client_id, secret_of(config), config.cluster_name) == (ID, SECRET, "prod")


def test_the_real_environment_wins_over_dotenv(desk: Desk) -> None:
    """A file must not overrule the command line that starts the process."""
    desk.write(f"VERDA_CLIENT_ID=old\nVERDA_CLIENT_SECRET={SECRET}\n", ".env")
    assert desk.load(GROUP, environ={"VERDA_CLIENT_ID": ID}).config.verda.client_id == ID


def test_dotenv_can_be_left_unread(desk: Desk) -> None:
    """Tests and reloads in a cluster do not want one."""
    desk.write(f"VERDA_CLIENT_ID={ID}\n", ".env")
    path = desk.write(GROUP)
    assert load(path, environ={}, dotenv=None).config.verda.client_id is None


def test_dotenv_does_not_expand_variables(desk: Desk) -> None:
    """Secrets have dollars in them."""
    desk.write(f"VERDA_CLIENT_ID={ID}\nVERDA_CLIENT_SECRET=a${{VERDA_CLIENT_ID}}b\n", ".env")
    assert secret_of(desk.load(GROUP).config) == "a${VERDA_CLIENT_ID}b"


def test_a_broken_line_of_dotenv_is_told_without_its_content(desk: Desk) -> None:
    """It may be a secret without its name."""
    path = desk.write(f"\n\nVERDA_CLIENT_ID={ID}\n\n'hunter2 hunter2\nA=b\n", ".env")
    (problem,) = desk.problems(GROUP)
    assert (problem.source, *plain(problem)) == (str(path), 5, "", "is not of the form NAME=value")


def test_a_wrong_value_in_dotenv_is_told_with_its_line(desk: Desk) -> None:
    """Where it is to be mended."""
    path = desk.write("\nVERDA_BASE_URL=nowhere\n", ".env")
    (problem,) = desk.problems(GROUP)
    assert (problem.source, problem.line, problem.path) == (str(path), 2, "VERDA_BASE_URL")


def test_dotenv_that_cannot_be_read(desk: Desk) -> None:
    """Never silently without credentials."""
    path = desk.write(b"A=\xff\n", ".env")
    assert [str(problem) for problem in desk.problems(GROUP)] == [f"{path}: is not UTF-8: save it as UTF-8"]
    path.unlink()
    path.mkdir()
    (problem,) = desk.problems(GROUP)
    assert problem.message.startswith("is a directory")


def test_dotenv_is_not_looked_for_when_there_is_no_configuration(desk: Desk) -> None:
    """One clear line, not two."""
    desk.write("broken line", ".env")
    (problem,) = refusal(lambda: load(desk.path, environ={}))
    assert problem.source == str(desk.path)


def test_credentials_in_a_section_that_is_none(desk: Desk) -> None:
    """The file's mistake stays the only one."""
    told = desk.told(GROUP + "verda: [x]\n", environ={"VERDA_CLIENT_ID": ID, "VERDA_CLIENT_SECRET": SECRET})
    assert [one[:2] for one in told] == [(7, "verda")]
