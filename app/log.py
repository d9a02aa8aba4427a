"""Logging: structlog set up once, for a terminal or for a pod, and the keys that log lines share."""

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

LogFormat = Literal["auto", "console", "json"]

# Keys that appear in more than one place; the words are the glossary's.
RPC = "rpc"
JOB = "job"
CORRELATION_ID = "correlation_id"
NODE_GROUP = "node_group"
INSTANCE = "instance"
INSTANCE_ID = "instance_id"
DURATION = "duration_s"
ERROR = "error"

_NOISY = ("apscheduler", "alembic", "urllib3", "uvicorn", "asyncio")
_SHORTEST_SECRET = 6  # to replace shorter ones would garble lines more than it protects
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class _UnbreakableLogger(structlog.WriteLogger):
    """A line that cannot be written is lost, and nothing else: a full disk must not break what logs about it."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = error = critical = fatal = failure = exception = msg


def _put_level_first(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    ordered = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return {**ordered, **event}


def set_up_logging(
    level: str, log_format: LogFormat, stream: TextIO = sys.stderr, *, secrets: Iterable[str] = ()
) -> None:
    """Configure structlog and the standard library's logging to write to one stream.

    `auto` means readable lines on a terminal and JSON elsewhere. Levels: debug, info, warning, error. None of the
    `secrets` is ever written, whoever logs it: nobody should, and this is for the day somebody does.
    """
    console = log_format == "console" or (log_format == "auto" and stream.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[Any] = (
        # Plain, because the usual one shows local variables, and with them whatever a call was made with.
        [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if console
        else [structlog.processors.format_exc_info, _put_level_first, structlog.processors.JSONRenderer()]
    )
    renderer.append(_hiding(secrets))
    structlog.configure(
        processors=[*shared, *renderer],
        logger_factory=lambda *_: _UnbreakableLogger(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.root.handlers = [handler]
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    set_level(level)


def set_level(level: str) -> None:
    """Write what is at least this important from now on, also through loggers that exist already."""
    number = _LEVELS[level.lower()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    logging.root.setLevel(number)


class DebugSwitch:
    """Everything is written from one flick to the next, whatever the configuration says."""

    def __init__(self) -> None:
        self._before: str | None = None

    def flick(self) -> str:
        """Turn it on, or back to the level before; the level from now on."""
        level, self._before = ("debug", _level()) if self._before is None else (self._before, None)
        set_level(level)
        return level


def _level() -> str:
    return logging.getLevelName(logging.root.level).lower()


def _hiding(secrets: Iterable[str]) -> Callable[[WrappedLogger, str, str], str]:
    """The last step: a line without the secrets, as they are and as JSON and Python spell them, even one in another."""
    words = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
    for _ in range(2):
        words |= {spelled(word)[1:-1] for word in words for spelled in (json.dumps, repr, _json_as_it_is)}
    longest_first = sorted(words, key=len, reverse=True)

    def hide(_logger: WrappedLogger, _name: str, line: str) -> str:
        for word in longest_first:
            line = line.replace(word, "***")
        return line

    return hide


def _json_as_it_is(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def bound(**keys: str) -> AbstractContextManager[None]:
    """Have these keys on every line that this thread logs meanwhile, wherever it does."""
    return structlog.contextvars.bound_contextvars(**keys)


def get_logger(**bound: object) -> structlog.typing.FilteringBoundLogger:
    """A logger with some keys already filled in."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**bound)
    return logger
