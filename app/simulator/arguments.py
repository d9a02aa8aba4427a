"""Reading the arguments of presets and acts."""

from collections.abc import Mapping

from pydantic import JsonValue

from app.simulator.errors import invalid

Args = Mapping[str, JsonValue]


def number(args: Args, name: str, default: float) -> float:
    """A numeric argument. Raises: 400."""
    value = args.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid(f"{name} must be a number")
    return value


def word(args: Args, name: str, default: str) -> str:
    """A text argument. Raises: 400."""
    value = args.get(name, default)
    if not isinstance(value, str):
        raise invalid(f"{name} must be a string")
    return value
