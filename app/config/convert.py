"""From another tool's configuration to a file of ours, with a report of what became of each setting."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TypeAlias

import yaml
from pydantic import SecretStr

from app.config import datacrunch, environment, shape, source, webhooks
from app.config.assemble import NO_OVERRIDES, LoadedConfig, complete
from app.config.draft import Draft, Path, Value, path_text
from app.config.fields import Section
from app.config.groups import OLDER_CONTRACTS, NodeGroup
from app.config.mapping import Step
from app.config.model import Config
from app.config.specs import to_specs

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

_LOST: Mapping[str, str] = {
    r"kubernetes\.(endpoint|token|ca_hash)": "machines join through their startup script, see docs/startup-scripts.md",
    r"node_groups\..*\.pricing": "Verda has fixed prices only",
    r"node_groups\..*\.resources\.(gpu_model|gpu_memory_gb)": "Verda's catalogue describes the GPUs",
    r"verda\.client_(id|secret)": "credentials stay in the environment: VERDA_CLIENT_ID, VERDA_CLIENT_SECRET",
}
"""What the Python provider's file has and ours does not, and why."""

_MOVED: Mapping[str, str] = {
    r"(node_groups\..*)\.contract": r"\1.instance_option",
    r"(node_groups\..*)\.disk_size_gb": r"\1.os_volume.size_gb",
    r"(node_groups\..*)\.resources\.memory_gb": r"\1.resources.memory",
    r"(node_groups\..*)\.resources\.gpu_count": r"\1.override_num_gpus",
    r"(node_groups\..*)\.override_resources(.*)": r"\1.resources\2",
}


_HELM: Mapping[str, str] = {
    "name": "name",
    "gpuCount": "gpu_count",
    "scaleUpEndpoint": "scale_up_endpoint",
    "scaleDownEndpoint": "scale_down_endpoint",
}
_UNKNOWN = "belongs to the other tool's deployment"


class Converted:
    """A configuration of ours as YAML, the steps that led to it, and what the older one warns of."""

    def __init__(self, loaded: LoadedConfig, steps: Sequence[Step]) -> None:
        self.loaded = loaded
        self.steps = tuple(steps)
        self.text = yaml.safe_dump(_modern(loaded.config), sort_keys=False, allow_unicode=True)
        again = complete(
            source.parse(self.text, "the converted configuration"),
            environment.Environment(values={}, places={}),
            NO_OVERRIDES,
            "",
        )
        assert to_specs(again.config) == to_specs(loaded.config), "a conversion must not change a node group"  # noqa: S101


def from_datacrunch(nodes: Sequence[str], config: FilePath | None, environ: Mapping[str, str]) -> Converted:
    """The in-tree provider's flags and variables.

    Raises:
        ConfigurationError: they are wrong.
    """
    draft, variables, sha256, steps = datacrunch.read(nodes, config, environ=environ)
    loaded = complete(draft, variables, NO_OVERRIDES, sha256)
    template = Step(source="(its provider ids)", target="provider_id_template", note=datacrunch.PROVIDER_ID)
    return Converted(loaded, (*steps, template))


def from_file(path: FilePath, environ: Mapping[str, str]) -> Converted:
    """The Python provider's file, or one of ours.

    Raises:
        ConfigurationError: it is wrong.
    """
    draft, sha256 = source.read(path)
    written = tuple(_leaves(draft))
    helm = _helm_values(draft)
    if helm:
        loaded = complete(draft, environment.Environment(values={}, places={}), NO_OVERRIDES, sha256)
        return Converted(loaded, helm)
    variables = environment.gather(environ, path.parent / ".env", draft)
    environment.substitute(draft, variables)
    return Converted(complete(draft, variables, NO_OVERRIDES, sha256), [_step(place) for place in written])


def _helm_values(draft: Draft) -> tuple[Step, ...]:
    """The power controller's `nodeGroups`, each of which is one machine, as one group of ours; none if it has none."""
    listed = draft.data.get("nodeGroups")
    if not isinstance(listed, list):
        return ()
    steps: list[Step] = []
    machines: list[Value] = []
    for index, item in enumerate(listed):
        machine: dict[str, Value] = {}
        for key, value in item.items() if isinstance(item, dict) else ():
            target = _HELM.get(key)
            here: Path = ("nodeGroups", index, key)
            place = f"node_groups.{webhooks.GROUP}.machines[{index}].{target}"
            steps.append(
                Step(source=path_text(here), target=place if target else None, note="" if target else _UNKNOWN)
            )
            if target is not None:
                machine[target] = value
                draft.moved[shape.GROUPS, webhooks.GROUP, "machines", index, target] = here
        machines.append(machine)
    others = [key for key in draft.data if key != "nodeGroups"]
    steps += [Step(source=key, target=None, note=_UNKNOWN) for key in others]
    draft.data.clear()
    draft.data[shape.GROUPS] = {webhooks.GROUP: {"kind": "webhook", "machines": machines}}
    return tuple(steps)


def _leaves(draft: Draft) -> Iterator[Path]:
    """Every value that was written and holds no other."""
    paths = list(draft.places)
    inner = {path[:-1] for path in paths}
    return (path for path in paths if path not in inner)


def _step(path: Path) -> Step:
    text = path_text(path)
    for pattern, reason in _LOST.items():
        if re.fullmatch(pattern, text):
            return Step(source=text, target=None, note=reason)
    for pattern, target in _MOVED.items():
        if re.fullmatch(pattern, text):
            return Step(source=text, target=re.sub(pattern, target, text))
    return Step(source=text, target=text)


def _modern(config: Config) -> dict[str, Plain]:
    """What differs from the defaults, in today's keys, without credentials."""
    data = _plain(config)
    assert isinstance(data, dict)  # noqa: S101 - narrows
    for section, keys in (("verda", ("client_id", "client_secret")), ("kubernetes", ("endpoint", "token", "ca_hash"))):
        inner = data.get(section)
        if isinstance(inner, dict):
            for key in keys:
                inner.pop(key, None)
            if not inner:
                del data[section]
    groups = data[shape.GROUPS]
    assert isinstance(groups, dict)  # noqa: S101 - narrows
    for name, group in config.node_groups.items():
        written = groups[name]
        if isinstance(group, NodeGroup) and isinstance(written, dict):
            _modern_group(group, written)
    return data


def _modern_group(group: NodeGroup, written: dict[str, Plain]) -> None:
    written.pop("pricing", None)
    if written.pop("contract", None) is not None and OLDER_CONTRACTS[str(group.contract)] != "on_demand_only":
        written["instance_option"] = OLDER_CONTRACTS[str(group.contract)]
    size = written.pop("disk_size_gb", None)
    if size is not None:
        disk = written.setdefault("os_volume", {})
        assert isinstance(disk, dict)  # noqa: S101 - narrows
        disk["size_gb"] = size


def _plain(section: Section) -> Plain:
    """Values as a file has them. Startup scripts and their values are shown: they were in the older file too."""
    masked: dict[str, Plain] = section.model_dump(mode="json", exclude_defaults=True)
    return {name: _revealed(getattr(section, name), value) for name, value in masked.items()}


def _revealed(value: object, masked: Plain) -> Plain:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Section):
        return _plain(value)
    if isinstance(value, Mapping) and isinstance(masked, dict):
        return {key: _revealed(value[key], inner) for key, inner in masked.items()}
    return masked


def report(steps: Iterable[Step]) -> Iterator[str]:
    """One line a setting: first what is kept, then what is lost."""
    kept = [str(step) for step in steps if step.target is not None]
    lost = [str(step) for step in steps if step.target is None]
    yield from kept
    yield from lost
