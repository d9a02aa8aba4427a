"""The kustomizations: valid in every Kubernetes that is supported, and saying what they must."""

import copy
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from app.config.load import load

from . import foreign
from .rendered import DEPLOY, KUBERNETES, KUSTOMIZATIONS, PRODUCTION, TRIAL, Manifest, kustomization, one

EXAMPLES = sorted((DEPLOY / "examples").glob("*.yaml"))


def pod_specs(manifests: list[Manifest]) -> list[Manifest]:
    """Every pod template's spec."""
    return [m["spec"]["template"]["spec"] for m in manifests if "template" in m.get("spec", {})]


@pytest.mark.parametrize("version", KUBERNETES)
def test_every_object_is_valid_strictly(version: str) -> None:
    """Unknown keys count: a misspelt one would be dropped by the API server without a word."""
    manifests = [*kustomization(PRODUCTION), one(kustomization(TRIAL), "StatefulSet")]  # the base is in production
    for manifest in manifests:
        if manifest["kind"] not in foreign.KINDS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_kinds_of_operators_are_valid_strictly() -> None:
    """Those of cert-manager and of the Prometheus operator, by what we use of them; and every kind is there."""
    checked = [manifest for manifest in kustomization(PRODUCTION) if manifest["kind"] in foreign.KINDS]
    assert {manifest["kind"] for manifest in checked} == set(foreign.KINDS)
    for manifest in checked:
        foreign.check(manifest)


@pytest.mark.parametrize(
    ("key", "value"), [("dnsName", ["a"]), ("usages", ["server-auth"]), ("duration", "90d"), ("issuerRef", {})]
)
def test_a_mistake_in_a_certificate_would_be_noticed(key: str, value: object) -> None:
    """The check above can fail."""
    broken = copy.deepcopy(one(kustomization(PRODUCTION), "Certificate", "verda-cloud-provider-tls"))
    broken["spec"][key] = value
    with pytest.raises(jsonschema.ValidationError):
        foreign.check(broken)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid_strictly(path: Path) -> None:
    """In every version."""
    assert len(EXAMPLES) == 3
    for version in KUBERNETES:
        kubernetes_validate.validate(yaml.safe_load(path.read_text()), version, strict=True)


def test_a_misspelt_key_would_be_noticed() -> None:
    """The checks above can fail."""
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"porst": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.34", strict=True)


def test_one_writer_on_a_volume_of_its_own() -> None:
    """One replica, a volume that one pod may mount, and a claim that outlives the installation."""
    spec = one(kustomization("base"), "StatefulSet")["spec"]
    assert spec["replicas"] == 1
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_pods_have_no_power_over_their_node(name: str) -> None:
    """What Pod Security calls restricted, and a root file system that nobody writes."""
    pods = pod_specs(list(kustomization(name)))
    assert len(pods) == (1 if name == "base" else 2)
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] >= 10_000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            mounts = container["volumeMounts"]
            assert all("subPath" not in mount for mount in mounts)
            assert {m["mountPath"] for m in mounts if not m.get("readOnly")} <= {"/data", "/tmp"}


def test_only_the_autoscaler_can_order_machines() -> None:
    """And only Prometheus' namespace sees the pages. The peers are theirs, not narrowed to our own labels."""
    spec = one(kustomization(PRODUCTION), "NetworkPolicy")["spec"]
    grpc, http = spec["ingress"]
    assert grpc["ports"] == [{"port": "grpc", "protocol": "TCP"}]
    assert grpc["from"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "cluster-autoscaler"}}}]
    assert http["ports"] == [{"port": "http", "protocol": "TCP"}]
    assert http["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    dns, api = spec["egress"]
    assert dns["to"][0]["podSelector"] == {"matchLabels": {"k8s-app": "kube-dns"}}
    assert api == {"ports": [{"port": 443, "protocol": "TCP"}]}
    labels = one(kustomization(PRODUCTION), "Deployment", "cluster-autoscaler")["spec"]["template"]["metadata"][
        "labels"
    ]
    assert labels["app.kubernetes.io/name"] == "cluster-autoscaler"


def test_selectors_select_their_pods() -> None:
    """Service, disruption budget, network policy and monitor mean the provider and not the autoscaler."""
    manifests = kustomization(PRODUCTION)
    pod = one(manifests, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    other = one(manifests, "Deployment", "cluster-autoscaler")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        one(manifests, "Service")["spec"]["selector"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        one(manifests, "ServiceMonitor")["spec"]["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= pod.items()
        assert not selector.items() <= other.items()


def test_provider_has_no_rights_in_the_cluster() -> None:
    """Its account is bound to nothing and its token is not mounted."""
    manifests = kustomization(PRODUCTION)
    assert one(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert one(manifests, "StatefulSet")["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    bound = [s["name"] for m in manifests if m["kind"].endswith("RoleBinding") for s in m["subjects"]]
    assert bound == ["cluster-autoscaler", "cluster-autoscaler"]


def test_autoscaler_can_list_what_it_waits_for_and_read_no_secret() -> None:
    """A kind that it may not list keeps it waiting at its start for ever; wildcards are no answer."""
    role = one(kustomization(PRODUCTION), "ClusterRole", "cluster-autoscaler")
    listed: set[str] = set()
    for rule in role["rules"]:
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        assert "secrets" not in rule["resources"]
        if {"list", "watch"} <= set(rule["verbs"]):
            listed |= set(rule["resources"])
    # The informers of its main loop; the last three from 1.35 on, csidrivers and volumeattachments in some releases.
    assert listed >= {
        *("nodes", "pods", "namespaces", "services", "replicationcontrollers", "persistentvolumeclaims"),
        *("persistentvolumes", "replicasets", "statefulsets", "daemonsets", "jobs", "poddisruptionbudgets"),
        *("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        *("resourceclaims", "resourceslices", "deviceclasses"),
    }


def test_autoscaler_and_provider_trust_each_other() -> None:
    """The mounted secrets are those that cert-manager writes, of one authority, for the name that is dialled."""
    manifests = kustomization(PRODUCTION)
    cloud = yaml.safe_load(one(manifests, "ConfigMap", "cluster-autoscaler-cloud-config")["data"]["cloud.yaml"])
    host, _, port = cloud["address"].rpartition(":")
    server = one(manifests, "Certificate", "verda-cloud-provider-tls")["spec"]
    client = one(manifests, "Certificate", "cluster-autoscaler-client-tls")["spec"]
    assert host in server["dnsNames"]
    assert [p["port"] for p in one(manifests, "Service")["spec"]["ports"] if p["name"] == "grpc"] == [int(port)]
    assert (server["usages"], client["usages"]) == (["server auth"], ["client auth"])
    assert server["issuerRef"] == client["issuerRef"] == {"name": "verda-cloud-provider-authority", "kind": "Issuer"}
    assert mounted(one(manifests, "StatefulSet"), "/tls") == server["secretName"]
    autoscaler = one(manifests, "Deployment", "cluster-autoscaler")
    assert mounted(autoscaler, "/tls") == client["secretName"]
    assert (cloud["cert"], cloud["key"], cloud["cacert"]) == ("/tls/tls.crt", "/tls/tls.key", "/tls/ca.crt")
    flags = autoscaler["spec"]["template"]["spec"]["containers"][0]["command"]
    assert "--cloud-provider=externalgrpc" in flags
    assert "--cloud-config=/config/cloud.yaml" in flags


def mounted(workload: Manifest, where: str) -> Any:
    """The name of the Secret that is mounted there."""
    pod = workload["spec"]["template"]["spec"]
    (name,) = [m["name"] for m in pod["containers"][0]["volumeMounts"] if m["mountPath"] == where]
    return next(volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == name)


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_configuration_in_the_manifests_loads(name: str, tmp_path: Path) -> None:
    """With the files where they are mounted. Who reaches the pages is the network policy's business."""
    (tmp_path / "client_secret").write_text("not-a-real-secret\n")
    text = one(kustomization(name), "ConfigMap")["data"]["config.yaml"]
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("/credentials", str(tmp_path)))
    loaded = load(path, environ={} if name == TRIAL else {"VERDA_CLIENT_ID": "id"}, dotenv=None)
    assert [warning.path for warning in loaded.warnings] == ["http.listen"]
    assert loaded.config.listen.port == 8086
    assert loaded.config.http.listen.port == 8087
    assert loaded.config.tls is not None
    assert str(loaded.config.tls.client_ca) == "/tls/ca.crt"
    assert str(loaded.config.database) == "/data/provider.db"
    assert loaded.config.verda.missing_credentials() == (("client_id", "client_secret") if name == TRIAL else ())


def test_trial_needs_no_account() -> None:
    """It talks to its own simulator and mounts no credentials."""
    pod = one(kustomization(TRIAL), "StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["--config=/config/config.yaml", "--with-simulator=127.0.0.1:8090"]
    assert "env" not in container
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp", "config", "tls", "join"]
