"""Startup scripts: what they know of their machine, how values are quoted, the ready-made ones as a shell sees them."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from app.domain.mig import MigStrategy
from app.domain.nodegroup.spec import NodeGroupSpec, StartupTaint, Taint, TaintEffect
from app.domain.offering import Contract
from app.startup.sources import READY_MADE, ScriptSource
from app.startup.template import ScriptError, packaged, render
from app.startup.variables import Birth, machine_variables, sample_birth

NASTY = 'it\'s $(reboot) `x` "y" & ünicode'
VALUES = {
    "server_url": "https://10.0.0.1:6443",
    "api_server": "10.0.0.1:6443",
    "join_token": "abcdef.0123456789abcdef",
    "ca_cert_hash": "sha256:00ff",
    "kubernetes_version": "1.34",
    "k3s_version": "v1.34.1+k3s1",
    "rke2_version": "v1.34.1+rke2r1",
    "fetch_url": "https://scripts.example/script?team=ml&x=1",
    "fetch_token": "t0ken",
}


def spec(**settings: object) -> NodeGroupSpec:
    """A group of H100 machines with a taint, a start-up taint and labels."""
    values: dict[str, object] = {
        "name": "h100",
        "min_size": 0,
        "max_size": 4,
        "instance_type": "1H100.80S.32V",
        "image": "ubuntu-24.04",
        "locations": ("FIN-03", "FIN-01"),
        "contracts": (Contract.SPOT, Contract.ON_DEMAND),
        "labels": {"example.com/team": "ml"},
        "taints": (Taint(key="gpu", value="true", effect=TaintEffect.NO_SCHEDULE),),
        "startup_taints": (
            StartupTaint(key="node.cilium.io/agent-not-ready", value="true", effect=TaintEffect.NO_EXECUTE),
        ),
    }
    return NodeGroupSpec.model_validate(values | settings)


def birth(**settings: object) -> Birth:
    """A spot machine of that group in FIN-01."""
    return replace(sample_birth(spec(**settings), "prod"), name="h100-k7m2p9qx", location="FIN-01")


def source(template: str, **values: str) -> ScriptSource:
    """A template with its values."""
    return ScriptSource(template=template, values={name: (lambda text=text: text) for name, text in values.items()})  # type: ignore[misc] # a default binds early


def test_a_script_knows_its_machine() -> None:
    """F32, F38: the contract obtained, the kubelet's labels, and all taints, also those the template leaves out."""
    known = machine_variables(birth())
    assert known["hostname"] == "h100-k7m2p9qx"
    assert known["provider_id"] == "verda://h100-k7m2p9qx"
    assert (known["contract"], known["location"], known["region"]) == ("spot", "FIN-01", "FIN")
    assert (known["node_group"], known["cluster"], known["instance_type"]) == ("h100", "prod", "1H100.80S.32V")
    assert known["kubelet_labels"] == (
        "example.com/team=ml,node.kubernetes.io/instance-type=1H100.80S.32V,topology.kubernetes.io/region=FIN,"
        "topology.kubernetes.io/zone=FIN-01,verda.com/contract=spot,verda.com/gpu=h100"
    )
    assert known["kubelet_taints"] == "gpu=true:NoSchedule,node.cilium.io/agent-not-ready=true:NoExecute"
    assert (known["gpu_count"], known["mig_devices"]) == (1, [])


def test_labels_that_a_kubelet_may_not_give_itself_are_not_among_its_arguments() -> None:
    """With `node-role.kubernetes.io/gpu` in `--node-labels` a kubelet does not start at all."""
    known = machine_variables(birth(labels={"node-role.kubernetes.io/gpu": "", "k8s.io/a": "b", "team": "ml"}))
    assert "team=ml" in str(known["kubelet_labels"])
    for way in ("labels", "label_list", "kubelet_labels"):
        assert "node-role" not in str(known[way])
        assert "k8s.io/a" not in str(known[way])


def test_an_id_that_only_the_machine_can_know_is_left_to_the_shell() -> None:
    """The DataCrunch provider's form; the ready-made scripts read cloud-init's file and look at its shape."""
    script = source(packaged("k3s"), **VALUES).script(birth(provider_id_template="datacrunch://{instance_id}")).text
    assert 'PROVIDER_ID="datacrunch://$INSTANCE_ID"' in script
    assert "INSTANCE_ID=$(cat /var/lib/cloud/data/instance-id)" in script
    assert "INSTANCE_ID" not in source(packaged("k3s"), **VALUES).script(birth()).text


@pytest.mark.parametrize("value", [NASTY, "", "-rf", "$HOME", "a b", "line\nbreak"])
def test_a_quoted_value_is_one_word_to_the_shell(value: str) -> None:
    """Whatever an operator's secret is made of."""
    script = source("#!/bin/sh\nprintf %s {{ secret | shell_quote }}\n", secret=value).script(birth()).text
    told = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True, timeout=20)
    assert told.stdout == value


@pytest.mark.parametrize(
    ("template", "message", "line"),
    [
        ("#!/bin/sh\necho {{ join_token }}\n", "cannot be filled in: 'join_token' is undefined", 2),
        ("#!/bin/sh\n\n{% if x %}\n", "is no template: Unexpected end of template.", 3),
        ("#!/bin/sh\necho {{ labels.nope.more }}\n", "cannot be filled in: 'dict object' has no attribute 'nope'", 2),
        ("#!/bin/sh\n{{ 1 // 0 }}\n", "cannot be filled in: ZeroDivisionError", 2),
        ("#!/bin/sh\n{{ hostname.__class__.__mro__ }}\n", "cannot be filled in: access to attribute", 2),
        ("#!/bin/sh\n{% include '/etc/passwd' %}\n", "cannot be filled in: /etc/passwd", 2),
        ("echo\n", "does not begin with #!: begin it with a line like #!/bin/bash", 1),
        ("#!/bin/sh\n" + "x" * 80_000, "makes a script of 80010 bytes, at most 65536 are possible", None),
    ],
    ids=["missing", "broken", "attribute", "mistake", "escape", "file", "no shebang", "too large"],
)
def test_a_script_that_cannot_be_made_says_why(template: str, message: str, line: int | None) -> None:
    """F42 and the missing variable: an error before anything is bought, with the line where the mistake is."""
    with pytest.raises(ScriptError) as refusal:
        source(template).script(birth())
    assert refusal.value.message.startswith(message)
    assert refusal.value.line == line


def test_no_value_is_in_an_error_or_a_repr() -> None:
    """A filter that fails tells the value it was given, and so does a dataclass."""
    made = source("#!/bin/sh\n{{ secret | int / zero }}\n{{ secret.x() }}", secret="hunter2", zero="0")
    with pytest.raises(ScriptError) as refusal:
        made.script(birth())
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__context__ is None
    script = source("#!/bin/sh\necho {{ secret }}\n", secret="hunter2").script(birth())
    assert "hunter2" not in repr(made) + repr(script)
    assert "hunter2" in script.text


def test_the_same_text_has_the_same_digest() -> None:
    """That is how a script that does not depend on its machine is shared."""
    constant = source("#!/bin/sh\necho {{ cluster }}\n")
    other = replace(birth(), name="h100-aaaaaaaa")
    assert constant.script(birth()).digest == constant.script(other).digest
    own = source("#!/bin/sh\necho {{ hostname }}\n")
    assert own.script(birth()).digest != own.script(other).digest


CASES = {
    "plain": {},
    "mig": {"mig_profile": "all-1g.10gb"},
    "mixed": {"mig_profile": "all-balanced", "mig_strategy": MigStrategy.MIXED},
    "instance-id": {"provider_id_template": "datacrunch://{instance_id}"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [*READY_MADE, "fetch"])
def test_ready_made_scripts_are_clean(name: str, case: str, tmp_path: Path) -> None:
    """As shellcheck sees them, with nothing switched off."""
    path = tmp_path / f"{name}.sh"
    path.write_text(source(packaged(name), **VALUES).script(birth(**CASES[case])).text, "utf-8")
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None
    told = subprocess.run([shellcheck, "--norc", str(path)], capture_output=True, text=True, check=False, timeout=60)
    assert (told.returncode, told.stdout) == (0, "")


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_scripts_tell_the_kubelet_everything(name: str) -> None:
    """Provider id, labels with the GPU label, every taint; the hostname is the node's name."""
    text = source(packaged(name), **VALUES).script(birth()).text
    document = text.partition("<<'CONFIG'\n")[2].partition("\nCONFIG\n")[0]
    told = yaml.safe_load(document)
    if name == "kubeadm":
        registration = told["nodeRegistration"]
        labels = registration["kubeletExtraArgs"][0]["value"].split(",")
        taints = [f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in registration["taints"]]
        assert registration["name"] == "h100-k7m2p9qx"
        assert told["discovery"]["bootstrapToken"]["token"] == VALUES["join_token"]
    else:
        labels, taints = told["node-label"], told["node-taint"]
        assert (told["node-name"], told["token"]) == ("h100-k7m2p9qx", VALUES["join_token"])
    assert "verda.com/gpu=h100" in labels
    assert taints == ["gpu=true:NoSchedule", "node.cilium.io/agent-not-ready=true:NoExecute"]
    assert "provider-id" in text


def test_gpus_are_cut_before_the_machine_joins() -> None:
    """Seven devices of each GPU; without a profile nothing of it is there."""
    text = source(packaged("rke2"), **VALUES).script(birth(mig_profile="all-1g.10gb")).text
    assert f"--create-gpu-instance={','.join(['1g.10gb'] * 7)} --create-compute-instance" in text
    assert text.index("nvidia-smi mig") < text.index("install-rke2")
    assert "nvidia-smi" not in source(packaged("rke2"), **VALUES).script(birth()).text


def test_the_package_manager_s_lock_is_waited_for() -> None:
    """F43: unattended upgrades hold it for minutes after the first boot; eight is below the autoscaler's fifteen."""
    text = source(packaged("kubeadm"), **VALUES).script(birth()).text
    assert "apt-get -o DPkg::Lock::Timeout=480" in text
    bare = [line for line in text.splitlines() if line.lstrip().startswith("apt-get") and "Lock::Timeout" not in line]
    assert bare == []


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="wants the package manager of a Debian")
@pytest.mark.timeout(120)
def test_a_held_lock_delays_the_script_and_does_not_break_it(tmp_path: Path) -> None:
    """F43. The real apt-get, on a root of its own whose lock somebody holds: it waits, and goes on when it is free."""
    root = tmp_path / "root"
    for name in ("var/lib/dpkg", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "etc/apt"):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (tmp_path / "apt.conf").write_text(f'Dir "{root}"; Dir::State::status "{root}/var/lib/dpkg/status";', "utf-8")
    begin = render("{% include 'begin' %}", machine_variables(birth()), {})
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/bash\nhostnamectl() {{ :; }}\n{begin}apt_get install\nfinish\n", "utf-8")
    environ = {"PATH": os.environ["PATH"], "APT_CONFIG": str(tmp_path / "apt.conf")}
    with (root / "var/lib/dpkg/lock-frontend").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            ["/bin/bash", str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
        )
        assert process.stdout is not None
        waits = any(line.startswith("Waiting for cache lock: Could not get lock") for line in process.stdout)
        assert waits
        assert process.poll() is None
    told, _ = process.communicate(timeout=100)
    assert process.returncode == 0, told
    assert told.splitlines()[-1] == "startup script: this machine has joined the cluster"


def test_a_script_that_fails_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    """F43: what the console shows last is what went wrong, and the exit status is the command's."""
    begin = render("{% include 'begin' %}", machine_variables(birth()), {})
    script = tmp_path / "script.sh"
    fake = "hostnamectl() { :; }\n"
    script.write_text(f"#!/bin/bash\n{fake}{begin}false\nfinish\n", "utf-8")
    told = subprocess.run(["/bin/bash", str(script)], capture_output=True, text=True, check=False, timeout=20)
    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].startswith("startup script: failed in line ")
    script.write_text(f"#!/bin/bash\n{fake}{begin}finish\n", "utf-8")
    told = subprocess.run(["/bin/bash", str(script)], capture_output=True, text=True, check=True, timeout=20)
    assert told.stdout.splitlines()[-1] == "startup script: this machine has joined the cluster"


def test_json_is_one_line_and_keeps_every_character() -> None:
    """JSON is YAML, so values of any kind stand in configuration files."""
    assert json.loads(render("{{ value | to_json }}", {}, {"value": NASTY})) == NASTY
