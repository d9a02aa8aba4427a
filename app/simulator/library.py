"""Startup scripts and SSH keys: named texts that are made, listed and deleted but never changed."""

from collections.abc import Sequence

from app.simulator.core import Core
from app.simulator.errors import forbidden, invalid, not_found
from app.simulator.records import NamedText


class Library:
    """One shelf of named texts: `kind` is `script` or `key`."""

    def __init__(self, core: Core, kind: str, shelf: dict[str, NamedText]) -> None:
        self._core = core
        self._kind = kind
        self._shelf = shelf

    def add(self, name: object, text: object, *, fixed_id: str | None = None) -> NamedText:
        """A new text. Names are not unique. Raises: 400, or 403 when the script quota is used up."""
        if not isinstance(name, str) or not name:
            raise invalid("name must be a string")
        if not isinstance(text, str) or not text:
            raise invalid(f"{'script' if self._kind == 'script' else 'key'} must be a string")
        if self._kind == "script" and len(self._shelf) >= self._core.state.quotas.scripts:
            raise forbidden("Startup script quota exceeded")
        item = NamedText(
            id=fixed_id or self._core.new_id(self._kind), name=name, text=text, created_ms=self._core.now_ms
        )
        self._shelf[item.id] = item
        return item

    def get(self, item_id: str) -> NamedText:
        """A text by id. Raises: 404."""
        found = self._shelf.get(item_id)
        if found is None:
            raise not_found(f"{'Startup script' if self._kind == 'script' else 'SSH key'} not found")
        return found

    def newest_first(self) -> Sequence[NamedText]:
        """All of them."""
        return list(reversed(self._shelf.values()))

    def delete(self, item_ids: Sequence[str]) -> None:
        """Delete all or, if one is unknown, none. Raises: 404."""
        for item_id in item_ids:
            self.get(item_id)
        for item_id in item_ids:
            self._shelf.pop(item_id, None)

    def __len__(self) -> int:
        return len(self._shelf)
