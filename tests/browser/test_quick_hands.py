"""A hand is quicker than a server: what is pressed too early begins where the answer leads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect
from steps import SOON_MS, Held, OpenPage, cell, generate, prompt, wait_until_done


def test_generate_pressed_while_the_page_opens_is_what_is_shown(
    browser: Browser, address: str
) -> None:
    """The answer to the opening, though it comes late, does not take the stage away again."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    opening = Held(page, "do/load")
    page.goto(address)
    page.locator("#sg-stage[aria-busy]").wait_for()
    opening.wait()
    page.click("#sg-generate")
    page.wait_for_timeout(300)  # long enough for an answer that should not come
    opening.let_go()
    wait_until_done(page)
    expect(page.locator("#sg-lineage .sg-round")).to_have_count(1)
    assert "place=" in page.url
    context.close()


def test_what_is_thrown_away_right_after_an_undo_stays_thrown_away(page: Page) -> None:
    """Changes of the library are made in the order in which they were asked for."""
    prompt(page).fill("a badger in a hurry")
    generate(page)
    page.click("#sg-library-open")
    page.fill("#sg-library input[type=search]", "badger in a hurry")
    items = page.locator("#sg-library .sg-item").filter(has_text="badger in a hurry")
    expect(items).to_have_count(4)  # found: of all works only one has these words
    undo = Held(page, '"trashed":false}')
    for left in (3, 2):
        items.first.hover()
        items.first.locator(".sg-item-remove").click()
        expect(items).to_have_count(left)
        if not undo.is_asked:
            page.click("#sg-library .sg-undo button")
            undo.wait()
    page.wait_for_timeout(300)  # long enough for a deletion that should not overtake
    undo.let_go()
    page.get_by_role("button", name="Trash", exact=True).click()
    expect(items).to_have_count(1)


def test_an_answer_that_comes_late_takes_nothing_back(page: Page) -> None:
    """The card is that of the last pick; a mark that is quicker than the card stays."""
    first = generate(page)
    early = Held(page, f'"id":"{first[2]}"')
    cell(page, 2).click()
    early.wait()
    cell(page, 3).click()
    expect(page.locator("#sg-picked .sg-facts")).to_be_visible()
    early.let_go()
    page.wait_for_timeout(300)  # long enough for a card that should not come
    expect(page.locator("#sg-picked .sg-lock-seed")).to_have_text("3")
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if held or f'"id":"{first[0]}"' not in (route.request.post_data or ""):
            route.fallback()
        else:
            held.append((route, route.fetch()))

    page.route(re.compile("/seedgrid/do/"), hold)
    cell(page, 0).click()
    page.locator("body").press("f")
    page.wait_for_timeout(300)  # long enough for the mark to be answered
    route, answer = held[0]
    route.fulfill(response=answer)
    expect(page.locator("#sg-picked .sg-facts")).to_be_visible()
    expect(page.locator("#sg-star")).to_have_attribute("aria-pressed", "true")
    expect(cell(page, 0)).to_have_attribute("aria-selected", "true")


class Refused:
    """The first question to the server that holds these words is refused; all are counted."""

    def __init__(self, page: Page, words: str, status: int) -> None:
        self._words = words
        self._status = status
        self.asked = 0
        page.route(re.compile("/seedgrid/do/"), self._refuse)

    def _refuse(self, route: Route) -> None:
        if self._words not in f"{route.request.url} {route.request.post_data or ''}":
            return route.fallback()
        self.asked += 1
        if self.asked > 1:
            return route.fallback()
        return route.fulfill(status=self._status, content_type="text/plain", body="not now")


@pytest.fixture
def troubled(open_page: OpenPage) -> Page:
    """A page whose console may speak of what was refused."""
    return open_page(loses_server=True)


def test_what_was_refused_is_said_and_can_be_pressed_again(troubled: Page) -> None:
    """A server that takes no question does not leave a page behind that asks no more."""
    for status in (429, 500):
        prompt(troubled).fill(f"a fox that was refused with {status}")
        refused = Refused(troubled, "do/generate", status)
        troubled.click("#sg-generate")
        expect(troubled.locator("#sg-status .sg-status-line")).to_contain_text(f"HTTP {status}")
        generate(troubled)
        assert refused.asked == 2


def test_a_page_whose_opening_was_refused_works(browser: Browser, address: str) -> None:
    """It is opened once, not again and again, and paints."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    loads: list[Page] = []
    page.on("load", lambda opened: loads.append(opened))
    refused = Refused(page, "do/load", 429)
    page.goto(address)
    page.wait_for_function("() => window.SeedGrid?.shows?.stage")
    while not refused.asked:
        page.wait_for_timeout(20)
    page.wait_for_timeout(300)  # long enough for an opening that should not come
    page.click("#sg-generate")
    wait_until_done(page)
    assert len(loads) == 1
    context.close()


def test_a_refused_change_of_the_library_is_asked_for_once_more(troubled: Page) -> None:
    """What the eye took away comes back, by one search and not by one after the other."""
    prompt(troubled).fill("a heron that stays")
    generate(troubled)
    troubled.click("#sg-library-open")
    troubled.fill("#sg-library input[type=search]", "heron that stays")
    items = troubled.locator("#sg-library .sg-item")
    expect(items).to_have_count(4)
    Refused(troubled, "do/trash", 429)
    searches = Refused(troubled, "do/search", 200)
    searches.asked = 1  # none of them is refused
    items.first.hover()
    items.first.locator(".sg-item-remove").click()
    expect(items).to_have_count(4)
    expect(troubled.locator("#sg-library .sg-said")).to_contain_text("HTTP 429")
    items.first.hover()
    items.first.locator(".sg-item-remove").click()
    expect(items).to_have_count(3)
    so_far = searches.asked
    troubled.wait_for_timeout(300)  # long enough for searches that should not come
    assert searches.asked == so_far
