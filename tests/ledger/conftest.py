from store.conftest import _fresh, _started, fresh, started

__all__ = ["_fresh", "_started", "fresh", "started"]
