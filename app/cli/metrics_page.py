"""The page of metrics: `python -m app.cli.metrics_page > docs/metrics.md`."""

import sys
from collections.abc import Iterator

from app.metrics import Description, Metrics
from app.reload import RELOAD_METRICS
from app.web.book_metrics import BOOK_METRICS
from app.web.process_metrics import PROCESS_METRICS

_HEAD = """\
# Metrics

Prometheus reads them at `/metrics` of the HTTP port.
This page is made from the code: `python -m app.cli.metrics_page > docs/metrics.md`.

A histogram has the series `_bucket`, `_sum` and `_count`.
Times are seconds since 1970, so `time() - …` is an age.
Money is in the catalogue's currency.

"""


def descriptions() -> tuple[Description, ...]:
    """Every metric that the server exposes, by name."""
    computed = (metric.description for metric in (*BOOK_METRICS, *PROCESS_METRICS, *RELOAD_METRICS))
    return tuple(sorted((*Metrics().described, *computed), key=lambda description: description.name))


def page() -> str:
    """The page as Markdown."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| metric | kind | labels | what it says |"
    yield "|---|---|---|---|"
    for metric in descriptions():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.words} |"


if __name__ == "__main__":
    sys.stdout.write(page())
