"""The dashboard in a real Chromium, as people and their tools use it."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

from app.domain.offering import Contract
from app.errors import Rejected
from tests.reconcile.house import House, spec
from tests.reconcile.world import refuses

from .site import Site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
    pytest.mark.timeout(300),  # a browser on a machine that does much else
]

# No sandbox: tests run as root in containers. The rest keeps it from calling home.
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update"),
)
_LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1440), ("dark", 390))
_PATIENCE_MS = 120_000
expect.set_options(timeout=_PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS, timeout=_PATIENCE_MS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator["Opener"]:
    """Opens pages and holds them to what no page may do."""
    opener = Opener(browser)
    yield opener
    opener.close()


class Opener:
    """Pages of one test. Errors in the console and requests to other hosts fail it at the end."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pages: list[Page] = []
        self._is_ending = False
        self._complaints: list[str] = []

    def __call__(self, site: Site, path: str = "/", **settings: object) -> Page:
        """A page in a context of its own."""
        context = self._browser.new_context(**settings)  # type: ignore[arg-type] # playwright checks them itself
        context.set_default_timeout(_PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda message: self._hear(message, site))
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._look(request, site))
        page.goto(site.url + path)
        self._pages.append(page)
        return page

    def _hear(self, message: ConsoleMessage, site: Site) -> None:
        """A page may ask once more between its site's end and its own: heard while the pages are being closed."""
        has_asked_too_late = self._is_ending and site.is_closed and "ERR_CONNECTION_REFUSED" in message.text
        if message.type == "error" and not has_asked_too_late:
            self._complaints.append(message.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self._complaints.append(dialog.message)
        dialog.dismiss()

    def _look(self, request: Request, site: Site) -> None:
        if not request.url.startswith(site.url):
            self._complaints.append(request.url)

    def forgive(self) -> list[str]:
        """Complaints so far, which were meant to be."""
        forgiven, self._complaints = self._complaints, []
        return forgiven

    def close(self) -> None:
        """Close all pages."""
        self._is_ending = True
        for page in self._pages:
            page.context.close()
        assert self._complaints == []


def busy(house: House, count: int) -> None:
    """So many instances, one that could not be had; if there are more, one of the others on its way out; and a past."""
    house.configure(spec(max_size=400), spec("spot", contracts=(Contract.SPOT,)))
    if count > 1:
        house.running(count - 1)
    house.clock.advance(timedelta(hours=5))
    house.world.on_create.append(refuses(Rejected("the image does not fit the type", code="invalid_request")))
    house.grow(1, "spot")
    house.provision_until_quiet()
    if count > 1:
        house.delete(house.books.members("h100").listed[0].name)


@pytest.mark.parametrize("count", [1, 300])
def test_axe_finds_nothing(house: House, open_page: Opener, count: int) -> None:
    """Contrast, names, roles, order: nothing of any weight, light on a screen and dark on a phone."""
    busy(house, count)
    with Site(house) as site:
        page = open_page(site, bypass_csp=True)  # axe is put in from outside
        for scheme, width in _LOOKS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
            assert [(violation["id"], violation["impact"], scheme, width) for violation in found] == []


def test_nothing_is_missing_without_javascript(house: House, open_page: Opener) -> None:
    """Every figure is there, a hundred machines a page, and the filter works: it is a form."""
    busy(house, 300)
    with Site(house) as site:
        page = open_page(site, java_script_enabled=False)
        assert page.locator("#groups tbody tr").count() == 2
        assert page.locator("noscript").is_visible()
        assert page.locator("#instances tbody tr").count() == 100
        page.locator("#instances nav a").nth(2).click()
        page.wait_for_url("**/?group=&state=&page=3**")
        assert page.locator("#instances tbody tr").count() == 100
        page.locator("#filter-state").select_option("failed")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**/?group=&state=failed**")
        assert page.locator("#instances tbody tr").count() == 1
        assert "the image does not fit the type" in page.locator("#instances tbody").inner_text()


def test_it_follows_what_happens(house: House, open_page: Opener) -> None:
    """A scale-up shows without a reload, is announced, and does not take the focus away."""
    with Site(house) as site:
        page = open_page(site)
        page.get_by_role("link", name="h100").focus()
        house.grow(3)
        expect(page.locator("#live")).to_have_text("4 new events")
        expect(page.locator("#groups tbody td:nth-child(3)").first).to_have_text("3")
        assert page.evaluate("document.activeElement.textContent") == "h100"
        assert page.locator("#instances tbody tr").count() == 3


def test_an_open_choice_is_not_disturbed(house: House, open_page: Opener) -> None:
    """What somebody is choosing in stays as it is while the rest goes on."""
    with Site(house) as site:
        page = open_page(site)
        page.locator("#filter-group").focus()
        page.keyboard.type("spot")
        house.grow(1)
        expect(page.locator("#live")).to_have_text("2 new events")
        assert page.locator("#filter-group").input_value() == "spot"
        assert page.evaluate("document.activeElement.id") == "filter-group"


def test_a_server_that_is_gone_is_told(house: House, open_page: Opener) -> None:
    """Old figures must not look like new ones."""
    with Site(house) as site:
        page = open_page(site)
    expect(page.locator("#live")).to_contain_text("What is shown may be old")
    assert all("ERR_" in complaint for complaint in open_page.forgive())


def test_it_works_by_keyboard(house: House, open_page: Opener) -> None:
    """The first stop skips the navigation; the focus is to be seen; a group's link filters."""
    busy(house, 2)
    with Site(house) as site:
        page = open_page(site)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index] # it is visible now
        page.keyboard.press("Enter")
        page.wait_for_url("**/#groups")
        while page.evaluate("document.activeElement.textContent") != "spot":
            page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/?group=spot#instances")
        assert page.locator("#instances tbody tr").count() == 1


def test_it_fits_a_phone(house: House, open_page: Opener) -> None:
    """Wide tables scroll by themselves; the page does not. What says how a machine is comes first, in one line."""
    busy(house, 3)
    with Site(house) as site:
        page = open_page(site, viewport={"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        state = page.locator("#instances tbody tr").nth(1).locator(".state").bounding_box()
        assert state is not None
        assert state["x"] < 300
        row = page.locator("#instances tbody tr").nth(1).bounding_box()
        assert row is not None
        assert row["height"] < 2 * state["height"]


def test_a_browser_can_show_the_token(house: House, open_page: Opener, tmp_path: Path) -> None:
    """As the password it asks for; with it the page, its styles and its news come through."""
    token_file = tmp_path / "token"
    token_file.write_text("0123456789abcdef0123")
    with Site(house, token_file=token_file) as site:
        page = open_page(site, http_credentials={"username": "me", "password": "0123456789abcdef0123"})
        assert page.locator("#groups tbody tr").count() == 2
        assert page.evaluate("getComputedStyle(document.querySelector('section')).borderRadius") == "8px"
        house.grow(1)
        expect(page.locator("#groups tbody td:nth-child(3)").first).to_have_text("1")
    open_page.forgive()  # the first request, without the token
