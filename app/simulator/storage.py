"""Keeping a world on disk, so that it goes on where it stopped, even after a kill."""

import os
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from app.errors import ConfigurationError, Problem
from app.simulator.state import WorldState
from app.simulator.world import World

_FORMAT: Literal[1] = 1
_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """What stands in the file."""

    format: Literal[1]
    written_at: datetime
    world: WorldState


_SAVED = TypeAdapter(_Saved)


class StateFile:
    """One file with one world, replaced atomically.

    Saved once a second when something changed, and by `save_now` before an answer that must not be forgotten: a cloud
    does not forget a machine it has confirmed. Several requests waiting for the same save share it.
    """

    def __init__(self, path: Path, world: World) -> None:
        self._path = path
        self._world = world
        self._saved = -1
        self._wanted = threading.Condition()
        self._urgent = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="simulator-saver", daemon=True)

    def load(self) -> bool:
        """Continue the world of the file, if there is one; time that passed meanwhile has passed for it too.

        Raises:
            ConfigurationError: the file is not a world of this version.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        try:
            saved = _SAVED.validate_json(text)
        except ValidationError as error:
            message = f"no world of version {_FORMAT}; delete it to begin anew"
            raise ConfigurationError((Problem(source=str(self._path), line=None, path="", message=message),)) from error
        self._world.adopt(saved.world, skipped=self._world.clock.now() - saved.written_at)
        return True

    def start(self) -> None:
        """Begin to save."""
        self._thread.start()

    def stop(self) -> None:
        """Save a last time and end."""
        with self._wanted:
            self._stopping = True
            self._wanted.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout=30)
        self._world.touch()
        self._save()

    def save_now(self, timeout: timedelta = timedelta(seconds=5)) -> None:
        """Wait until what is true now is on disk."""
        with self._world.lock:
            revision = self._world.revision
        with self._wanted:
            self._urgent = True
            self._wanted.notify_all()
            self._wanted.wait_for(lambda: self._saved >= revision or self._stopping, timeout.total_seconds())

    def _run(self) -> None:
        while True:
            with self._wanted:
                self._wanted.wait_for(lambda: self._urgent or self._stopping, _INTERVAL_S)
                if self._stopping:
                    return
                self._urgent = False
            self._save()

    def _save(self) -> None:
        with self._world.lock:
            self._world.catch_up()  # so that the saved instant and `written_at` are the same moment
            revision = self._world.revision
            if revision == self._saved:
                return
            saved = _Saved(format=_FORMAT, written_at=self._world.clock.now(), world=self._world.state)
            text = _SAVED.dump_json(saved)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(f"{self._path.suffix}.tmp")
        temporary.write_bytes(text)
        os.replace(temporary, self._path)  # noqa: PTH105 - atomic, and says so
        with self._wanted:
            self._saved = revision
            self._wanted.notify_all()
