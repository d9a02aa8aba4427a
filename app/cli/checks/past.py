"""What the log of the last day says, if there is a database."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from app.cli.checks.finding import Finding, fine, unknown, warning
from app.config.model import Config
from app.errors import StoreError
from app.store import queries
from app.store.reading import asking

_LATELY = timedelta(days=1)


def quota(config: Config, now: datetime) -> Iterator[Finding]:
    """Verda's API tells no quota; refusals tell that one is used up."""
    since = (now - _LATELY).isoformat(timespec="microseconds").replace("+00:00", "Z")
    try:
        with asking(config.database) as moment:
            wanted = queries.Wanted(type="instance.create-refused", since=since)
            refusals = queries.events(moment, wanted, limit=1000)
    except StoreError as error:
        yield unknown("quota", error.message, "it is made by the first `serve`")
        return
    used_up = [row for row in refusals if '"code":"quota-exceeded"' in row["data"]]
    if used_up:
        yield warning("quota", f"{used_up[-1]['recorded_at']}: {used_up[-1]['what']}", "ask Verda for a higher quota")
    else:
        yield fine("quota", "no order was refused for it in the last day")
