"""What the autoscaler's real nodes show, written down beside the answering of RPCs."""

import threading
from concurrent.futures import ThreadPoolExecutor

from app.domain.envelope import Cause
from app.domain.instance.commands import LearnProviderId
from app.domain.nodegroup.commands import RecordJoined
from app.errors import ProviderError
from app.ledger.ledger import Ledger
from app.log import INSTANCE, get_logger

_log = get_logger()


class Spellings:
    """Writes one after the other, on a thread of its own: no reading may wait for the disk.

    What cannot be written is lost without harm, for the autoscaler shows the same node again in its next loop.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="spelling")
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def learn(self, command: LearnProviderId | RecordJoined, cause: Cause) -> None:
        """Have it written down; returns at once."""
        with self._lock:
            if command.instance in self._waiting:
                return
            self._waiting.add(command.instance)
        self._pool.submit(self._write, command, cause)

    def _write(self, command: LearnProviderId | RecordJoined, cause: Cause) -> None:
        try:
            self._ledger.execute(command, cause)
        except ProviderError as error:
            _log.debug("what a node showed is not written down", **{INSTANCE: command.instance}, error=error.message)
        except Exception:  # noqa: BLE001 - the edge of a pool thread: it must be seen
            _log.exception("what a node showed is not written down", **{INSTANCE: command.instance})
        finally:
            with self._lock:
                self._waiting.discard(command.instance)

    def close(self) -> None:
        """Write nothing more; for when no RPC is answered any longer."""
        self._pool.shutdown(wait=False, cancel_futures=True)
