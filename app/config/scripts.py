"""Startup scripts as the configuration names them: tried before anything is bought, with every value they need."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath

from pydantic import SecretStr

from app.config import shape
from app.config.draft import Draft, Path, Value
from app.config.environment import Environment
from app.config.group_parts import ScriptValue
from app.config.groups import STARTUP_SCRIPTS, NodeGroup
from app.config.merge import groups
from app.config.model import Config
from app.config.source import Unreadable, read_bytes
from app.config.specs import to_specs
from app.config.values import Refused, duration_text
from app.startup.sources import ReadValue, ScriptSource
from app.startup.template import ScriptError, packaged
from app.startup.variables import sample_birth

LARGE = 16 * 1024
"""Bytes: the usual limit of cloud-init's user data."""

_LARGEST_FILE = 1024 * 1024


def resolve(draft: Draft, environment: Environment) -> None:
    """Put values of the environment in the place of their names, before secrets are counted."""
    for path, value in _values(draft):
        name = value.get("env")
        if not isinstance(name, str) or set(value) != {"env"}:
            continue
        found = environment.values.get(name)
        if not found:
            draft.refuse((*path, "env"), f"{name} is not set in the environment: set it")
            continue
        del value["env"]
        value["value"] = found
        draft.moved[*path, "value"] = (*path, "env")
        draft.foreign.add((*path, "value"))


def _values(draft: Draft) -> Iterator[tuple[Path, dict[str, Value]]]:
    places: list[tuple[Path, Value]] = [((shape.GROUPS, name), group) for name, group in groups(draft).items()]
    for path, group in (*places, ((shape.DEFAULTS,), draft.data.get(shape.DEFAULTS))):
        values = group.get("script_values") if isinstance(group, dict) else None
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, dict):
                yield (*path, "script_values", name), value


def check(draft: Draft, config: Config) -> None:
    """Make each group's script for a machine that does not exist; note what is wrong where it is written."""
    specs = {spec.name: spec for spec in to_specs(config)}
    cluster = config.cluster_name or "the-installation"
    for name, group in config.node_groups.items():
        key = _key(group) if isinstance(group, NodeGroup) else None
        if key is None or not isinstance(group, NodeGroup):
            continue
        path = (shape.GROUPS, name, key)
        _check_minted(draft, config, group, (shape.GROUPS, name, "script_values"))
        if any(draft.is_spoiled((shape.GROUPS, name, "script_values", value, "env")) for value in group.script_values):
            continue
        try:
            script = _source(group, key).trial(sample_birth(specs[name], cluster))
        except (Refused, Unreadable) as reason:
            draft.blame(path, str(reason))
        except ScriptError as error:
            where = f"in line {error.line} " if error.line is not None else ""
            draft.blame(path, f"the startup script {where}{error.message}")
        else:
            size = len(script.text.encode("utf-8", "replace"))
            if size > LARGE:
                draft.warn(path, f"is {size} bytes long: Verda names no limit, but more than {LARGE} are often refused")


def _check_minted(draft: Draft, config: Config, group: NodeGroup, path: Path) -> None:
    """A token that is made for a machine needs a cluster to make it in, and has to live until the machine joins."""
    for name, value in group.script_values.items():
        ttl = value.bootstrap_token
        if ttl is None:
            continue
        where = (*path, name, "bootstrap_token")
        if not config.kubernetes.enabled:
            draft.blame(where, "needs the cluster that the token is for: set kubernetes.enabled")
        elif config.startup_script_server.url is None and ttl < group.provision_timeout:
            limit = duration_text(group.provision_timeout)
            draft.warn(where, f"is shorter than provision_timeout, {limit}: a machine that boots slowly cannot join")


def sources(config: Config) -> Mapping[str, ScriptSource]:
    """What the script of each group is made of, for groups whose script is not at Verda already.

    Raises:
        Unreadable, Refused: a file is gone that was there when the configuration was checked.
    """
    pairs = ((name, group) for name, group in config.node_groups.items() if isinstance(group, NodeGroup))
    return {name: _source(group, key) for name, group in pairs if (key := _key(group)) is not None}


def _key(group: NodeGroup) -> str | None:
    """The key that names the script to be made."""
    return next((key for key in STARTUP_SCRIPTS[1:] if getattr(group, key) is not None), None)


def _source(group: NodeGroup, key: str) -> ScriptSource:
    given = group.script_values.items()
    minted = {name: value.bootstrap_token for name, value in given if value.bootstrap_token is not None}
    values: dict[str, ReadValue] = {name: _reader(name, value) for name, value in given if name not in minted}
    if group.startup_script_url is not None:
        url = group.startup_script_url
        values["fetch_url"] = lambda: url
    return ScriptSource(template=_text(group, key), values=values, minted=minted)


def _text(group: NodeGroup, key: str) -> str:
    match key:
        case "startup_script_template":
            return packaged(str(group.startup_script_template))
        case "startup_script_url":
            return packaged("fetch")
        case "startup_script_file":
            text = _utf8(read_bytes(FilePath(str(group.startup_script_file)), _LARGEST_FILE))
        case _:
            secret: SecretStr = getattr(group, key)
            written = secret.get_secret_value()
            text = script_of(written) if key == "startup_script_base64" else written
    if text.partition("\n")[0].endswith("\r"):
        raise Refused("must not have carriage returns at the ends of its lines", remedy="save it with Unix line ends")
    return text


def _reader(name: str, value: ScriptValue) -> ReadValue:
    if value.file is not None:
        return partial(_read_value, name, value.file)
    secret = value.value
    return secret.get_secret_value if secret is not None else partial(_unset, name)


def _read_value(name: str, path: FilePath) -> str:
    """A file's content now: join tokens are renewed while we run."""
    try:
        text = read_bytes(path, _LARGEST_FILE).decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ScriptError(f"cannot have {name} from its file: it is not UTF-8 text") from None
    except Unreadable as reason:
        raise ScriptError(f"cannot have {name} from its file: {reason.message}") from None
    if not text:
        raise ScriptError(f"cannot have {name} from its file: it is empty")
    return text


def _unset(name: str) -> str:
    raise ScriptError(f"cannot have {name}: its variable is not set")


def decoded(text: str) -> bytes:
    """Bytes of a base64 text, which may be broken into lines.

    Raises:
        Refused: it is no base64. Never holds any of it.
    """
    try:
        return base64.b64decode(re.sub(r"\s", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise Refused("must be base64", remedy="make it with: base64 -w0 FILE") from None


def script_of(text: str) -> str:
    """A startup script out of its base64 form.

    Raises:
        Refused: it is no base64, or not of text.
    """
    return _utf8(decoded(text))


def _utf8(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("must hold UTF-8 text", remedy="a startup script is text that begins with #!") from None
