"""Join tokens of clusters that keep them as Secrets, as kubeadm does: how they look, and who makes one."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Protocol

from app.startup.sources import ScriptSource
from app.startup.template import ScriptError

_BOOTSTRAP_TOKEN: Final = re.compile(r"(?:K10[0-9a-f]{64}::)?([a-z0-9]{6})\.[a-z0-9]{16}")
"""`id.secret`, as kubeadm writes it; k3s and RKE2 may put the hash of the cluster's authority before it."""


class TokenMint(Protocol):
    """Makes tokens that are good for one machine and a short time."""

    def mint(self, instance: str, ttl: timedelta) -> str:
        """A new token, which is in the cluster when this returns.

        Raises:
            ClusterError: it is not there, or nobody knows: then it is looked for and deleted.
            RuleViolation: the machine is not wanted any more.
        """
        ...


def standing_tokens(sources: Mapping[str, ScriptSource]) -> Mapping[str, tuple[str, ...]]:
    """The ids of the operator's own tokens in scripts, each with the node groups whose scripts hold it."""
    found: dict[str, tuple[str, ...]] = {}
    for node_group, source in sources.items():
        for token_id in sorted(_ids(source)):
            found[token_id] = (*found.get(token_id, ()), node_group)
    return found


def _ids(source: ScriptSource) -> set[str]:
    ids = set()
    for read in source.values.values():
        try:
            match = _BOOTSTRAP_TOKEN.fullmatch(read().strip())
        except ScriptError:
            continue  # told when the next machine is ordered
        if match is not None:
            ids.add(match[1])
    return ids
