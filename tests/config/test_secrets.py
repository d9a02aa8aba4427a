"""Nothing secret is ever shown: each secret, in every wrong place, looked for in everything that is told."""

import pickle
import traceback

import pytest
from pydantic import ValidationError

from app.config import shape
from app.config.load import load
from app.config.model import Config
from app.errors import ConfigurationError

from .harness import GROUP, Desk, outcome

SECRET = "hunter2-correct-horse"


def everything_told(desk: Desk, text: str, environ: dict[str, str]) -> str:
    """All that an operator, a log or a crash report could see of loading a text."""
    path = desk.write(text)
    end = outcome(lambda: load(path, environ=environ))
    if isinstance(end, ConfigurationError):
        assert end.__cause__ is None
        assert end.__context__ is None
        trace = "".join(traceback.format_exception(end))
        return f"{end} {end!r} {end.problems!r} {end.context!r} {trace}"
    config = end.config
    return f"{end!r} {config!r} {config} {config.model_dump()!r} {config.model_dump_json()}"


PLACES = {
    "client secret": f"verda: {{client_secret: {SECRET}}}",
    "client secret, wrong kind": f"verda: {{client_secret: [{SECRET}]}}",
    "client secret, mapping": f"verda: {{client_secret: {{{SECRET}: {SECRET}}}}}",
    "client secret, twice": f"verda: {{client_secret: {SECRET}, client_secret: {SECRET}}}",
    "client secret, misspelt": f"verda: {{client_secert: {SECRET}}}",
    "client secret, at the top": f"client_secret: {SECRET}",
    "client secret, no space": f"verda: {{client_secret:{SECRET}}}",
    "client secret, no space in a block": f"verda:\n  client_secret:{SECRET}",
    "client secret, no space, with equals": f"verda: {{client_secret={SECRET}: }}",
    "client secret, no space, at the top": f"client_secret:{SECRET}",
    "client secret, half quoted": f'verda: {{client_secret: "{SECRET}}}',
    "client secret, quoted too early": f"verda: {{client_secret: 'abc'{SECRET}}}",
    "client secret, as an alias": f"verda: {{client_secret: *{SECRET}}}",
    "client secret, as an anchor": f"verda: {{client_secret: &{SECRET} a, client_id: &{SECRET} b}}",
    "client secret, as a tag": f"verda: {{client_secret: !{SECRET} a}}",
    "client secret, as a tag handle": f"verda: {{client_secret: !{SECRET}!a b}}",
    "client secret, after a percent sign": f"%{SECRET}\nverda: {{}}",
    "client secret, with a dollar": f"verda: {{client_secret: '${{{SECRET}'}}",
    "client secret, and a bad file": f"verda: {{client_secret: {SECRET}, client_secret_file: /nowhere}}",
    "client secret, in place of its file": f"verda: {{client_secret_file: {SECRET}}}",
    "client secret, and another mistake": f"verda: {{client_secret: {SECRET}, timeout: {SECRET}}}",
    "client secret, and another key of it": f"verda: {{client_secret: {SECRET}, {SECRET}: 1}}",
    "client secret, as a group": f"verda: {{client_secret: {SECRET}}}\ndefaults: {{{SECRET}: 1}}",
    "client secret, as the section": f"verda: client_secret {SECRET}",
    "client secret, as a path": f"database: 'sqlite:///client_secret={SECRET}'",
    "user in the URL": f"verda: {{base_url: 'https://me:{SECRET}@api.verda.com/v1'}}",
    "token": f"kubernetes: {{token: {SECRET}}}",
    "token, wrong kind": f"kubernetes: {{token: [{SECRET}]}}",
    "token, misspelt": f"kubernetes: {{tokn: {SECRET}}}",
    "token, as text": f"kubernetes: token {SECRET}",
    "startup script": f"defaults: {{startup_script: 'kubeadm join --token {SECRET}'}}",
    "startup script, wrong kind": f"defaults: {{startup_script: ['{SECRET}']}}",
    "startup script, encoded": f"defaults: {{startup_script_base64: {SECRET}}}",
    "startup script, at a URL": f"defaults: {{startup_script_url: 'http://me:{SECRET}@a'}}",
    "value of a script": f"defaults: {{script_values: {{a: {SECRET}}}}}",
    "value of a script, as a mapping": f"defaults: {{script_values: {{a: {{value: {SECRET}, b: c}}}}}}",
    "value of a script, wrong kind": f"defaults: {{script_values: {{a: [{SECRET}]}}}}",
    "values of a script": f"defaults: {{script_values: token {SECRET}}}",
    "in a variable": "verda: {client_secret: '${SECRET}'}",
    "in a variable, wrong place": "cluster_name: '${SECRET} '",
    "in a variable, wrong number": "loss_brake: ${SECRET}",
    "in a variable, wrong word": "claim: ${SECRET}",
    "in a variable, wrong duration": "verda: {timeout: '${SECRET}'}",
    "in a variable, wrong address": "listen: ${SECRET}",
    "in a variable, wrong list": "defaults: {ssh_key_ids: ['${SECRET} ']}",
}


@pytest.mark.parametrize("more", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("mistake", ["", "claim: perhaps\n"], ids=["alone", "beside another mistake"])
def test_no_secret_is_ever_told(desk: Desk, more: str, mistake: str) -> None:
    """Neither from a good file nor from a bad one."""
    told = everything_told(desk, mistake + GROUP + more + "\n", {"SECRET": SECRET})
    assert SECRET not in told


@pytest.mark.parametrize("more", PLACES.values(), ids=PLACES.keys())
def test_no_secret_is_told_by_a_file_that_is_not_yaml(desk: Desk, more: str) -> None:
    """Parsers like to quote what they stumbled over."""
    assert SECRET not in everything_told(desk, GROUP + more + "\n}]\n\t- {", {"SECRET": SECRET})


@pytest.mark.parametrize("name", ["VERDA_CLIENT_SECRET", "DATACRUNCH_CLIENT_SECRET"])
def test_no_secret_of_the_environment_is_told(desk: Desk, name: str) -> None:
    """Also when it was pasted into another key as well."""
    text = GROUP + f"verda: {{timeout: {SECRET}}}\n"
    assert SECRET not in everything_told(desk, GROUP, {name: SECRET})
    assert SECRET not in everything_told(desk, text, {name: SECRET})


def test_no_secret_of_a_file_is_told(desk: Desk) -> None:
    """Likewise."""
    path = desk.write(SECRET + "\n", "secret")
    text = GROUP + f"verda: {{client_secret_file: {path}}}\n"
    assert SECRET not in everything_told(desk, text, {})
    assert SECRET not in everything_told(desk, text + f"claim: {SECRET}\n", {})


def test_no_secret_of_dotenv_is_told(desk: Desk) -> None:
    """Nor the lines around it."""
    desk.write(f"VERDA_CLIENT_SECRET={SECRET}\n", ".env")
    assert SECRET not in everything_told(desk, GROUP + f"claim: {SECRET}\n", {})
    desk.write(f"'{SECRET}\n{SECRET} x\nVERDA_CLIENT_SECRET='{SECRET}\n", ".env")
    assert SECRET not in everything_told(desk, GROUP, {})


def test_what_looks_like_a_secret_is_not_quoted(desk: Desk) -> None:
    """Lines run together, which the model could not know for a secret."""
    ((_, _, message),) = desk.told(GROUP + f"cluster_name: prod\n  client_secret {SECRET}\n")
    assert message.startswith("must be a name without spaces, is text that is not shown here")


def test_pydantics_own_words_hide_the_input() -> None:
    """For whoever builds a configuration without the loader."""
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"verda": {"client_secret": [SECRET], "timeout": SECRET}})
    assert SECRET not in str(caught.value)


def test_secrets_are_known_wherever_they_stand() -> None:
    """The list that protects them is the model itself."""
    secret = [
        ("verda", "client_secret"),
        ("kubernetes", "token"),
        ("defaults", "startup_script"),
        ("node_groups", "any", "startup_script_base64"),
        ("node_groups", "any", "script_values", "key", "value"),
    ]
    assert all(shape.is_secret(path) for path in secret)
    assert not shape.is_secret(("verda", "client_id"))
    assert not shape.is_secret(("no", "such", "key"))


def test_a_problem_can_be_sent_elsewhere(desk: Desk) -> None:
    """Problems are plain values: another process may show them."""
    problems = desk.problems(GROUP + "claim: x\n")
    assert pickle.loads(pickle.dumps(problems)) == problems  # noqa: S301 - our own bytes
