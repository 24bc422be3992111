"""A real Chromium and the page on the fake backend. A console error fails the test it is in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)
from serving import Gate, serve
from steps import SOON_MS, OpenPage

DESKTOP = {"width": 1400, "height": 900}
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is Chromium without its windows: the tests take three quarters of the time."""

LATENCY_MS = os.environ.get("SEEDGRID_TEST_LATENCY_MS")
"""How late every answer is, for waits that end too early on a busy machine."""
NOT_ANSWERED = "Failed to load resource: "
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--process-per-site")


expect.set_options(timeout=SOON_MS)


def find_browser() -> str | None:
    """Return the browser's path: `SEEDGRID_BROWSER`, or the first on the search path."""
    named = os.environ.get("SEEDGRID_BROWSER")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        advice = "no Chromium; apt-get install chromium-headless-shell (or set SEEDGRID_BROWSER)"
        pytest.skip(advice)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page of most tests keeps its pictures."""
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="session")
def address(browser: Browser, shared_library: Path) -> Iterator[str]:  # noqa: ARG001 (no browser, no page)
    """The page with a painter that takes 0.03 s a step."""
    with serve(shared_library, step_delay_s=0.03) as address:
        yield address


@pytest.fixture(scope="session")
def their_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page of somebody else keeps its pictures, which may be lost."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="session")
def elsewhere(browser: Browser, their_library: Path) -> Iterator[str]:  # noqa: ARG001 (no browser, no page)
    """The page of somebody else: another library."""
    with serve(their_library, step_delay_s=0.03) as address:
        yield address


@pytest.fixture
def gate(shared_library: Path) -> Iterator[Gate]:
    """A shut gate: a run with the word "held" in its prompt waits for it before its first step."""
    gate = Gate(shared_library)
    gate.shut()
    yield gate
    gate.open()


@pytest.fixture(scope="session")
def shared(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """A visitor who comes again and again: scripts need to be fetched and compiled only once.

    They stay compiled as long as their process lives, which a tab that stays open keeps alive.
    """
    context = new_context(browser)
    context.new_page().goto(f"{address}healthz")
    yield context
    context.close()


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """A browser of its own, as patient in each of its pages as a busy machine needs it.

    Tests put scripts of theirs into the page, which its policy forbids: they pass by it, and one
    test of its own does not.
    """
    context = browser.new_context(**({"viewport": DESKTOP, "bypass_csp": True} | options))
    context.set_default_timeout(SOON_MS)
    return context


@pytest.fixture
def troubles() -> Iterator[list[str]]:
    """What must not happen on any page: errors in the console, requests to other machines."""
    troubles: list[str] = []
    yield troubles
    assert troubles == []


@pytest.fixture
def open_page(browser: Browser, address: str, troubles: list[str]) -> Iterator[OpenPage]:
    """Open the page in a browser of its own: `open_page("?__lang=ko", locale="ko-KR")`."""
    contexts = []

    def open_page(
        path: str = "",
        *,
        at: str = address,
        count: int = 4,
        loses_server: bool = False,
        **options: Any,
    ) -> Page:
        context = new_context(browser, **options)
        contexts.append(context)
        return visit(context, at, path, troubles, count=count, loses_server=loses_server)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def page(shared: BrowserContext, address: str, troubles: list[str]) -> Iterator[Page]:
    """The page as a new visitor sees it."""
    shared.clear_cookies()
    page = visit(shared, address, "", troubles)
    yield page
    page.goto(f"{address}healthz")  # A page that is left writes down where it was.
    page.evaluate("localStorage.clear()")
    page.close()


def visit(
    context: BrowserContext,
    address: str,
    path: str,
    troubles: list[str],
    *,
    count: int = 4,
    loses_server: bool = False,
) -> Page:
    """Open the page and wait until it shows its place with so many cells.

    Args:
        context: Whose page it is.
        address: Where the page is.
        path: What follows the address.
        troubles: Where what must not happen is written down.
        count: How many cells it will show.
        loses_server: Whether the test takes its server or its pictures away: the browser itself,
            not the page, then writes into the console, at any later time, that nobody answered.
    """
    page = context.new_page()
    if LATENCY_MS:
        network = {"offline": False, "latency": int(LATENCY_MS)}
        network |= {"downloadThroughput": -1, "uploadThroughput": -1}
        context.new_cdp_session(page).send("Network.emulateNetworkConditions", network)

    def on_console(message: ConsoleMessage) -> None:
        is_expected = loses_server and message.text.startswith(NOT_ANSWERED)
        if message.type == "error" and not is_expected:
            troubles.append(message.text)

    page.on("console", on_console)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda r: troubles.append(r.url) if is_elsewhere(r.url, address) else None)
    page.goto(address + path)
    page.locator(f"#sg-stage [data-cell='{count - 1}']").wait_for()
    page.locator("#sg-stage[aria-busy]").wait_for()
    page.locator("#sg-generate").wait_for()
    return page


def is_elsewhere(url: str, address: str) -> bool:
    """Tell whether a request leaves this machine."""
    return not url.startswith((address, "data:", "blob:"))
