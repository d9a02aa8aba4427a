"""A house's website on a port of this machine, and what a reader finds on it."""

import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry

from app.archive import StoredPast
from app.ledger.serving import Reason
from app.web.archive import Archive
from app.web.dashboard import Dashboard
from app.web.pages import Parts, build_pages
from app.web.server import WebServer
from tests.reconcile.house import House

_VOID = frozenset({"meta", "link", "input", "br", "path", "rect"})


class Site:
    """The pages of a house, served until the end of the `with`."""

    def __init__(
        self,
        house: House,
        *,
        token_file: Path | None = None,
        archive: Archive | None = None,
        required: Sequence[Reason] = (),
        optional: Sequence[Reason] = (),
    ) -> None:
        dashboard = Dashboard(
            ledger=house.ledger,
            archive=archive or StoredPast(database=house.path, clock=house.clock),
            clock=house.clock,
            version="1.2.3",
            optional=lambda: optional,
        )
        parts = Parts(
            ledger=house.ledger,
            registry=CollectorRegistry(),
            is_alive=lambda: True,
            dashboard=dashboard,
            required=lambda: required,
            optional=lambda: optional,
            token_file=token_file,
        )
        self._server = WebServer(build_pages(parts), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self.is_closed = False

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_closed = True
        self._server.stop()

    def get(self, path: str = "/", headers: Mapping[str, str] | None = None) -> "Answer":
        """What a client gets."""
        request = urllib.request.Request(self.url + path, headers=dict(headers or {}))  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
                return Answer(answer.status, dict(answer.headers), answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read().decode())

    def page(self, path: str = "/") -> "Page":
        """The dashboard, read."""
        answer = self.get(path)
        assert answer.status == 200, answer.text
        return Page(answer.text)


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers, body."""

    status: int
    headers: Mapping[str, str]
    text: str


class Page(HTMLParser):
    """Text and tables of a page by the ids of its sections. Tags that do not nest fail the test."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.texts: dict[str, str] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self._section = ""
        self.feed(html)
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element."""
        attributes = dict(attrs)
        self.attributes.append((tag, attributes))
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = attributes.get("id") or ""
        if tag == "tr":
            self.tables.setdefault(self._section, []).append([])
        if tag in {"td", "th"}:
            self.tables[self._section][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that is closed at once."""
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        self._open.pop()
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        """Text."""
        words = " ".join(data.split())
        if not words:
            return
        self.texts[self._section] = f"{self.texts.get(self._section, '')} {words}".strip()
        if {"td", "th"} & set(self._open):
            row = self.tables[self._section][-1]
            row[-1] = f"{row[-1]} {words}".strip()

    def rows(self, section: str) -> list[list[str]]:
        """The table of a section without its head."""
        return self.tables[section][1:]
