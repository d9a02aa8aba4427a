"""The fixture of all tests that keeps logging as it is."""

import pytest
import structlog
from structlog.testing import capture_logs

from app.log import get_logger, set_up_logging


@pytest.mark.parametrize("number", [1, 2])
def test_a_test_that_sets_logging_up_silences_no_other(number: int) -> None:
    """Both would fail after one another otherwise, in whatever order."""
    with capture_logs() as lines:
        get_logger().info("heard", number=number)
    assert [line["number"] for line in lines] == [number]
    set_up_logging("error", "json")
    assert structlog.get_config()["wrapper_class"] is not structlog.BoundLogger
