"""What was probably meant: the nearest known word, a valid group name."""

import difflib
import re
import unicodedata
from collections.abc import Collection

_LONGEST_GROUP_NAME = 50


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word most like the given one, None if none is near."""
    by_lower_case = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower()[:100], by_lower_case, n=1)
    return by_lower_case[close[0]] if close else None


def group_name(wrong: str, taken: Collection[str]) -> str:
    """A valid node group name that reads like the wrong one and is not taken."""
    latin = unicodedata.normalize("NFKD", wrong).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", latin).strip("-")
    if not name or not name[0].isalpha():
        name = f"g-{name}".strip("-")
    name = name[:_LONGEST_GROUP_NAME].rstrip("-")
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name[: _LONGEST_GROUP_NAME - len(str(count)) - 1].rstrip('-')}-{count}"
    return candidate
