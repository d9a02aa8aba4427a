"""The rights of the optional cluster side: one role per feature, each exactly what the adapter asks for."""

from typing import Any

import kubernetes_validate
import pytest
import yaml

from .rendered import KUSTOMIZE

COMPONENTS = KUSTOMIZE / "components"
COMPONENT = COMPONENTS / "cluster-side"
VERBS = {
    "read-nodes": ["get", "list", "watch"],
    "remove-nodes": ["delete"],
    "change-nodes": ["patch"],
    "write-events": ["create"],
}
"""By feature; on nodes, but for events. The scripted API server of tests/kube counts the same verbs."""


def documents(name: str, component: str = "cluster-side") -> list[Any]:
    """What a file of the component holds."""
    return list(yaml.safe_load_all((COMPONENTS / component / f"{name}.yaml").read_text()))


def test_every_feature_has_its_file_and_no_file_is_left_out() -> None:
    """What lies there and is not named would never be applied."""
    (component,) = documents("kustomization")
    assert component["resources"] == [f"{name}.yaml" for name in VERBS]
    assert {path.stem for path in COMPONENT.glob("*.yaml")} == {*VERBS, "kustomization"}


@pytest.mark.parametrize("name", VERBS)
def test_a_role_grants_its_verbs_and_nothing_else(name: str) -> None:
    """No wildcards, no other resource, bound to the provider's account alone."""
    role, binding = documents(name)
    resource = "events" if name == "write-events" else "nodes"
    assert role["rules"] == [{"apiGroups": [""], "resources": [resource], "verbs": VERBS[name]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == f"verda-cloud-provider-{name}"
    account = {"kind": "ServiceAccount", "name": "verda-cloud-provider", "namespace": "kube-system"}
    assert binding["subjects"] == [account]
    for version in ("1.28", "1.37"):
        kubernetes_validate.validate(role, version, strict=True)
        kubernetes_validate.validate(binding, version, strict=True)


def test_what_is_off_by_default_has_a_component_of_its_own() -> None:
    """Whoever applies cluster-side does not grant it."""
    (component,) = documents("kustomization", "prepare-nodes")
    assert component["resources"] == ["prepare-nodes.yaml"]
    role, binding = documents("prepare-nodes", "prepare-nodes")
    assert role["kind"] == "ClusterRole"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "verda-cloud-provider-prepare-nodes"
    assert binding["subjects"] == documents("read-nodes")[1]["subjects"]
    for document in (role, binding):
        kubernetes_validate.validate(document, "1.37", strict=True)


def test_join_tokens_are_made_in_one_namespace_and_read_nowhere() -> None:
    """Whoever could list the Secrets of kube-system would own the cluster; so nothing here can."""
    (component,) = documents("kustomization", "join-tokens")
    assert component["resources"] == ["join-tokens.yaml"]
    role, binding = documents("join-tokens", "join-tokens")
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "kube-system")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "delete"]}]
    assert (binding["kind"], binding["metadata"]["namespace"]) == ("RoleBinding", "kube-system")
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "verda-cloud-provider-join-tokens"
    assert binding["subjects"] == documents("read-nodes")[1]["subjects"]
    for document in (role, binding):
        kubernetes_validate.validate(document, "1.37", strict=True)


def test_without_it_the_provider_has_no_rights() -> None:
    """Zero rights are the default, and complete."""
    base = "\n".join(path.read_text() for path in (KUSTOMIZE / "base").glob("*.yaml"))
    assert "ClusterRole" not in base
    assert "automountServiceAccountToken: true" not in base
