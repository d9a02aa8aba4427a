"""From a file, its surroundings and the command line to a configuration, or to everything that is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from app.config import advice, crosschecks, environment, merge, notyet, problems, scripts, shape, source
from app.config.draft import Draft, Path, Place
from app.config.model import Config
from app.config.values import Address, Refused, address, port_number
from app.errors import ConfigurationError, Problem

_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Flags of the command line; they win over the file."""

    port: int | None = None
    http_port: int | None = None
    database: str | None = None
    log_level: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A valid configuration, what is odd about it, and the SHA-256 of the file's bytes in hexadecimal."""

    config: Config
    warnings: tuple[Problem, ...]
    sha256: str


NO_OVERRIDES = Overrides()


def load(
    path: FilePath, *, environ: Mapping[str, str], overrides: Overrides = NO_OVERRIDES, dotenv: str | None = ".env"
) -> LoadedConfig:
    """Read a configuration file.

    `environ` wins over the file named `dotenv` beside the configuration; None reads no such file. Relative paths in
    the configuration are relative to the working directory.

    Raises:
        ConfigurationError: every problem at once, in file order, never with a secret in it.
    """
    draft, sha256 = source.read(path)
    variables = environment.gather(environ, path.parent / dotenv if dotenv is not None else None, draft)
    environment.substitute(draft, variables)
    environment.credentials(draft, variables)
    scripts.resolve(draft, variables)
    secrets = tuple(shape.secrets_in(draft.data))
    _override(draft, overrides)
    notyet.refuse_not_yet(draft)
    merge.older_resources(draft)
    defaults = merge.defaults(draft)
    crosschecks.refuse_gpu_labels(draft)
    config = problems.validate(draft, defaults)
    if config is not None:
        scripts.check(draft, config)
    if config is None or draft.problems:
        raise ConfigurationError(problems.in_file_order(draft.problems, draft.source, secrets))
    advice.advise(draft, config)
    warnings = problems.in_file_order(draft.warnings, draft.source, secrets)
    return LoadedConfig(config=config, warnings=warnings, sha256=sha256)


def _override(draft: Draft, overrides: Overrides) -> None:
    _override_port(draft, ("listen",), "--port", overrides.port)
    _override_port(draft, ("http", "listen"), "--http-port", overrides.http_port)
    _override_text(draft, ("database",), "--database", overrides.database)
    _override_text(draft, ("logging", "level"), "--log-level", overrides.log_level)


def _override_text(draft: Draft, path: Path, flag: str, value: str | None) -> None:
    section = draft.section(*(str(part) for part in path[:-1]))
    if value is None or section is None:
        return
    section[str(path[-1])] = value
    draft.places[path] = Place(source=_COMMAND_LINE, line=None, path=flag)
    draft.foreign.discard(path)


def _override_port(draft: Draft, path: Path, flag: str, port: int | None) -> None:
    """Replace the port of an address and keep its host, so that a flag opens nothing that the file keeps closed."""
    section = draft.section(*(str(part) for part in path[:-1]))
    if port is None or section is None:
        return
    try:
        port_number(port)
    except Refused as refused:
        draft.problems.append(Problem(source=_COMMAND_LINE, line=None, path=flag, message=f"{refused}, is {port}"))
        return
    written = section.get(str(path[-1]))
    try:
        kept = address(written) if written is not None else Address("127.0.0.1", port)
    except Refused:
        return  # the file's own problem, told with its line
    section[str(path[-1])] = str(kept.with_port(port))
    draft.places.setdefault(path, Place(source=_COMMAND_LINE, line=None, path=flag))
