"""A configuration as a file of today's form: values as values, and what the environment gave as references to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import SecretStr

from app.config import environment, shape
from app.config.draft import Draft, Path, value_at
from app.config.environment import Environment
from app.config.fields import Section
from app.config.group_parts import OsVolume
from app.config.groups import OLDER_CONTRACTS, NodeGroup
from app.config.model import Config

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


def as_file(config: Config, draft: Draft, variables: Environment) -> dict[str, Plain]:
    """What differs from the defaults, in today's keys, without credentials.

    Startup scripts and their values are shown where the older file shows them. Where it names a variable the new one
    names it too; a text whose form has changed, like `memory_gb`, has its content instead.
    """
    return _today(_Writer(draft=draft, variables=variables).section(config, ()), config)


def as_meant(config: Config) -> dict[str, Plain]:
    """The same with every variable's content in its place: to be compared, never to be written."""
    return as_file(config, Draft(source="", data={}), Environment(values={}, places={}))


def _today(data: dict[str, Plain], config: Config) -> dict[str, Plain]:
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
            _today_group(group, written)
    return data


def _today_group(group: NodeGroup, written: dict[str, Plain]) -> None:
    written.pop("pricing", None)
    if written.pop("contract", None) is not None and OLDER_CONTRACTS[str(group.contract)] != "on_demand_only":
        written["instance_option"] = OLDER_CONTRACTS[str(group.contract)]
    size = written.pop("disk_size_gb", None)
    if size is not None and size != OsVolume().size_gb:
        disk = written.setdefault("os_volume", {})
        assert isinstance(disk, dict)  # noqa: S101 - narrows
        disk["size_gb"] = size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Turns the values of a configuration back into what a file holds."""

    draft: Draft
    variables: Environment

    def section(self, section: Section, path: Path) -> dict[str, Plain]:
        """The keys of a section that differ from their defaults."""
        masked: dict[str, Plain] = section.model_dump(mode="json", exclude_defaults=True)
        written: dict[str, Plain] = {}
        for name, value in masked.items():
            here = (*path, name)
            origin = self.draft.origin(here)
            if origin[-1:] == ("env",) and name == "value":
                written["env"] = self.draft.locate(origin).written
            elif origin not in self.draft.foreign or self.draft.locate(origin).written is not None:
                written[name] = self._value(getattr(section, name), value, here)
        return written

    def _value(self, value: object, masked: Plain, path: Path) -> Plain:
        """One value; `masked` is what the model says of it, without its secrets."""
        reference = self._reference(path)
        if reference is not None:
            return reference
        if isinstance(value, Section):
            return self.section(value, path)
        if isinstance(value, Mapping) and isinstance(masked, dict):
            return {key: self._value(value[key], inner, (*path, key)) for key, inner in masked.items()}
        if isinstance(value, tuple) and isinstance(masked, list):
            pairs = enumerate(zip(value, masked, strict=True))
            return [self._value(item, inner, (*path, index)) for index, (item, inner) in pairs]
        shown = value.get_secret_value() if isinstance(value, SecretStr) else masked
        return environment.literal(shown, path) if isinstance(shown, str) else shown

    def _reference(self, path: Path) -> str | None:
        """The text with `${NAME}` that was written for a value; None if it was the value itself, or means another."""
        origin = self.draft.origin(path)
        written = self.draft.locate(origin).written
        if origin not in self.draft.foreign or written is None:
            return None
        same = environment.substituted(written, self.variables) == value_at(self.draft.data, path)
        return written if same else None
