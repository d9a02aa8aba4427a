import errno
import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest
import structlog

from app.log import DebugSwitch, LogFormat, bound, get_logger, set_level, set_up_logging

SECRET = 'pass"wörd\\with-all-sorts'


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Logging belongs to the whole process."""
    handlers, level = logging.root.handlers, logging.root.level
    yield
    logging.root.handlers = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """What was written, an object a line."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_its_level_and_message_first() -> None:
    """Also a line of the standard library's loggers, and one with a traceback."""
    stream, log = io.StringIO(), get_logger(job="provision")
    set_up_logging("info", "json", stream)
    log.info("instance ordered", instance="gpu-a")
    logging.getLogger("somebody").warning("it said %s", "this")
    try:
        raise ValueError("no luck")  # noqa: TRY301 - to have a traceback
    except ValueError:
        log.exception("broke off")
    ordered, foreign, broken = lines(stream)
    assert list(ordered)[:3] == ["timestamp", "level", "event"]
    assert (ordered["level"], ordered["event"], ordered["job"]) == ("info", "instance ordered", "provision")
    assert (foreign["level"], foreign["event"]) == ("warning", "it said this")
    assert "ValueError: no luck" in str(broken["exception"])


def test_a_terminal_gets_words() -> None:
    """And no JSON."""
    stream = io.StringIO()
    set_up_logging("info", "console", stream)
    get_logger().info("instance ordered", instance="gpu-a")
    assert "instance ordered" in stream.getvalue()
    assert "instance=gpu-a" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_the_level_changes_for_loggers_that_exist_already() -> None:
    """They are made when their modules are imported, long before anybody knows the level."""
    stream, log = io.StringIO(), get_logger()
    set_up_logging("warning", "json", stream)
    log.info("not yet")
    set_level("debug")
    log.debug("now")
    logging.getLogger("somebody").debug("theirs as well")
    set_level("error")
    log.warning("no more")
    assert [line["event"] for line in lines(stream)] == ["now", "theirs as well"]


def test_the_switch_goes_back_to_the_level_that_was() -> None:
    """Whatever it was."""
    stream, log, switch = io.StringIO(), get_logger(), DebugSwitch()
    set_up_logging("warning", "json", stream)
    assert switch.flick() == "debug"
    log.debug("seen")
    assert switch.flick() == "warning"
    log.info("not seen")
    assert [line["event"] for line in lines(stream)] == ["seen"]


def test_what_is_bound_is_on_every_line_of_that_thread_alone() -> None:
    """So one id leads through everything that one request caused."""
    stream, log = io.StringIO(), get_logger()
    set_up_logging("info", "json", stream)
    with bound(correlation_id="c-1"):
        log.info("mine")
        other = threading.Thread(target=lambda: log.info("another's"))
        other.start()
        other.join()
    log.info("later")
    assert [(line["event"], line.get("correlation_id")) for line in lines(stream)] == [
        ("mine", "c-1"),
        ("another's", None),
        ("later", None),
    ]


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_secret_is_hidden_however_it_gets_into_a_line(form: LogFormat) -> None:
    """F68: as a value, in text, as a key, nested, in a traceback, by a library, written as JSON or Python write it."""
    stream, log = io.StringIO(), get_logger()
    set_up_logging("debug", form, stream, secrets=(SECRET, "short"))
    log.info("as a value", token=SECRET)
    log.info("in a sentence", words=f"the secret is {SECRET}!")
    log.info("nested", headers={"Authorization": [f"Bearer {SECRET}"]}, **{SECRET: "key"})
    log.info("as json", body=json.dumps({"client_secret": SECRET}), text=repr(SECRET))
    logging.getLogger("library").warning("sent %s", {"secret": SECRET})
    try:
        raise ValueError(SECRET)  # noqa: TRY301 - to have a traceback
    except ValueError:
        log.exception("broke off")
    written = stream.getvalue()
    assert written.count("***") == 8
    assert "with-all-sorts" not in written
    log.info("a short cut is no secret")  # what is this short would garble every other line
    assert "a short cut" in stream.getvalue()


def test_a_traceback_shows_no_local_variables() -> None:
    """A token that was fetched a second ago is in no configuration, and nobody could hide it."""
    stream, log = io.StringIO(), get_logger()
    set_up_logging("debug", "console", stream)

    def call(token: str) -> None:
        raise ValueError(len(token))

    token = f"eyJhbGciOi-{len(stream.getvalue())}"  # not as the source spells it, whose lines are shown
    try:
        call(token)
    except ValueError:
        log.exception("broke off")
    assert "ValueError: 12" in stream.getvalue()
    assert token not in stream.getvalue()


class FullDisk(io.StringIO):
    """Takes nothing while it is full."""

    is_full = True

    def write(self, text: str, /) -> int:
        """As a file on a full disk does it."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_a_line_that_cannot_be_written_breaks_nothing() -> None:
    """The log may lie on the very disk that is full; answers and jobs go on, and later lines are there again."""
    stream = FullDisk()
    set_up_logging("info", "json", stream)
    get_logger().error("lost")
    stream.is_full = False
    get_logger().error("written")
    assert "written" in stream.getvalue()
    assert "lost" not in stream.getvalue()
