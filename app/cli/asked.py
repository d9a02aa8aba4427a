"""What is asked for must be there: a slip of the pen must not look like an empty answer."""

from datetime import datetime
from typing import Any

import typer

from app.store import queries

# Connections come from `app.store.reading.asking`; their type is the store's own business.


def instance_of(moment: Any, key: str, hint: str = "INSTANCE") -> str:
    """The name of the instance with this name, instance id or provider id.

    Raises:
        BadParameter: there is none.
    """
    name = queries.instance_named(moment, key)
    if name is None:
        message = f"there is no instance {key!r}: `instances --all` lists them"
        raise typer.BadParameter(message, param_hint=hint)
    return name


def require_group(moment: Any, name: str | None, hint: str = "--node-group") -> None:
    """See that the group is there, or was.

    Raises:
        BadParameter: there never was one of that name.
    """
    if name is None:
        return
    known = queries.groups_ever(moment)
    if name not in known:
        message = f"there is no node group {name!r}: known are {', '.join(known) or 'none'}"
        raise typer.BadParameter(message, param_hint=hint)


def require_order(since: datetime | None, until: datetime | None) -> None:
    """See that there is time between the two.

    Raises:
        BadParameter: there is none.
    """
    if since is not None and until is not None and since >= until:
        message = f"{until.isoformat()} is not after --since {since.isoformat()}"
        raise typer.BadParameter(message, param_hint="--until")
