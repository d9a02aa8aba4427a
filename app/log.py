"""Logging: structlog set up once, for a terminal or for a pod, and the keys that log lines share."""

import logging
import sys
from typing import Literal, TextIO

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
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def _put_level_first(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    ordered = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return {**ordered, **event}


def set_up_logging(level: str, log_format: LogFormat, stream: TextIO = sys.stderr) -> None:
    """Configure structlog and the standard library's logging to write to one stream.

    `auto` means readable lines on a terminal and JSON elsewhere. Levels: debug, info, warning, error.
    """
    number = _LEVELS[level.lower()]
    console = log_format == "console" or (log_format == "auto" and stream.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
        if console
        else [structlog.processors.format_exc_info, _put_level_first, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
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
    logging.root.setLevel(number)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)


def get_logger(**bound: object) -> structlog.typing.FilteringBoundLogger:
    """A logger with some keys already filled in."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**bound)
    return logger
