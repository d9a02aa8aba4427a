"""`defaults` into every group, and the older names of things into today's."""

from app.config import shape
from app.config.draft import Draft, Path, Value
from app.config.groups import GROUP_MODELS, STARTUP_SCRIPTS, kind_of
from app.config.values import Refused, number

_SAME_THING: tuple[tuple[str, ...], ...] = (
    ("location", "locations"),
    ("contract", "instance_option"),
    ("disk_size_gb", "os_volume"),
    STARTUP_SCRIPTS,
)
"""Keys that say one thing: a group that has one of them takes none of them from `defaults`."""

_UNUSED_RESOURCES = ("gpu_model", "gpu_memory_gb")


def groups(draft: Draft) -> dict[str, dict[str, Value]]:
    """The node groups that are mappings, by name."""
    found = draft.data.get(shape.GROUPS)
    if not isinstance(found, dict):
        return {}
    return {name: group for name, group in found.items() if isinstance(group, dict)}


def older_forms(draft: Draft) -> None:
    """Give the sizes and taints of the older Python provider their places in today's keys."""
    for name, group in groups(draft).items():
        _older_resources(draft, group, (shape.GROUPS, name))
    defaults = draft.data.get(shape.DEFAULTS)
    if isinstance(defaults, dict):
        _older_resources(draft, defaults, (shape.DEFAULTS,))


def _older_resources(draft: Draft, group: dict[str, Value], path: Path) -> None:
    _older_taints(draft, group, path)
    override = group.pop("override_resources", None)
    if override is not None and group.get("resources") is not None:
        draft.refuse((*path, "override_resources"), "resources and override_resources are both given: keep resources")
    elif override is not None:
        group["resources"] = override
        draft.moved[*path, "resources"] = (*path, "override_resources")
    resources = group.get("resources")
    if not isinstance(resources, dict):
        return
    inside = (*path, "resources")
    memory = resources.pop("memory_gb", None)
    if memory is not None:
        _move_memory(draft, resources, memory, inside)
    gpus = resources.pop("gpu_count", None)
    if gpus is not None:
        _move_gpus(draft, group, gpus, path)
    for key in _UNUSED_RESOURCES:
        if key in resources:
            del resources[key]
            draft.warn((*inside, key), "is not used: Verda's catalogue describes the GPUs")


def _older_taints(draft: Draft, group: dict[str, Value], path: Path) -> None:
    """`key: "value:Effect"` as `key=value:Effect`."""
    taints = group.get("taints")
    if not isinstance(taints, dict):
        return
    group["taints"] = [f"{key}={value}" if isinstance(value, str) else value for key, value in taints.items()]
    for index, key in enumerate(taints):
        draft.moved[*path, "taints", index] = (*path, "taints", key)


def _move_memory(draft: Draft, resources: dict[str, Value], memory: Value, inside: Path) -> None:
    older = (*inside, "memory_gb")
    if resources.get("memory") is not None:
        draft.refuse(older, "memory and memory_gb are both given: keep memory")
        return
    try:
        gigabytes = number(memory)
    except Refused:
        draft.refuse(older, "must be a number of gigabytes: better write memory with its unit, like 16G")
        return
    # Decimal gigabytes: a machine sold as 16 GB shows its kubelet about 16 * 10^9 bytes, not 16 Gi.
    resources["memory"] = f"{gigabytes}G"
    draft.moved[*inside, "memory"] = older
    draft.warn(older, f"is read as memory: {gigabytes}G")


def _move_gpus(draft: Draft, group: dict[str, Value], gpus: Value, path: Path) -> None:
    older = (*path, "resources", "gpu_count")
    today = group.get("override_num_gpus")
    if today is None:
        group["override_num_gpus"] = gpus
        draft.moved[*path, "override_num_gpus"] = older
    elif today != gpus:
        draft.refuse(older, "differs from override_num_gpus: remove gpu_count, the older key")


def defaults(draft: Draft) -> dict[str, Value] | None:
    """Merge `defaults` into every group and take them out of the draft; a group's own keys win as a whole."""
    shared = draft.data.pop(shape.DEFAULTS, None)
    if shared is None:
        return None
    if not isinstance(shared, dict):
        draft.refuse((shape.DEFAULTS,), "must be a mapping: keys of a node group with their values")
        return None
    for name, group in groups(draft).items():
        _keep_policy(draft, group, shared, name)
        taken, known = _taken(group), GROUP_MODELS[kind_of(group)].model_fields
        for key, value in shared.items():
            if key in known and key not in taken:
                group[key] = value
                draft.moved[shape.GROUPS, name, key] = (shape.DEFAULTS, key)
    return shared


def _keep_policy(draft: Draft, group: dict[str, Value], shared: dict[str, Value], name: str) -> None:
    """An own `disk_size_gb` is another size and nothing else: what becomes of the disk is still as for all."""
    volume = shared.get("os_volume")
    own = kind_of(group) == "verda" and "disk_size_gb" in group and "os_volume" not in group
    if own and isinstance(volume, dict):
        group["os_volume"] = {key: value for key, value in volume.items() if key != "size_gb"}
        draft.moved[shape.GROUPS, name, "os_volume"] = (shape.DEFAULTS, "os_volume")


def _taken(group: dict[str, Value]) -> set[str]:
    taken = set(group)
    for alike in _SAME_THING:
        if taken & set(alike):
            taken |= set(alike)
    return taken
