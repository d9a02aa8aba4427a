"""Startup scripts in the configuration: everything that can go wrong is told before a machine is bought."""

import base64
from datetime import timedelta

import pytest

from app.config import scripts
from app.config.specs import to_specs
from app.startup.variables import sample_birth

from .harness import GROUP, Desk

SCRIPT = """\
    startup_script: |
      #!/bin/sh
      join {{ join_token }} ${HOME}
"""


def test_a_script_is_filled_in_from_text_files_and_the_environment(desk: Desk) -> None:
    """Each value by one of three ways; `${HOME}` is the shell's."""
    (desk.directory / "token").write_text("t0ken\n", "utf-8")
    text = (
        GROUP
        + f"""\
    startup_script: |
      #!/bin/sh
      join {{{{ a }}}} {{{{ b }}}} {{{{ c }}}} ${{HOME}}
    script_values: {{a: plain, b: {{file: {desk.directory}/token}}, c: {{env: SECRET}}}}
"""
    )
    config = desk.load(text, environ={"SECRET": "s3cret"}).config
    (source,) = scripts.sources(config).values()
    assert source.template == "#!/bin/sh\njoin {{ a }} {{ b }} {{ c }} ${HOME}\n"
    assert {name: read() for name, read in source.values.items()} == {"a": "plain", "b": "t0ken", "c": "s3cret"}
    assert "s3cret" not in repr(config)


MINTED = SCRIPT + "    script_values: {join_token: {bootstrap_token: 1h}}\n"
ON = "kubernetes: {enabled: true}\n"


def test_a_value_may_be_a_join_token_made_for_each_machine(desk: Desk) -> None:
    """It counts as given when the script is tried, and is no value that could be read."""
    config = desk.load(GROUP + MINTED + ON).config
    (source,) = scripts.sources(config).values()
    assert source.minted == {"join_token": timedelta(hours=1)}
    assert source.values == {}
    assert config.kubernetes.bootstrap_token_groups == ("system:bootstrappers:kubeadm:default-node-token",)


def test_a_join_token_needs_a_cluster_and_time(desk: Desk) -> None:
    """Noticed when the configuration is loaded; one that is made when the machine has booted may be short."""
    path = "node_groups.gpu.script_values.join_token.bootstrap_token"
    assert desk.told(GROUP + MINTED) == [(10, path, "needs the cluster that the token is for: set kubernetes.enabled")]
    short = MINTED.replace("1h", "29m")
    assert desk.warned(GROUP + short + ON) == [
        (10, path, "is shorter than provision_timeout, 30m: a machine that boots slowly cannot join")
    ]
    served = "startup_script_server: {listen: '127.0.0.1:8088', url: 'http://10.0.0.10:8088/script'}\n"
    assert desk.warned(GROUP + short + ON + served) == []


@pytest.mark.parametrize(
    "group", ["system:masters", "system:bootstrappers:", "system:bootstrappers:a,system:masters", ""]
)
def test_a_join_token_lets_nobody_be_more_than_a_new_node(desk: Desk, group: str) -> None:
    """Kubernetes itself refuses other groups; here the mistake is told with its line."""
    empty = desk.told(GROUP + "kubernetes: {enabled: true, bootstrap_token_groups: []}\n")
    assert [path for _, path, _ in empty] == ["kubernetes.bootstrap_token_groups"]
    ((_, path, message),) = desk.told(GROUP + f"kubernetes:\n  enabled: true\n  bootstrap_token_groups: ['{group}']\n")
    assert path == "kubernetes.bootstrap_token_groups[0]"
    assert message.startswith("must be a group of bootstrap tokens, is ")


def test_a_renewed_file_is_read_anew(desk: Desk) -> None:
    """F41: join tokens expire, and something renews them."""
    token = desk.directory / "token"
    token.write_text("old", "utf-8")
    config = desk.load(GROUP + SCRIPT + f"    script_values: {{join_token: {{file: {token}}}}}\n").config
    (source,) = scripts.sources(config).values()
    token.write_text("new", "utf-8")
    assert source.values["join_token"]() == "new"


@pytest.mark.parametrize(
    ("more", "line", "path", "message"),
    [
        (
            SCRIPT,
            7,
            "node_groups.gpu.startup_script",
            "the startup script in line 2 cannot be filled in: 'join_token' is undefined",
        ),
        (
            "    startup_script: echo\n",
            7,
            "node_groups.gpu.startup_script",
            "the startup script in line 1 does not begin with #!: begin it with a line like #!/bin/bash",
        ),
        (
            "    startup_script_base64: '***'\n",
            7,
            "node_groups.gpu.startup_script_base64",
            "must be base64: make it with: base64 -w0 FILE",
        ),
        (
            "    startup_script_base64: //8=\n",
            7,
            "node_groups.gpu.startup_script_base64",
            "must hold UTF-8 text: a startup script is text that begins with #!",
        ),
        ("    startup_script_file: nowhere.sh\n", 7, "node_groups.gpu.startup_script_file", "there is no such file"),
        (
            '    startup_script: "#!/bin/sh\\r\\nx"\n',
            7,
            "node_groups.gpu.startup_script",
            "must not have carriage returns at the ends of its lines: save it with Unix line ends",
        ),
        (
            SCRIPT + "    script_values: {join_token: {env: NOWHERE}}\n",
            10,
            "node_groups.gpu.script_values.join_token.env",
            "NOWHERE is not set in the environment: set it",
        ),
        (
            SCRIPT + "    script_values: {join_token: {file: nowhere}}\n",
            7,
            "node_groups.gpu.startup_script",
            "the startup script cannot have join_token from its file: there is no such file",
        ),
        (
            SCRIPT + "    script_values: {join_token: x, hostname: y}\n",
            10,
            "node_groups.gpu.script_values.hostname",
            "must not be the name of something that scripts know of their machine: call it otherwise",
        ),
        (
            SCRIPT + "    script_values: {join_token: x, a-b: y}\n",
            10,
            "node_groups.gpu.script_values.a-b",
            "must be a name that a template can use: letters, digits and _, like join_token",
        ),
        (
            "    startup_script_template: k3s\n    script_values: {server_url: 'https://a:6443'}\n",
            7,
            "node_groups.gpu.startup_script_template",
            "the startup script in line 9 cannot be filled in: 'join_token' is undefined",
        ),
    ],
)
def test_what_is_wrong_with_a_script_is_told_at_load(desk: Desk, more: str, line: int, path: str, message: str) -> None:
    """Never when the first machine is wanted."""
    (told,) = desk.told(GROUP + more)
    assert told[:2] == (line, path)
    assert told[2].startswith(message)


def test_a_script_that_is_too_large_is_refused_with_size_and_limit(desk: Desk) -> None:
    """F42: 80 kB."""
    large = base64.b64encode(b"#!/bin/sh\n" + b"x" * 80_000).decode()
    (told,) = desk.told(GROUP + f"    startup_script_base64: {large}\n")
    assert told[2] == "the startup script makes a script of 80010 bytes, at most 65536 are possible"


def test_a_large_script_is_warned_of(desk: Desk) -> None:
    """More than cloud-init usually takes."""
    large = base64.b64encode(b"#!/bin/sh\n" + b"x" * 20_000).decode()
    (told,) = desk.warned(GROUP + f"    startup_script_base64: {large}\n")
    assert told[2] == "is 20010 bytes long: Verda names no limit, but more than 16384 are often refused"


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("k3s", "{server_url: 'https://a:6443', join_token: t}"),
        ("rke2", "{server_url: 'https://a:9345', join_token: t}"),
        ("kubeadm", "{api_server: 'a:6443', join_token: t, ca_cert_hash: 'sha256:0', kubernetes_version: '1.34'}"),
    ],
)
def test_ready_made_scripts_need_these_values_and_no_more(desk: Desk, template: str, values: str) -> None:
    """What their first lines say."""
    config = desk.load(GROUP + f"    startup_script_template: {template}\n    script_values: {values}\n").config
    (source,) = scripts.sources(config).values()
    (group,) = to_specs(config)
    assert group.startup_script == template
    assert source.script(sample_birth(group, "prod")).text.startswith("#!/bin/bash\n")


def test_a_url_is_fetched_by_the_machine_with_what_it_is(desk: Desk) -> None:
    """The uploaded text is only a stub."""
    config = desk.load(GROUP + "    startup_script_url: https://a.example/script?x=1\n").config
    (source,) = scripts.sources(config).values()
    (group,) = to_specs(config)
    text = source.script(sample_birth(group, "prod")).text
    assert "'https://a.example/script?x=1'" in text
    assert "--data-urlencode hostname=gpu-a2b3c4d5" in text


def test_scripts_in_defaults_are_blamed_where_they_stand(desk: Desk) -> None:
    """Once for every group that uses it."""
    told = desk.told(GROUP + "defaults:\n  startup_script: echo\n")
    assert [one[:2] for one in told] == [(8, "defaults.startup_script")]
