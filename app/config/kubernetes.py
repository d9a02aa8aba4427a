"""Words with Kubernetes' own rules: labels, taints, quantities, resource names. Pure checks on text."""

import re
from collections.abc import Callable
from decimal import Decimal

from app.config.suggest import nearest
from app.config.values import Refused, text
from app.domain.nodegroup.spec import TaintEffect
from app.domain.quantity import parse_quantity

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_BOOTSTRAP_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_BARE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_RESERVABLE = ("cpu", "memory", "ephemeral-storage")
_NAME_RULE = "letters, digits, - _ . with a letter or digit at both ends, at most 63 characters"


def label_key(value: object) -> str:
    """`name` or `domain/name`."""
    key = text(value)
    domain, slash, name = key.rpartition("/")
    if slash and not _DNS_SUBDOMAIN.fullmatch(domain):
        raise Refused("must be a Kubernetes label key", remedy="before the / stands a lower-case DNS name")
    if not _LABEL_NAME.fullmatch(name):
        raise Refused("must be a Kubernetes label key", remedy=f"its name is {_NAME_RULE}")
    return key


def label_value(value: object) -> str:
    """Empty, or the same alphabet as a label's name. YAML's bare true, numbers and nothing at all are not text."""
    if value is None:
        raise Refused("must be text", remedy='write "" for an empty value')
    word = text(value)
    if word and not _LABEL_NAME.fullmatch(word):
        raise Refused("must be a Kubernetes label value", remedy=f"empty, or {_NAME_RULE}")
    return word


def bootstrap_group(value: object) -> str:
    """A group that a bootstrap token may put its bearer into."""
    name = text(value)
    if not _BOOTSTRAP_GROUP.fullmatch(name):
        raise Refused(
            "must be a group of bootstrap tokens",
            remedy="it begins with system:bootstrappers: and has small letters, digits, : and -",
        )
    return name


def at_least_one(groups: tuple[str, ...]) -> tuple[str, ...]:
    """A token that puts its bearer into no group lets nobody join."""
    if not groups:
        raise Refused("must not be empty", remedy="leave it out for kubeadm's own")
    return groups


def taint_parts(value: str) -> dict[str, str]:
    """Split `key=value:Effect` or `key:Effect`, judging each part."""
    form = 'write it like "gpu=true:NoSchedule" or "gpu:NoSchedule"'
    left, colon, effect = value.rpartition(":")
    if not colon:
        raise Refused("must be a taint with its effect", remedy=form)
    key, _, taint_value = left.partition("=")
    if not key:
        raise Refused("must be a taint with a key", remedy=form)
    return {
        "key": _part("key", label_key, key),
        "value": _part("value", label_value, taint_value),
        "effect": _part("effect", taint_effect, effect),
    }


def _part(name: str, check: Callable[[object], str], word: str) -> str:
    try:
        return check(word)
    except Refused as problem:
        must = f"must be a taint like key=value:Effect, and its {name} {problem.must}"
        raise Refused(must, remedy=problem.remedy) from None


def taint_effect(value: object) -> TaintEffect:
    """One of Kubernetes' three effects."""
    word = text(value)
    if word not in list(TaintEffect):
        close = nearest(word, list(TaintEffect))
        raise Refused(
            "must be NoSchedule, PreferNoSchedule or NoExecute", remedy=f"did you mean {close}?" if close else ""
        )
    return TaintEffect(word)


def quantity(value: object) -> str:
    """A Kubernetes quantity, not negative: `4`, `500m`, `128Gi`."""
    word = str(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value
    try:
        negative = parse_quantity(word) < 0 if isinstance(word, str) else True
    except ValueError:
        negative = True
    if negative:
        raise Refused("must be a Kubernetes quantity, not negative", remedy="write it like 4, 500m, 16Gi or 100G")
    return str(word)


def resource_name(value: object) -> str:
    """`cpu`, `memory`, `ephemeral-storage`, `pods` or `domain/name`."""
    name = text(value)
    if name in _BARE_RESOURCES:
        return name
    if "/" not in name:
        close = None if "gpu" in name.lower() else nearest(name, _BARE_RESOURCES)
        hint = f"did you mean {close}?" if close else f"known are {', '.join(_BARE_RESOURCES)} and domain/name"
        raise Refused("is not a resource of Kubernetes", remedy=hint)
    return label_key(name)


def reservable_name(value: object) -> str:
    """What a kubelet can set aside for the system."""
    name = text(value)
    if name not in _RESERVABLE:
        raise Refused(f"must be one of {', '.join(_RESERVABLE)}")
    return name
