"""What keeps the cluster side from its work: told once in the log when it begins and when it ends, and always asked."""

import threading
from collections.abc import Sequence

from app.errors import ClusterError
from app.ledger.serving import Reason
from app.log import get_logger

_log = get_logger(job="cluster")


class Troubles:
    """The last error of each piece of work, until that piece succeeds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, ClusterError] = {}

    def note(self, work: str, error: ClusterError) -> None:
        """This piece of work could not be done."""
        with self._lock:
            known = self._errors.get(work)
            self._errors[work] = error
        if known is None or known.code != error.code:
            _log.warning("cluster side hindered, scaling goes on", work=work, code=error.code, error=error.message)

    def clear(self, work: str) -> None:
        """This piece of work could be done."""
        with self._lock:
            known = self._errors.pop(work, None)
        if known is not None:
            _log.info("cluster side works again", work=work)

    def reasons(self) -> Sequence[Reason]:
        """One for each kind of trouble, in the words of the piece of work that met it first."""
        with self._lock:
            errors = list(self._errors.items())
        first: dict[str, Reason] = {}
        for work, error in errors:
            message = f"the cluster side cannot {work}: {error.message}; scaling goes on without it"
            first.setdefault(error.code, Reason(code=error.code, message=message))
        return tuple(first.values())
