"""The dashboard at `/`: one page, made on the server, read-only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from app.clock import Clock
from app.domain.instance.lifecycle import InstanceState
from app.errors import StoreError
from app.ledger.ledger import Ledger
from app.ledger.serving import Reason, complaints, remarks
from app.web import view, words
from app.web.archive import Archive
from app.web.charts import HEIGHT, WIDTH

_HERE = Path(__file__).parent
HEADERS = {
    # Nothing from elsewhere, nothing inline: neither can a name from the cloud become a script.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_STATES = tuple(str(state) for state in InstanceState if not state.is_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Makes the page from the books and the archive. `optional` are remarks about parts that scaling does not need."""

    ledger: Ledger
    archive: Archive
    clock: Clock
    version: str
    optional: Callable[[], Sequence[Reason]]

    def routes(self) -> Sequence[BaseRoute]:
        """The page and what it refers to."""
        templates = _environment()

        def dashboard(request: Request) -> Response:
            return HTMLResponse(templates.get_template("dashboard.html").render(self._page(request)), headers=HEADERS)

        return [Route("/", dashboard), Mount("/static", StaticFiles(directory=_HERE / "static"))]

    def _page(self, request: Request) -> dict[str, object]:
        books, now = self.ledger.books, self.clock.now()
        groups = view.group_rows(books)
        asked = request.query_params
        page = asked.get("page", "1")
        instances = view.instance_page(
            books,
            now,
            group=asked.get("group", ""),
            state=asked.get("state", ""),
            number=int(page) if page.isdecimal() and len(page) <= len("999999") else 1,
        )
        try:
            past, trouble = view.past(self.archive, books, now), ""
        except StoreError as error:
            past, trouble = view.Past(events=(), sizes=(), costs=()), error.message
        return {
            "now": now,
            "version": self.version,
            "installation": books.installation,
            "position": self.ledger.head.position,
            "complaints": complaints(self.ledger),
            "remarks": (*remarks(books), *self.optional()),
            "groups": groups,
            "target": sum(row.target for row in groups),
            "hourly": view.hourly_total(groups),
            "instances": instances,
            "states": _STATES,
            "past": past,
            "past_trouble": trouble,
            "chart": {"width": WIDTH, "height": HEIGHT},
        }


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        span=words.span,
        clock_time=words.clock_time,
        machine_time=words.machine_time,
        money=lambda amount: words.money(amount.amount, amount.currency),
    )
    return environment
