"""What holds for all tests."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# A machine that does much else draws examples slowly; that says nothing about the program.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _logging_stays_as_it_is() -> Iterator[None]:
    """Commands set logging up for their process; the next test in this one must not hear less of it."""
    before, level, handlers = structlog.get_config(), logging.root.level, logging.root.handlers
    yield
    structlog.configure(**before)
    logging.root.setLevel(level)
    logging.root.handlers = handlers
