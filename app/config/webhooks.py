"""The power controller's variables: `GPU_NODE_<n>_NAME` and its like, one machine each."""

import re
from collections.abc import Mapping

from app.config import shape
from app.config.draft import Draft, Path, Value
from app.config.environment import Environment

GROUP = "gpu-nodes"
"""The node group that the controller's machines become."""

_VARIABLE = re.compile(r"GPU_NODE_([0-9]{1,4})_(NAME|GPU_COUNT|SCALE_UP_ENDPOINT|SCALE_DOWN_ENDPOINT)")


def are_in(environ: Mapping[str, str]) -> bool:
    """Whether any of them is set."""
    return any(_VARIABLE.fullmatch(name) and value for name, value in environ.items())


def add(draft: Draft, environment: Environment) -> None:
    """Make a node group of them, if there are any and the file has none of that name."""
    found: dict[int, dict[str, Value]] = {}
    for name, value in environment.values.items():
        part = _VARIABLE.fullmatch(name)
        if part is not None and value:
            found.setdefault(int(part[1]), {})[part[2].lower()] = value
    groups = draft.section(shape.GROUPS) if found else None
    if groups is None or GROUP in groups:
        return
    machines: list[Value] = []
    for index, number in enumerate(sorted(found)):
        machines.append(dict(found[number]))
        path: Path = (shape.GROUPS, GROUP, "machines", index)
        draft.places[path] = environment.place(f"GPU_NODE_{number}_NAME")
        for key in found[number]:
            draft.places[*path, key] = environment.place(f"GPU_NODE_{number}_{key.upper()}")
    groups[GROUP] = {"kind": "webhook", "machines": machines}
