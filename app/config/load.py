"""From a file, its surroundings and the command line to a configuration, or to everything that is wrong with it."""

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath

from app.config import datacrunch, environment, source, webhooks
from app.config.assemble import NO_OVERRIDES, LoadedConfig, Overrides, complete
from app.config.draft import Draft

__all__ = ["DEFAULT_FILE", "NO_OVERRIDES", "LoadedConfig", "Overrides", "given_file", "load", "load_given"]

DEFAULT_FILE = FilePath("config.yaml")
"""The file that is read when nothing is given at all."""


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
    return complete(draft, variables, overrides, sha256)


def load_given(
    config: FilePath | None,
    nodes: Sequence[str],
    *,
    environ: Mapping[str, str],
    overrides: Overrides = NO_OVERRIDES,
) -> LoadedConfig:
    """Read whatever the command line names.

    Without `--nodes` that is one file, or none where GPU_NODE_* variables say all there is. With them, the node groups
    come from the flags and from DATACRUNCH_* variables, and the file may hold everything else.

    Raises:
        ConfigurationError: every problem at once.
    """
    if not nodes and config is None and not DEFAULT_FILE.exists() and webhooks.are_in(environ):
        draft = Draft(source="environment", data={})
        return complete(draft, environment.gather(environ, None, draft), overrides, "")
    if not nodes:
        return load(config or DEFAULT_FILE, environ=environ, overrides=overrides)
    return datacrunch.load(nodes, config, environ=environ, overrides=overrides)


def given_file(config: FilePath | None, nodes: Sequence[str], environ: Mapping[str, str]) -> FilePath | None:
    """The file whose change means another configuration, None if there is none."""
    if config is not None or not nodes:
        return config or DEFAULT_FILE
    named = environ.get(datacrunch.JSON_FILE)
    return FilePath(named) if named else None
