"""Mother of the provider's processes: it has imported the program once, and forks one life after the other.

So a kill soon after the start hits the program and not Python's imports, and a thousand starts cost minutes. It reads
commands from standard input, one a line, and answers each with a line:

    start LOG CONFIG    a life begins; its output is appended to LOG
    kill                SIGKILL, and wait: `killed`, or `ended CODE` if it had ended by itself before
    stop                SIGTERM, and do not wait
    wait                until it has ended
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import app.cli.serve  # noqa: F401 - everything that a life needs, imported before it begins
from app.cli.main import main

_KILLED = -signal.SIGKILL


def _live(log: Path, config: Path) -> None:
    """Be the provider. Never returns."""
    code = 70
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(descriptor, target)
        sys.argv = ["verda-cloud-provider", "serve", "--config", str(config)]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


class Mother:
    """Has at most one child."""

    def __init__(self) -> None:
        self._child: int | None = None
        self._code = 0

    def obey(self, words: Sequence[str]) -> str:
        """Do what a line says, and answer."""
        match words:
            case ["start", log, config]:
                self._child = os.fork()
                if self._child == 0:
                    _live(Path(log), Path(config))
                return "started"
            case ["kill"]:
                self._send(signal.SIGKILL)
                return self._end()
            case ["stop"]:
                self._send(signal.SIGTERM)
                return "told"
            case ["wait"]:
                return self._end()
            case _:
                return "what?"

    def _send(self, number: signal.Signals) -> None:
        if self._child is not None:
            os.kill(self._child, number)  # it is our child and not waited for, so its id is nobody else's

    def _end(self) -> str:
        if self._child is not None:
            _, status = os.waitpid(self._child, 0)
            self._child, self._code = None, os.waitstatus_to_exitcode(status)
        return "killed" if self._code == _KILLED else f"ended {self._code}"


def _main() -> None:
    mother = Mother()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its end is the end of its input: no child outlives it
    for line in sys.stdin:
        sys.stdout.write(mother.obey(line.split()) + "\n")
        sys.stdout.flush()
    mother.obey(["kill"])


if __name__ == "__main__":
    _main()
