"""What the autoscaler remembers of NodeGroupNodes, across loops."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from .client import Instance, NodeGroup, Provider
from .wire import RpcFailed

REFRESH_EVERY: Final = timedelta(minutes=2)


class InstancesCache:
    """The last list of each group. A thread of its own reads all of them every two minutes, from the start."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._lists: dict[str, tuple[Instance, ...]] = {}
        self._refresh_at: datetime | None = None

    def refresh_if_due(self, now: datetime) -> None:
        """The background thread: a group whose call fails has no instances from then on."""
        if self._refresh_at is not None and now < self._refresh_at:
            return
        self._refresh_at = now + REFRESH_EVERY
        groups = self._provider.node_groups()
        self._lists = {group.id: self._lists.get(group.id, ()) for group in groups}
        for group in groups:
            try:
                self._lists[group.id] = group.instances()
            except RpcFailed:
                self._lists[group.id] = ()

    def forget(self, group: str) -> None:
        """Read the list of this group anew when it is needed next."""
        self._lists.pop(group, None)

    def lists(self, groups: Sequence[NodeGroup]) -> dict[str, tuple[Instance, ...]]:
        """The instances of every group, read where there is no list. Raises: RpcFailed."""
        for group in groups:
            if group.id not in self._lists:
                self._lists[group.id] = group.instances()
        return {group.id: self._lists[group.id] for group in groups}
