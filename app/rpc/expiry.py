"""When certificates end, so that somebody renews them before nobody gets in any more."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from app.certificates import expiry_of


def expiries(files: Mapping[str, Path]) -> Mapping[str, datetime]:
    """For each of these PEM files when its first certificate ends, without those that cannot be read at the moment.

    Files are swapped while they are in use; what is wrong with them for good is said by those who need them.
    """
    ends: dict[str, datetime] = {}
    for name, path in files.items():
        try:
            ends[name] = expiry_of(path)
        except (OSError, ValueError):
            continue
    return ends
