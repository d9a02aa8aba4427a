"""Kubernetes' own rules about labels: which a kubelet may not give itself."""

from typing import Final

# What a kubelet may set on itself inside the reserved domains, from Kubernetes' NodeRestriction admission plugin.
_KUBELET_MAY_SET: Final = frozenset({
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
})  # fmt: skip
_KUBELET_MAY_SET_BELOW: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")


def is_reserved_label(key: str) -> bool:
    """True for labels that a kubelet is not allowed to give itself: with one in `--node-labels` it does not start."""
    domain, slash, _ = key.partition("/")
    if not slash or key in _KUBELET_MAY_SET or _within(domain, _KUBELET_MAY_SET_BELOW):
        return False
    return _within(domain, _RESERVED_DOMAINS)


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)
