"""Templates of startup scripts: Jinja2 without silence about what is missing, with quotes for the shell."""

import json
import shlex
from collections.abc import Mapping
from importlib import resources

from jinja2 import FunctionLoader, StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.startup.variables import Variables


class ScriptError(Exception):
    """A startup script cannot be made; says why, and in which line of the template if known. Quotes no value."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def shell_quote(value: object) -> str:
    """One word of a shell, whatever is in it."""
    return shlex.quote(str(value))


def to_json(value: object) -> str:
    """JSON on one line, which is YAML too. Raises what is undefined says, as writing it would."""
    return json.dumps(value, ensure_ascii=False, default=str)


def packaged(name: str) -> str:
    """The text of a template that comes with the program."""
    return resources.files("app.startup").joinpath("templates", f"{name}.sh.j2").read_text("utf-8")


def _includable(name: str) -> str | None:
    """What templates may include: the beginning that the ready-made ones share."""
    return packaged(name) if name == "begin" else None


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(_includable),
        undefined=StrictUndefined,
        # Jinja's own `{#` stands in every shell script that counts: `${#list[@]}`.
        comment_start_string="{#%",
        comment_end_string="%#}",
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shell_quote"] = shell_quote
    environment.filters["to_json"] = to_json
    return environment


_ENVIRONMENT = _environment()


def render(text: str, variables: Variables, values: Mapping[str, str]) -> str:
    """The script that a template makes of a machine's variables and the operator's values.

    Raises:
        ScriptError: the template is none, or uses a name that nobody gave.
    """
    try:
        return _ENVIRONMENT.from_string(text).render({**variables, **values})
    except TemplateSyntaxError as error:
        reason = ScriptError(f"is no template: {error.message}", error.lineno)
    except TemplateError as error:
        reason = ScriptError(f"cannot be filled in: {error.message}", _line_of(error))
    except Exception as error:  # noqa: BLE001 - a template can call anything on its values; what it said may hold one
        reason = ScriptError(f"cannot be filled in: {type(error).__name__}", _line_of(error))
    # Outside of `except`, so that no traceback carries values.
    raise reason


def _line_of(error: Exception) -> int | None:
    """The template's line in an error's traceback, where Jinja puts it."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
