"""The page of commands: `python -m app.cli.commands_page > docs/commands.md`."""

import sys
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from app.cli.families import loaded
from app.cli.main import COMMANDS

_HEAD = """\
# Commands

`verda-cloud-provider COMMAND --help` says the same; without a command it serves.
This page is made from the code: `python -m app.cli.commands_page > docs/commands.md`.

The commands that look read the database, whether the server runs or not, and never write it; `--database` names it.
`pause`, `resume` and `drain` go through the socket beside the database to the running server.
They are in the log with who asked and why.
`--output` is `table`, `json` or `yaml`; a table becomes plain text when nobody looks.
Times are read as UTC unless they say otherwise.

| exit code | |
|---|---|
| 0 | fine |
| 1 | the answer is no |
| 2 | wrong usage or configuration |
| 3 | cannot reach what is needed |
| 4 | another process holds the database |

| signal to the server | |
|---|---|
| SIGINT, SIGTERM | stop |
| SIGHUP | read the configuration again |
| SIGUSR1 | turn the debug log on, or off again |

`verda-cloud-provider --install-completion` completes commands, options and the names of node groups and instances.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for name, (family, _) in COMMANDS.items():
        command = loaded(family).commands[name]
        if isinstance(command, TyperGroup):
            parts += ["\n".join(_section(f"{name} {part}", one)) for part, one in command.commands.items()]
        else:
            parts.append("\n".join(_section(name, command)))
    return "\n".join(parts)


def _section(name: str, command: Any) -> Iterator[str]:
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join([name, *(_shown(argument) for argument in arguments)])
    yield f"## `{usage}`\n"
    yield "\n".join(line.strip() for line in (command.help or "").strip().splitlines())
    rows = [*(_row(f"`{_shown(argument)}`", argument) for argument in arguments), *map(_option, options)]
    if rows:
        yield "\n| | default | |\n|---|---|---|"
        yield from rows
    yield ""


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:
    return _row(", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts)), option)


def _row(name: str, parameter: Any) -> str:
    default = "required" if parameter.required else parameter.default
    told = "" if default in {None, False} or default == "" else f"`{default}`"
    told = "required" if default == "required" else told
    return f"| {name.replace('|', chr(92) + '|')} | {told} | {parameter.help or ''} |"


if __name__ == "__main__":
    sys.stdout.write(page())
