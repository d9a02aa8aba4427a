"""From a draft, whatever it was read from, to a configuration or to everything that is wrong with it."""

from dataclasses import dataclass

from app.config import advice, crosschecks, environment, merge, notyet, problems, scripts, shape, webhooks
from app.config.draft import Draft, Path, Place
from app.config.environment import Environment
from app.config.model import Config
from app.config.values import Address, Refused, address, port_number
from app.errors import ConfigurationError, Problem

COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Flags of the command line; they win over the file."""

    port: int | None = None
    http_port: int | None = None
    database: str | None = None
    log_level: str | None = None
    provider_id_template: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A valid configuration, what is odd about it, and the SHA-256 in hexadecimal of what it was read from."""

    config: Config
    warnings: tuple[Problem, ...]
    sha256: str


NO_OVERRIDES = Overrides()


def complete(draft: Draft, variables: Environment, overrides: Overrides, sha256: str) -> LoadedConfig:
    """Judge a draft as a whole.

    Raises:
        ConfigurationError: every problem at once, in file order, never with a secret in it.
    """
    environment.credentials(draft, variables)
    webhooks.add(draft, variables)
    scripts.resolve(draft, variables)
    secrets = tuple(shape.secrets_in(draft.data))
    _override(draft, overrides)
    notyet.refuse_not_yet(draft)
    merge.older_forms(draft)
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
    _override_text(draft, ("provider_id_template",), "--provider-id-template", overrides.provider_id_template)


def _override_text(draft: Draft, path: Path, flag: str, value: str | None) -> None:
    section = draft.section(*(str(part) for part in path[:-1]))
    if value is None or section is None:
        return
    section[str(path[-1])] = value
    draft.places[path] = Place(source=COMMAND_LINE, line=None, path=flag)
    draft.foreign.discard(path)


def _override_port(draft: Draft, path: Path, flag: str, port: int | None) -> None:
    """Replace the port of an address and keep its host, so that a flag opens nothing that the file keeps closed."""
    section = draft.section(*(str(part) for part in path[:-1]))
    if port is None or section is None:
        return
    try:
        port_number(port)
    except Refused as refused:
        draft.problems.append(Problem(source=COMMAND_LINE, line=None, path=flag, message=f"{refused}, is {port}"))
        return
    written = section.get(str(path[-1]))
    try:
        kept = address(written) if written is not None else Address("127.0.0.1", port)
    except Refused:
        return  # the file's own problem, told with its line
    section[str(path[-1])] = str(kept.with_port(port))
    draft.places.setdefault(path, Place(source=COMMAND_LINE, line=None, path=flag))
