"""From pods without a place to one request for more nodes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from .client import NodeGroup
from .expanders import Choice, choose
from .objects import Node, Pod
from .registry import Registry
from .simulation import nodes_needed
from .wire import NotOffered, RpcFailed

POD_SETTLES_FOR: Final = timedelta(seconds=2)
GPU_POD_SETTLES_FOR: Final = timedelta(seconds=30)
MOST_NODES_AT_ONCE: Final = 1000


class ScaleUpResult(Enum):
    """What became of a scale-up."""

    NOT_NEEDED = "not needed"
    TOO_EARLY = "pods are new"
    NO_OPTION = "no group can help"
    SCALED = "scaled up"
    FAILED = "failed"


def are_new(pods: Sequence[Pod], now: datetime) -> bool:
    """More of them may come: all are younger than two seconds, or a GPU is wanted and the oldest such pod is young."""
    if min(pod.created_at for pod in pods) + POD_SETTLES_FOR > now:
        return True
    gpu = [pod.created_at for pod in pods if pod.wants_gpu]
    return bool(gpu) and min(gpu) + GPU_POD_SETTLES_FOR > now


class ScaleUps:
    """Raises one group a loop."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._provider = registry.provider
        self._flags = registry.flags

    def help(self, pods: Sequence[Pod], templates: Mapping[str, Node], nodes: int, now: datetime) -> ScaleUpResult:
        """Ask the best group for as many nodes as the pods need, at most up to its maximum."""
        limit = self._flags.max_nodes_total
        if limit and nodes >= limit:
            return ScaleUpResult.NO_OPTION
        choices = []
        for group in self._provider.node_groups():
            room = self._room(group, templates, now)
            count, helped = (
                nodes_needed(pods, templates[group.id], min(room, limit - nodes) if limit else room)
                if room
                else (0, [])
            )
            if count:
                whole = self._goes_whole(group)
                choices.append(
                    Choice(group=group, template=templates[group.id], count=room if whole else count, pods=helped)
                )
        if not choices:
            return ScaleUpResult.NO_OPTION
        best = choose(choices, self._flags.expander, self._provider, now)
        return self._raise(best.group, best.count, now)

    def raise_to_minimum(self, templates: Mapping[str, Node], now: datetime) -> ScaleUpResult:
        """Lift every group that is below its minimum (only with the flag that asks for it)."""
        result = ScaleUpResult.NOT_NEEDED
        for group in self._provider.node_groups():
            try:
                missing = group.min_size - group.target_size()
            except RpcFailed:
                continue
            if missing > 0 and self._room(group, templates, now):
                result = self._raise(group, missing, now)
                if result is ScaleUpResult.FAILED:
                    return result
        return result

    def _room(self, group: NodeGroup, templates: Mapping[str, Node], now: datetime) -> int:
        """How many nodes the group may get now: healthy, not resting, with a template, below its maximum."""
        is_resting = self._registry.backoff.reason(group.id, now) is not None
        if is_resting or not self._registry.is_healthy(group.id) or group.id not in templates:
            return 0
        try:
            return min(max(group.max_size - group.target_size(), 0), MOST_NODES_AT_ONCE)
        except RpcFailed:
            return 0

    def _goes_whole(self, group: NodeGroup) -> bool:
        try:
            return group.options(self._flags.defaults).zero_or_max_node_scaling
        except (RpcFailed, NotOffered):
            return False

    def _raise(self, group: NodeGroup, delta: int, now: datetime) -> ScaleUpResult:
        self._provider.gpu_types()
        try:
            group.increase_size(delta)
        except RpcFailed as error:
            self._registry.journal.note(f"FailedToScaleUpGroup {group.id} {error.code}")
            self._registry.backoff.begin(group.id, "cloudProviderError", now)
            return ScaleUpResult.FAILED
        self._registry.journal.note(f"ScaledUpGroup {group.id} {delta}")
        self._registry.register_scale_up(group, delta, now)
        self._registry.recalculate()
        return ScaleUpResult.SCALED
