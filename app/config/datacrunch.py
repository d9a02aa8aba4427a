"""The configuration of the in-tree provider for DataCrunch: `--nodes` flags, and JSON from its variables."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from app.config import environment, jsontext, shape, source, suggest
from app.config.assemble import COMMAND_LINE, NO_OVERRIDES, LoadedConfig, Overrides, complete
from app.config.draft import Draft, Path, Place, Value, path_text
from app.config.environment import Environment
from app.config.mapping import Step
from app.config.scripts import decoded
from app.config.source import Unreadable, read_bytes
from app.config.values import Refused
from app.domain.nodegroup.spec import GROUP_NAME
from app.errors import Problem

PROVIDER_ID = "datacrunch://{instance_id}"
"""What that provider's nodes carry, so that running ones stay matched."""

JSON_TEXT = "DATACRUNCH_CLUSTER_CONFIG_JSON"
JSON_BASE64 = "DATACRUNCH_CLUSTER_CONFIG"
JSON_FILE = "DATACRUNCH_CLUSTER_CONFIG_FILE"
SCRIPT_URL = "DATACRUNCH_STARTUP_SCRIPT_FETCH_URL"

_ROOT = "node_configs"
_LARGEST = 1024 * 1024
_LOCATION = re.compile(r"[A-Z]{2,4}-?[0-9]{1,3}")
_FORM = "min:max:instance-type:region:group"
_SAME = ("ssh_key_ids", "instance_option", "disk_size_gb", "override_num_gpus", "labels", "taints")
_RENAMED: Mapping[str, str] = {"image_type": "image", "startup_script_base64": "startup_script_base64"}
_KNOWN = (*_SAME, *_RENAMED, "pricing_option")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesFlag:
    """One `--nodes`: limits, type, place and group as written."""

    min_size: str
    max_size: str
    instance_type: str
    location: str | None
    group: str


def load(
    nodes: Sequence[str],
    config: FilePath | None,
    *,
    environ: Mapping[str, str],
    overrides: Overrides = NO_OVERRIDES,
) -> LoadedConfig:
    """Node groups from flags and variables; everything else from a file, if there is one.

    Raises:
        ConfigurationError: every problem at once, each where it was written.
    """
    draft, variables, sha256, _ = read(nodes, config, environ=environ)
    return complete(draft, variables, overrides, sha256)


def read(
    nodes: Sequence[str], config: FilePath | None, *, environ: Mapping[str, str]
) -> tuple[Draft, Environment, str, tuple[Step, ...]]:
    """The draft, its environment, the SHA-256 of everything read, and what became of each setting.

    Raises:
        ConfigurationError: the file is no YAML mapping.
    """
    draft, sha256 = (Draft(source=COMMAND_LINE, data={}), "") if config is None else source.read(config)
    directory = FilePath() if config is None else config.parent
    variables = environment.gather(environ, directory / ".env", draft)
    environment.substitute(draft, variables)
    if draft.data.get(shape.GROUPS):
        draft.refuse((shape.GROUPS,), "stand in the file and in --nodes: keep one of them")
        draft.data.pop(shape.GROUPS)
    text, configs = _configs(draft, variables)
    steps = tuple(_groups(draft, nodes, configs, variables))
    if draft.data.get("provider_id_template") is None:
        draft.data["provider_id_template"] = PROVIDER_ID
    whole = hashlib.sha256("\0".join((sha256, *nodes, text)).encode())
    return draft, variables, whole.hexdigest(), steps


def _configs(draft: Draft, variables: Environment) -> tuple[str, dict[str, Value]]:
    """The JSON's text and its `node_configs`."""
    given = [name for name in (JSON_TEXT, JSON_BASE64, JSON_FILE) if variables.values.get(name)]
    if not given:
        return "", {}
    place = variables.place(given[0])
    if len(given) > 1:
        words = f"{' and '.join(given)} are set together: keep one of them"
        draft.problems.append(Problem(source=place.source, line=place.line, path=given[1], message=words))
        return "", {}
    written, origin = variables.values[given[0]], given[0]
    try:
        if given[0] == JSON_FILE:
            origin, text = written, read_bytes(FilePath(written), _LARGEST).decode("utf-8-sig")
        else:
            text = decoded(written).decode("utf-8-sig") if given[0] == JSON_BASE64 else written
        data = jsontext.parse(text, origin, draft)
    except UnicodeDecodeError:
        draft.problems.append(Problem(source=place.source, line=place.line, path=origin, message="is not UTF-8 text"))
    except Refused as reason:
        draft.problems.append(Problem(source=place.source, line=place.line, path=origin, message=str(reason)))
    except Unreadable as reason:
        draft.problems.append(Problem(source=origin, line=reason.line, path="", message=reason.message))
    else:
        for key in data.keys() - {_ROOT}:
            draft.blame((key,), f"is not a known key: the only one is {_ROOT}")
        configs = data.get(_ROOT)
        if isinstance(configs, dict):
            return text, configs
        draft.blame((_ROOT,), "must be an object with a node config for each group")
        return text, {}
    return "", {}


def _groups(draft: Draft, nodes: Sequence[str], configs: dict[str, Value], variables: Environment) -> Iterator[Step]:
    groups = draft.data[shape.GROUPS] = {}
    assert isinstance(groups, dict)  # noqa: S101 - narrows
    for number, text in enumerate(nodes):
        flag_path: Path = ("--nodes", number)
        draft.places[flag_path] = Place(source=COMMAND_LINE, line=None, path=f"--nodes={text}")
        try:
            flag = parse_nodes(text)
        except Refused as reason:
            draft.refuse(flag_path, str(reason))
            continue
        name = _name(draft, flag, groups, flag_path)
        if name is None:
            continue
        yield Step(source=f"--nodes={text}", target=f"node_groups.{name}", note="" if name == flag.group else "renamed")
        group = groups[name] = _from_flag(draft, flag, (shape.GROUPS, name), flag_path)
        yield from _from_config(draft, group, name, (_ROOT, flag.group), configs.get(flag.group))
        url = variables.values.get(SCRIPT_URL)
        if url and "startup_script_base64" not in group:
            group["startup_script_url"] = url
            draft.places[shape.GROUPS, name, "startup_script_url"] = variables.place(SCRIPT_URL)
            yield Step(source=SCRIPT_URL, target=f"node_groups.{name}.startup_script_url")
    used = {flag.group for flag in _readable(nodes)}
    for name in configs.keys() - used:
        draft.warn((_ROOT, name), "is not used: no --nodes names this group")
        yield Step(source=f"{_ROOT}.{name}", target=None, note="no --nodes names this group")


def _readable(nodes: Sequence[str]) -> Iterator[NodesFlag]:
    for text in nodes:
        try:
            yield parse_nodes(text)
        except Refused:
            continue


def parse_nodes(text: str) -> NodesFlag:
    """`min:max:instance-type:region:group`, or `min:max:instance-type:group:hostname-prefix` of a later provider.

    Raises:
        Refused: it is neither.
    """
    parts = text.split(":")
    if len(parts) != len(_FORM.split(":")):
        raise Refused(f"must be {_FORM}", remedy="for example 0:4:1A100.22V:FIN-01:gpu")
    low, high, instance_type, fourth, fifth = parts
    for what, part in (("min", low), ("max", high)):
        if not re.fullmatch(r"[0-9]{1,7}", part):
            raise Refused(f"must begin with two whole numbers, {what} is {part[:20]!r}", remedy=f"the form is {_FORM}")
    if not instance_type or not fourth or not fifth:
        raise Refused(f"must have no empty part: the form is {_FORM}")
    if _LOCATION.fullmatch(fourth):
        return NodesFlag(min_size=low, max_size=high, instance_type=instance_type, location=fourth, group=fifth)
    return NodesFlag(min_size=low, max_size=high, instance_type=instance_type, location=None, group=fourth)


def _name(draft: Draft, flag: NodesFlag, groups: Mapping[str, Value], flag_path: Path) -> str | None:
    """The group's name with us; theirs could have capitals and underscores."""
    if GROUP_NAME.fullmatch(flag.group):
        name = flag.group
    else:
        name = suggest.group_name(flag.group, set(groups))
        draft.warn(flag_path, f"the group is called {name} here: names are lower case, with digits and hyphens")
    if name in groups:
        draft.refuse(flag_path, f"names the group {flag.group} a second time: give each group one --nodes")
        return None
    return name


def _from_flag(draft: Draft, flag: NodesFlag, path: Path, flag_path: Path) -> dict[str, Value]:
    group: dict[str, Value] = {
        "min_size": flag.min_size,
        "max_size": flag.max_size,
        "instance_type": flag.instance_type,
    }
    if flag.location is not None:
        group["location"] = flag.location
    draft.moved[path] = flag_path
    for key in group:
        draft.moved[*path, key] = flag_path
    return group


def _from_config(draft: Draft, group: dict[str, Value], name: str, inside: Path, config: Value) -> Iterator[Step]:
    if config is None:
        return
    if not isinstance(config, dict):
        draft.refuse(inside, "must be an object")
        return
    for key, value in config.items():
        here = (*inside, key)
        if key == "pricing_option":
            yield _pricing(draft, here, value)
        elif key not in _KNOWN:
            close = suggest.nearest(key, _KNOWN)
            hint = f"did you mean {close}?" if close else f"known are {', '.join(_KNOWN)}"
            draft.refuse(here, f"is not a known key: {hint}")
        elif value is not None:
            target = _RENAMED.get(key, key)
            group[target] = _raw(value) if target == "startup_script_base64" else value
            draft.moved[shape.GROUPS, name, target] = here
            yield Step(source=path_text(here), target=f"node_groups.{name}.{target}")


def _pricing(draft: Draft, here: Path, value: Value) -> Step:
    if value == "dynamic":
        draft.warn(here, "has no effect: Verda has no dynamic prices any more, the price is fixed")
    elif value != "fixed":
        draft.refuse(here, "must be dynamic or fixed")
    return Step(source=path_text(here), target=None, note="Verda has fixed prices only")


def _raw(value: Value) -> Value:
    """Their scripts were no templates: a script with a template's marks in it stays what it is."""
    if not isinstance(value, str):
        return value
    try:
        text = decoded(value).decode("utf-8")
    except (Refused, UnicodeDecodeError):
        return value  # told where scripts are checked
    if "{{" not in text and "{%" not in text:
        return value
    quoted = text.replace("{{", "{{ '{{' }}").replace("{%", "{{ '{%' }}")
    return base64.b64encode(quoted.encode()).decode()
