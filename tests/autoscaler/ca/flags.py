"""The autoscaler's command line, with its defaults."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What may differ from group to group. The flags give the defaults, NodeGroupGetOptions may override them."""

    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time: timedelta = timedelta(minutes=10)
    scale_down_unready_time: timedelta = timedelta(minutes=20)
    max_node_provision_time: timedelta = timedelta(minutes=15)
    max_node_startup_time: timedelta = timedelta(minutes=15)
    zero_or_max_node_scaling: bool = False
    ignore_daemon_sets_utilization: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The rest.

    `expander` is `first` (the model's own: the first group in the provider's order), `price`, or a tuple of group names
    as the priority expander would be configured. `frequent_loops` works in releases that have it.
    """

    defaults: Options = field(default_factory=Options)
    scan_interval: timedelta = timedelta(seconds=10)
    scale_down_delay_after_add: timedelta = timedelta(minutes=10)
    node_delete_delay_after_taint: timedelta = timedelta(seconds=5)
    max_scale_down_parallelism: int = 10
    initial_backoff: timedelta = timedelta(minutes=5)
    max_backoff: timedelta = timedelta(minutes=30)
    backoff_reset: timedelta = timedelta(hours=3)
    ok_total_unready_count: int = 3
    max_total_unready_percentage: float = 45
    max_nodes_total: int = 0
    enforce_node_group_min_size: bool = False
    frequent_loops: bool = True
    expander: str | tuple[str, ...] = "first"
