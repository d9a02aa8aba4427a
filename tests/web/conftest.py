"""A house whose pages are looked at."""

from tests.reconcile.conftest import _no_log_lines, house, make_house, started

__all__ = ["_no_log_lines", "house", "make_house", "started"]
