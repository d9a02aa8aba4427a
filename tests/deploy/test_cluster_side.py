"""The rights of the optional cluster side: one role per feature, each exactly what the adapter asks for."""

from typing import Any

import kubernetes_validate
import pytest
import yaml

from .rendered import KUSTOMIZE

COMPONENT = KUSTOMIZE / "components" / "cluster-side"
VERBS = {
    "read-nodes": ["get", "list", "watch"],
    "remove-nodes": ["delete"],
    "change-nodes": ["patch"],
    "write-events": ["create"],
}
"""By feature; on nodes, but for events. The scripted API server of tests/kube counts the same verbs."""


def documents(name: str) -> list[Any]:
    """What a file of the component holds."""
    return list(yaml.safe_load_all((COMPONENT / f"{name}.yaml").read_text()))


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


def test_without_it_the_provider_has_no_rights() -> None:
    """Zero rights are the default, and complete."""
    base = "\n".join(path.read_text() for path in (KUSTOMIZE / "base").glob("*.yaml"))
    assert "ClusterRole" not in base
    assert "automountServiceAccountToken: true" not in base
