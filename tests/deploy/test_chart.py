"""The Helm chart: the same objects as the kustomization, and values that are checked before anything is installed."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from helm_python.errors import HelmError

from app.config.load import load

from . import foreign
from .rendered import CHART, KUBERNETES, KUSTOMIZE, Manifest, chart, kustomization, one

GROUPS = {"gpu": {"instance_type": "1A100.22V", "image": "ubuntu-24.04", "location": "FIN-01", "max_size": 4}}
CONFIG: Mapping[str, Any] = {"cluster_name": "prod", "node_groups": GROUPS}
EVERYTHING: Mapping[str, Any] = {
    "config": CONFIG,
    "image": {"digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "storage": {"className": "fast", "size": "20Gi"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "podAnnotations": {"example.com/team": "ml"},
    "networkPolicy": {"monitoringNamespaces": ["monitoring", "grafana"]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "kubernetes": {"enabled": True},
}
"""Every branch of the templates but the simulator's."""

OURS = frozenset({"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"})
"""Labels that only a chart gives."""


def comparable(manifest: Manifest) -> Manifest:
    """Without what tells a release from a kustomization: some labels."""
    plain = copy.deepcopy(manifest)
    labels = plain["metadata"].get("labels", {})
    plain["metadata"]["labels"] = {key: value for key, value in labels.items() if key not in OURS}
    return plain


@pytest.mark.parametrize("kind", ["ServiceAccount", "Service", "StatefulSet", "NetworkPolicy", "PodDisruptionBudget"])
def test_chart_and_kustomization_are_equal(kind: str) -> None:
    """Two ways to install must not be two products."""
    assert comparable(one(chart({"config": CONFIG}), kind)) == comparable(one(kustomization("base"), kind))


def test_monitors_are_equal() -> None:
    """Where the chart and the monitoring component overlap."""
    ours = chart({"config": CONFIG, "serviceMonitor": {"enabled": True}})
    theirs = one(kustomization("overlays/production"), "ServiceMonitor")
    assert comparable(one(ours, "ServiceMonitor"))["spec"] == theirs["spec"]


def test_rights_of_the_cluster_side_are_equal() -> None:
    """One value switches configuration, rights, token and the way to the API server on; three take rights off."""
    ours = chart({"config": CONFIG, "kubernetes": {"enabled": True}})
    component = KUSTOMIZE / "components" / "cluster-side"
    theirs = [
        document
        for name in ("read-nodes", "remove-nodes", "change-nodes", "write-events")
        for document in yaml.safe_load_all((component / f"{name}.yaml").read_text())
    ]
    rights = [comparable(manifest) for manifest in ours if manifest["kind"].startswith("ClusterRole")]
    assert [{**right, "metadata": {"name": right["metadata"]["name"]}} for right in rights] == theirs
    assert one(ours, "StatefulSet")["spec"]["template"]["spec"]["automountServiceAccountToken"] is True
    assert {"ports": [{"port": 6443, "protocol": "TCP"}]} in one(ours, "NetworkPolicy")["spec"]["egress"]
    assert yaml.safe_load(one(ours, "ConfigMap")["data"]["config.yaml"])["kubernetes"] == {"enabled": True}
    fewer = chart(
        {
            "config": CONFIG,
            "kubernetes": {"enabled": True, "removeNodes": False, "changeNodes": False, "writeEvents": False},
        }
    )
    more = chart({"config": CONFIG, "kubernetes": {"enabled": True, "prepareNodes": True, "joinTokens": True}})
    for name in ("prepare-nodes", "join-tokens"):
        added = [comparable(manifest) for manifest in more if name in manifest["metadata"]["name"]]
        granted = yaml.safe_load_all((KUSTOMIZE / "components" / name / f"{name}.yaml").read_text())
        assert [_without_labels(right) for right in added] == list(granted)
    assert [m["metadata"]["name"] for m in fewer if m["kind"] == "ClusterRole"] == ["verda-cloud-provider-read-nodes"]
    assert not [m for m in chart({"config": CONFIG}) if m["kind"].startswith("ClusterRole")]


def _without_labels(right: Manifest) -> Manifest:
    return {**right, "metadata": {key: value for key, value in right["metadata"].items() if key != "labels"}}


def test_configurations_say_the_same(tmp_path: Path) -> None:
    """The chart's defaults are the base's file, apart from cluster and groups."""
    base = yaml.safe_load(one(kustomization("base"), "ConfigMap")["data"]["config.yaml"])
    given = {"cluster_name": base["cluster_name"], "node_groups": base["node_groups"]}
    text = one(chart({"config": given}), "ConfigMap")["data"]["config.yaml"]
    assert yaml.safe_load(text) == base
    (tmp_path / "config.yaml").write_text(text.replace("/credentials", str(tmp_path)))
    (tmp_path / "client_secret").write_text("not-a-real-secret")
    loaded = load(tmp_path / "config.yaml", environ={"VERDA_CLIENT_ID": "id"}, dotenv=None)
    assert loaded.config.verda.missing_credentials() == ()


def test_the_operators_words_win_over_the_charts() -> None:
    """A key of `config` replaces what the chart would have said, and leaves its neighbours."""
    config = {**CONFIG, "http": {"token_file": "/tls/token"}, "tls": {"allowed_clients": ["cluster-autoscaler"]}}
    loaded = yaml.safe_load(one(chart({"config": config}), "ConfigMap")["data"]["config.yaml"])
    assert loaded["http"] == {"listen": "0.0.0.0:8087", "token_file": "/tls/token"}
    assert loaded["tls"]["allowed_clients"] == ["cluster-autoscaler"]
    assert loaded["tls"]["cert"] == "/tls/tls.crt"


def test_every_branch_is_valid_strictly() -> None:
    """With everything set, and with the simulator, in every version of Kubernetes."""
    for values in (EVERYTHING, {"config": CONFIG, "simulator": {"enabled": True}}):
        for manifest in chart(values):
            if manifest["kind"] in foreign.KINDS:
                foreign.check(manifest)
                continue
            for version in KUBERNETES:
                kubernetes_validate.validate(manifest, version, strict=True)


def test_a_changed_configuration_is_followed_without_a_new_pod() -> None:
    """The process reads its file again; a restart would only make the autoscaler wait."""
    changed = {"config": {**CONFIG, "max_hourly_cost": 3}}
    assert one(chart({"config": CONFIG}), "StatefulSet") == one(chart(changed), "StatefulSet")
    assert one(chart({"config": CONFIG}), "ConfigMap") != one(chart(changed), "ConfigMap")
    assert one(kustomization("base"), "ConfigMap")["metadata"]["name"] == "verda-cloud-provider"


def test_digest_wins_over_the_tag() -> None:
    """A digest is what was tested."""
    (container,) = one(chart(EVERYTHING), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"ghcr.io/verda-cloud-provider/verda-cloud-provider@sha256:{'0' * 64}"
    assert container["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({}, "cluster_name"),
        ({"config": {**CONFIG, "node_groups": {"GPU_Nodes": {}}}}, "GPU_Nodes"),
        ({"config": CONFIG, "replicas": 2}, "replicas"),
        ({"config": CONFIG, "storage": {"size": "10"}}, "/storage/size"),
        ({"config": CONFIG, "image": {"digest": "latest"}}, "/image/digest"),
        ({"config": CONFIG, "networkPolicy": {"autoscalerLabels": {}, "enabled": "yes"}}, "/networkPolicy/enabled"),
    ],
    ids=["no-cluster-name", "group-name", "replicas", "size-without-unit", "digest", "switch"],
)
def test_wrong_values_are_refused_by_name(values: Mapping[str, Any], word: str) -> None:
    """Before anything reaches a cluster; a second replica cannot even be asked for."""
    with pytest.raises(HelmError, match=word):
        chart(values)


def test_chart_passes_helms_own_lint() -> None:
    """Its one remark is a missing icon."""
    found = helm_python.lint(CHART, {"config": dict(CONFIG)}, strict=True)
    assert [message["error"] for message in found["messages"]] == ["icon is recommended"]


def test_versions_agree() -> None:
    """Chart, kustomization and program are released together."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (container,) = one(kustomization("base"), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    project = (CHART.parents[2] / "pyproject.toml").read_text()
    assert f'\nversion = "{about["appVersion"]}"\n' in project
    assert container["image"].endswith(f":{about['appVersion']}")
