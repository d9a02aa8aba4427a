"""Values that change by being made again.

`replace` is that of `dataclasses` for frozen dataclasses without slots. There the standard library calls the
constructor, which sets every field by itself; with the sixty fields of an instance that was half the work of folding.
Copying what the object holds and setting the changes comes to the same and costs a tenth.
"""

from dataclasses import fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - the checker knows it, and holds changes against the fields
else:

    def replace(value: T, /, **changes: Any) -> T:
        """The same value with these fields changed; what was computed from the old fields is forgotten.

        Raises:
            TypeError: there is no such field, or the class has slots or looks at its fields when it is made.
        """
        kind = type(value)
        known, computed = _shape(kind)
        if not changes.keys() <= known:
            raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(changes.keys() - known))}")
        state = value.__dict__.copy()
        for name in computed:
            state.pop(name, None)
        state.update(changes)
        twin = object.__new__(kind)
        object.__setattr__(twin, "__dict__", state)
        return twin


@cache
def _shape(kind: type[Any]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names of the fields, and of what is computed once from them."""
    if hasattr(kind, "__post_init__") or any("__slots__" in vars(base) for base in kind.__mro__[:-1]):
        raise TypeError(f"{kind.__name__} is not a plain dataclass: use dataclasses.replace")
    computed = (name for base in kind.__mro__ for name, item in vars(base).items() if isinstance(item, cached_property))
    return frozenset(field.name for field in fields(kind)), tuple(computed)
