"""From another tool's configuration to a file of ours, with a report of what became of each setting."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath

import yaml

from app.config import datacrunch, environment, shape, source, webhooks
from app.config.assemble import NO_OVERRIDES, LoadedConfig, complete
from app.config.draft import Draft, Path, Value, path_text
from app.config.environment import Environment
from app.config.mapping import Step
from app.config.specs import to_specs
from app.config.written import as_file, as_meant

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

    def __init__(self, loaded: LoadedConfig, draft: Draft, variables: Environment, steps: Sequence[Step]) -> None:
        self.loaded = loaded
        self.steps = tuple(steps)
        self.text = yaml.safe_dump(as_file(loaded.config, draft, variables), sort_keys=False, allow_unicode=True)
        written = source.parse(self.text, "the converted configuration")
        environment.substitute(written, variables)
        again = complete(written, variables, NO_OVERRIDES, "")
        assert to_specs(again.config) == to_specs(loaded.config), "a conversion must not change a node group"  # noqa: S101
        assert as_meant(again.config) == as_meant(loaded.config), "a conversion must not change a value"  # noqa: S101


def from_datacrunch(nodes: Sequence[str], config: FilePath | None, environ: Mapping[str, str]) -> Converted:
    """The in-tree provider's flags and variables.

    Raises:
        ConfigurationError: they are wrong.
    """
    draft, variables, sha256, steps = datacrunch.read(nodes, config, environ=environ)
    loaded = complete(draft, variables, NO_OVERRIDES, sha256)
    template = Step(source="(its provider ids)", target="provider_id_template", note=datacrunch.PROVIDER_ID)
    return Converted(loaded, draft, variables, (*steps, template))


def from_file(path: FilePath, environ: Mapping[str, str]) -> Converted:
    """The Python provider's file, or one of ours.

    Raises:
        ConfigurationError: it is wrong.
    """
    draft, sha256 = source.read(path)
    written = tuple(_leaves(draft))
    helm = _helm_values(draft)
    if helm:
        nothing = Environment(values={}, places={})
        return Converted(complete(draft, nothing, NO_OVERRIDES, sha256), draft, nothing, helm)
    variables = environment.gather(environ, path.parent / ".env", draft)
    environment.substitute(draft, variables)
    loaded = complete(draft, variables, NO_OVERRIDES, sha256)
    return Converted(loaded, draft, variables, [_step(place) for place in written])


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


def report(steps: Iterable[Step]) -> Iterator[str]:
    """One line a setting: first what is kept, then what is lost."""
    kept = [str(step) for step in steps if step.target is not None]
    lost = [str(step) for step in steps if step.target is None]
    yield from kept
    yield from lost
