"""Manifests as an API server would get them: the kustomizations by `kubectl`, the chart by Helm's own library."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import helm_python
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "verda-cloud-provider"
KUSTOMIZE = DEPLOY / "kustomize"
PRODUCTION = "overlays/production"
TRIAL = "overlays/trial"
KUBERNETES = tuple(f"1.{minor}" for minor in range(28, 38))
"""Every version that is supported, and tested with its own schemas."""
KUSTOMIZATIONS = ("base", PRODUCTION, TRIAL)

Manifest: TypeAlias = dict[str, Any]
"""One object; YAML has no narrower type."""

RELEASE = "verda-cloud-provider"
NAMESPACE = "kube-system"


def kustomization(name: str) -> Sequence[Manifest]:
    """The objects of a kustomization; skips the test where there is no `kubectl`."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl on this machine to render kustomizations with")
    return _kustomized(kubectl, name)


@cache
def _kustomized(kubectl: str, name: str) -> Sequence[Manifest]:
    done = subprocess.run(
        [kubectl, "kustomize", str(KUSTOMIZE / name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document is not None]


def chart(values: Mapping[str, Any]) -> Sequence[Manifest]:
    """The objects of the chart with these values, as a release of its own name in kube-system.

    Raises:
        helm_python.errors.HelmError: the values do not fit the schema, or a template fails.
    """
    with helm_python.Chart.load(CHART) as loaded:
        texts = loaded.render(dict(values), name=RELEASE, namespace=NAMESPACE)
    manifests = (text for path, text in sorted(texts.items()) if path.endswith(".yaml"))
    return [document for text in manifests for document in yaml.safe_load_all(text) if document is not None]


def one(manifests: Sequence[Manifest], kind: str, name: str = RELEASE) -> Manifest:
    """The object of this kind and name, a generator's hash aside; there is exactly one."""
    found = [m for m in manifests if m["kind"] == kind and _plain(m["metadata"]["name"]) == name]
    assert len(found) == 1, f"{len(found)} objects {kind}/{name}"
    return found[0]


def _plain(name: str) -> str:
    stem, _, tail = name.rpartition("-")
    return stem if len(tail) == 10 and any(character.isdigit() for character in tail) else name
