"""A configuration that changes while the service runs: node groups, the budget and the log level follow at once."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Self

from prometheus_client.metrics_core import Metric

from app.config.difference import differences
from app.config.load import LoadedConfig
from app.config.model import Config
from app.domain.envelope import Cause
from app.domain.service import RejectConfiguration
from app.errors import ConfigurationError
from app.ledger.ledger import Ledger
from app.ledger.serving import Reason
from app.log import get_logger
from app.metrics import Computed

LIVE: Final = frozenset({"node_groups", "max_hourly_cost", "balance_runway", "logging"})
"""Sections that take effect without a restart, if they can be served; everything else was built into what runs."""

VALID: Final = Computed("configuration_valid", "1 while the configuration's file is valid, 0 once it was rejected.")
HASHES: Final = Computed(
    "configuration_info", "SHA-256 of the configuration in effect and of the file.", ("running", "file")
)
RELOAD_METRICS: Final = (VALID, HASHES)
"""Everything that `Reload.metrics` yields."""

_ABSENT: Final = "none"
_log = get_logger(job="configuration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the configuration came from and how to read it again; `load` raises ConfigurationError.

    `first` is the fingerprint of the file before it was read for the first time.
    """

    path: Path
    load: Callable[[], LoadedConfig]
    first: str

    @classmethod
    def before_reading(cls, path: Path, load: Callable[[], LoadedConfig]) -> Self:
        """To be made before the first `load`, so that no change is missed that happens meanwhile."""
        return cls(path=path, load=load, first=_fingerprint(path))

    def fingerprint(self) -> str:
        """SHA-256 of what the file holds now, in hexadecimal; `none` if it cannot be read.

        Not the hash of a configuration, which may come from more than this file.
        """
        return _fingerprint(self.path)


def _fingerprint(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return _ABSENT


class Reload:
    """A job that looks whether the file has changed, by its content: a ConfigMap is swapped by renaming a directory.

    A file that is not valid any more changes nothing: the configuration before it stays, the log, `/readyz` and a
    metric say so. `servable` is a configuration as far as it can follow one that runs without a restart; `apply` brings
    its groups and budget into the books; `follow` does the rest; `token` makes correlation ids.
    """

    name: ClassVar[str] = "configuration"

    def __init__(
        self,
        origin: Origin,
        running: LoadedConfig,
        ledger: Ledger,
        *,
        apply: Callable[[LoadedConfig, Cause], None],
        follow: Callable[[LoadedConfig], None],
        token: Callable[[], str],
        servable: Callable[[Config, Config], Config],
    ) -> None:
        self._origin = origin
        self._ledger = ledger
        self._apply = apply
        self._follow = follow
        self._token = token
        self._servable = servable
        self._lock = threading.Lock()
        self._running = running
        self._seen = origin.first
        self._latest = running.sha256
        self._asked = threading.Event()
        self._told: tuple[str, ...] = ()
        self._rejected: Reason | None = None
        self._postponed: Reason | None = None

    def ask(self) -> None:
        """Read the files again at the next run also if the main one has not changed: others may have."""
        self._asked.set()

    @property
    def hashes(self) -> tuple[str, str]:
        """SHA-256 of the configuration in effect, and of what was last read: the file alone if it was rejected."""
        return self._running.sha256, self._latest

    def metrics(self) -> Iterable[Metric]:
        """Whether the file is in effect, and the hashes of both."""
        yield VALID.value(0 if self._rejected else 1)
        hashes = HASHES.family()
        hashes.add_metric(self.hashes, 1)
        yield hashes

    def reasons(self) -> Sequence[Reason]:
        """What an operator should know: a file that was rejected, keys that wait for a restart."""
        return tuple(reason for reason in (self._rejected, self._postponed) if reason is not None)

    def run(self) -> None:
        """Read the file if it has changed, or as long as it was rejected: what is wrong may be in another file."""
        try:
            self._look()
        except Exception:
            self._asked.set()  # what was read is not in effect, and the file may be one that nobody sees change
            raise

    def _look(self) -> None:
        with self._lock:
            seen = self._origin.fingerprint()
            is_news = seen != self._seen or self._asked.is_set()
            if not is_news and self._rejected is None:
                return
            if is_news:
                self._told = ()
            self._asked.clear()
            cause = Cause(actor="service", correlation_id=self._token())
            try:
                loaded = self._origin.load()
            except ConfigurationError as error:
                self._reject(seen, error, cause)
            else:
                self._take(loaded, cause)
                self._seen = seen

    def _reject(self, sha256: str, error: ConfigurationError, cause: Cause) -> None:
        problems = tuple(str(problem) for problem in error.problems)
        if problems == self._told:
            return
        first = problems[0]
        self._ledger.execute(RejectConfiguration(sha256=sha256, problems=len(error.problems), first=first), cause)
        self._seen = self._latest = sha256
        self._rejected = Reason(
            code="configuration-rejected",
            message=f"the configuration file cannot be used, the one before it stays in effect: {first}",
        )
        for problem in problems:
            _log.error("configuration rejected, the earlier one stays", problem=problem)
        self._told = problems

    def _take(self, loaded: LoadedConfig, cause: Cause) -> None:
        running = self._running.config
        live = {name: getattr(loaded.config, name) for name in LIVE}
        config = self._servable(running.model_copy(update=live), running)
        changes = differences(running, loaded.config)
        waiting = differences(config, loaded.config)
        effective = LoadedConfig(config=config, warnings=loaded.warnings, sha256=loaded.sha256)
        self._apply(effective, cause)
        self._follow(effective)
        for change in changes:
            _log.info(
                "configuration changed",
                change=str(change),
                takes_effect="at the next start" if change in waiting else "now",
            )
        for warning in loaded.warnings:
            _log.warning("configuration", where=f"{warning.source}:{warning.line}", what=str(warning))
        self._running, self._latest, self._rejected = effective, loaded.sha256, None
        self._postponed = _postponed([change.path for change in waiting])


def _postponed(paths: Sequence[str]) -> Reason | None:
    if not paths:
        return None
    return Reason(
        code="restart-needed",
        message=f"changed in the configuration file and in effect from the next start on: {', '.join(paths)}",
    )
