"""Warnings: what works and is probably not what was meant."""

from datetime import timedelta
from urllib.parse import urlsplit

from app.config import shape, values
from app.config.draft import Draft, Path
from app.config.groups import NodeGroup, WebhookGroup
from app.config.model import Config
from app.config.values import duration_text
from app.domain.labels import is_reserved_label
from app.domain.template import RESERVED_LABELS

# Cluster Autoscaler's --max-node-provision-time, if nobody changed it.
_AUTOSCALER_PATIENCE = timedelta(minutes=15)


_KNOWN_START_UP_TAINTS = "startup-taint.cluster-autoscaler.kubernetes.io/"
"""What keys begin with that every Cluster Autoscaler since 1.28 takes for start-up taints without being told."""


def advise(draft: Draft, config: Config) -> None:
    """Note every warning about a valid configuration."""
    _network(draft, config)
    _account(draft, config)
    for key in ("endpoint", "token", "ca_hash"):
        if getattr(config.kubernetes, key) is not None:
            draft.warn(("kubernetes", key), "is not used: machines join through their startup script; remove it")
    for name, group in config.node_groups.items():
        _start_up(draft, config, group, (shape.GROUPS, name))
        if isinstance(group, NodeGroup):
            _group(draft, config, group, (shape.GROUPS, name))


def _network(draft: Draft, config: Config) -> None:
    if not config.listen.is_loopback() and config.tls is None:
        draft.warn(
            ("listen",),
            f"{config.listen} takes orders from anyone who can reach it, as insecure: true says: "
            "let only the autoscaler through",
        )
    if not config.http.listen.is_loopback() and config.http.token_file is None:
        draft.warn(
            ("http", "listen"),
            f"{config.http.listen} shows machines and costs to anyone who can reach it",
        )
    base_url = urlsplit(config.verda.base_url)
    if base_url.scheme == "http" and not values.Address(base_url.hostname or "", 0).is_loopback():
        draft.warn(("verda", "base_url"), "sends the credentials unencrypted: use https://")


def _account(draft: Draft, config: Config) -> None:
    missing = config.verda.missing_credentials()
    if len(missing) == 1:
        given = "client_id" if missing[0] == "client_secret" else "client_secret"
        draft.warn(("verda", given), f"is set without {missing[0]}: Verda's API needs both")


def _group(draft: Draft, config: Config, group: NodeGroup, path: Path) -> None:
    if group.pricing == "DYNAMIC_PRICE":
        draft.warn((*path, "pricing"), "has no effect: Verda has no dynamic prices any more; remove it")
    for key in group.labels.keys() & RESERVED_LABELS:
        draft.warn((*path, "labels", key), "has no effect: this label is ours to set; remove it")
    for key in group.labels:
        if is_reserved_label(key) and not (config.kubernetes.enabled and config.kubernetes.label_nodes):
            draft.warn(
                (*path, "labels", key),
                "a kubelet may not give itself this label: set kubernetes.label_nodes, "
                "use a domain of your own, or let something else in the cluster set it",
            )
    if len(set(group.locations)) > 1:
        draft.warn(
            (*path, "locations"),
            "machines stand in different zones: if pods select a zone, make one group per location",
        )
        if "{location}" in config.provider_id_template:
            draft.warn(
                (*path, "locations"),
                "with {location} in provider_id_template an id is provisional until the location is known",
            )
    if group.autoscaling_options.force_for_new_autoscalers:
        draft.warn(
            (*path, "autoscaling_options", "force_for_new_autoscalers"),
            "Cluster Autoscaler 1.35 and later that get options from here take a node that is getting ready "
            "for a broken one, and may buy a second: prefer its flags",
        )
    _patience(draft, group, path)


def _start_up(draft: Draft, config: Config, group: NodeGroup | WebhookGroup, path: Path) -> None:
    ours = [taint.key for taint in group.startup_taints if taint.until is not None]
    if ours and not config.kubernetes.enabled:
        words = "has an until, and nobody takes the taint off while kubernetes.enabled is false"
        draft.warn((*path, "startup_taints"), words)
    for key in ours:
        if not key.startswith(_KNOWN_START_UP_TAINTS):
            draft.warn(
                (*path, "startup_taints"),
                f"the autoscaler takes a node with {key} for one that is ready, and may buy another for the same pod: "
                f"begin the key with {_KNOWN_START_UP_TAINTS}, or run it with --startup-taint={key}",
            )


def _patience(draft: Draft, group: NodeGroup, path: Path) -> None:
    patience = group.autoscaling_options.max_node_provision_time or _AUTOSCALER_PATIENCE
    told = f"Cluster Autoscaler's max-node-provision-time, {duration_text(patience)}"
    if group.create_timeout >= patience:
        draft.warn(
            (*path, "create_timeout"),
            f"is not shorter than {told}: the autoscaler gives up first and does not learn the reason",
        )
    if group.provision_timeout < patience:
        draft.warn(
            (*path, "provision_timeout"),
            f"is shorter than {told}: slow machines are given up before the autoscaler would",
        )
