"""Names and marks, parsed and formatted in one place: instance names, provider ids, ownership marks."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

OWN_PREFIX: Final = "webhook:"
"""What ids of our own machines begin with: `webhook:<group>/<machine>@<instance>`, new with each time one is on."""

_OUR_SCHEMES = frozenset({"verda", "datacrunch", "verdacloud"})
_MAX_PROVIDER_ID = 512
_SUFFIX = re.compile(r"[a-z0-9]{8}")
_LABEL = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
_KEYS = ("hostname", "instance_id")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_MARK_PREFIX = "ca:v1"
_MARK_VALUE = re.compile(r"[A-Za-z0-9._-]+")


def is_own(instance_id: str) -> bool:
    """Whether it is a machine of our own and not a rented one, whatever its group says by now."""
    return instance_id.startswith(OWN_PREFIX)


def instance_name(node_group: str, suffix: str) -> str:
    """`<group>-<suffix>`: instance name, hostname and node name in one."""
    return f"{node_group}-{suffix}"


def is_instance_name(hostname: str, node_group: str) -> bool:
    """Whether it is a name that an instance of that group may have."""
    group, _, suffix = hostname.rpartition("-")
    return group == node_group and bool(_LABEL.fullmatch(group)) and bool(_SUFFIX.fullmatch(suffix))


@dataclass(frozen=True, slots=True)
class ProviderIdTemplate:
    """How provider ids are spelled, for example `verda://{hostname}`.

    Placeholders: `{hostname}`, `{group}`, `{location}`, `{instance_id}`. The first two are known before the machine
    exists; with the others the id is provisional until the cloud has answered.
    """

    text: str

    def provider_id(self, *, name: str, group: str, location: str | None = None, instance_id: str | None = None) -> str:
        """The provider id, or `verda://pending/<name>` while a placeholder is still unknown."""
        known = {"hostname": name, "group": group, "location": location, "instance_id": instance_id}
        wanted = _PLACEHOLDER.findall(self.text)
        if any(known.get(placeholder) is None for placeholder in wanted):
            return f"verda://pending/{name}"
        return _PLACEHOLDER.sub(lambda found: str(known[found.group(1)]), self.text)

    def key(self, provider_id: str) -> str | None:
        """The instance name or id inside a provider id of this form, lower case; None if it has another form.

        Neither case nor the number of slashes after the scheme matters, for kubelets differ in both.
        """
        if len(provider_id) > _MAX_PROVIDER_ID:
            return None
        found = _form(self.text).fullmatch(provider_id.lower())
        if found is None:
            return None
        parts = found.groupdict()
        return next((parts[name] for name in _KEYS if name in parts), None)


@lru_cache
def _form(template: str) -> re.Pattern[str]:
    """What provider ids of a template look like."""
    seen: set[str] = set()

    def part(placeholder: str) -> str:
        if placeholder in seen:
            return f"(?P={placeholder})"
        seen.add(placeholder)
        return f"(?P<{placeholder}>{'[a-z0-9-]' if placeholder in _KEYS else '[^/]'}+)"

    scheme, _, rest = template.lower().partition("://")
    pieces = _PLACEHOLDER.split(rest)
    pattern = "".join(part(piece) if number % 2 else re.escape(piece) for number, piece in enumerate(pieces))
    return re.compile(f"{re.escape(scheme)}:/{{2,}}{pattern}")


def node_key(provider_id: str, node_name: str) -> str | None:
    """What a Kubernetes node claims to be: an instance name or an instance id, lower case; None if it cannot be ours.

    The provider id decides; the node's name counts only where the kubelet registered without one. Cluster Autoscaler's
    stand-ins for machines that never registered carry the provider id as their name too.
    """
    if len(provider_id) > _MAX_PROVIDER_ID or len(node_name) > _MAX_PROVIDER_ID:
        return None
    scheme, separator, rest = provider_id.partition("://")
    if not separator:
        return (provider_id or _bare(node_name)).lower() or None
    if scheme.lower() not in _OUR_SCHEMES:
        return None
    last = rest.rpartition("/")[2]
    return (last or _bare(node_name)).lower() or None


def own_instance_id(node_group: str, machine: str, instance: str) -> str:
    """The instance id of a machine of our own, `webhook:<group>/<machine>@<instance>`: new with each time it is on."""
    return f"{OWN_PREFIX}{node_group}/{machine}@{instance}"


def place_of(instance_id: str) -> tuple[str, str]:
    """Group and machine in the instance id of a machine of our own; nowhere for any other."""
    if not instance_id.startswith(OWN_PREFIX):
        return "", ""
    group, _, rest = instance_id.removeprefix(OWN_PREFIX).partition("/")
    return group, rest.rpartition("@")[0]


def own_machine(provider_id: str) -> tuple[str, str] | None:
    """Group and machine in the provider id of a machine of our own, `webhook://<group>/<machine>`, lower case."""
    scheme, _, rest = provider_id.lower().partition("://")
    if scheme != "webhook" or len(provider_id) > _MAX_PROVIDER_ID:
        return None
    node_group, _, machine = rest.strip("/").partition("/")
    return node_group, machine


def _bare(node_name: str) -> str:
    return node_name.rpartition("/")[2] if "://" in node_name else node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The ownership mark in a machine's description: `ca:v1 cluster=<name> installation=<id> group=<group>`."""

    cluster: str
    installation: str
    group: str

    def text(self, request: str | None = None) -> str:
        """As written into the description, with the correlation id of the request that wants the machine."""
        mark = f"{_MARK_PREFIX} cluster={self.cluster} installation={self.installation} group={self.group}"
        return mark if request is None or not _MARK_VALUE.fullmatch(request) else f"{mark} request={request}"

    def tags(self) -> tuple[tuple[str, str], ...]:
        """The same as key/value tags of the API."""
        return (("ca-cluster", self.cluster), ("ca-installation", self.installation), ("ca-group", self.group))

    @classmethod
    def parse(cls, description: str) -> "Mark | None":
        """The mark in a description, None if there is none or it is not exactly one of ours."""
        return _parsed(description) if _MARK_PREFIX in description else None


@lru_cache(maxsize=16_384)  # every listing shows the same descriptions again, and each look at it asks several times
def _parsed(description: str) -> Mark | None:
    words = description.split()
    if not words or words[0] != _MARK_PREFIX:
        return None
    pairs = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    cluster, installation, group = (pairs.get(key, "") for key in ("cluster", "installation", "group"))
    if not all(_MARK_VALUE.fullmatch(value) for value in (cluster, installation, group)):
        return None
    return Mark(cluster=cluster, installation=installation, group=group)
