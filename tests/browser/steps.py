"""What a person does on the page, in words."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, Route, expect
from playwright.sync_api import TimeoutError as NeverCame

SOON_MS = 60_000
SLOW_MS = 180_000
"""For a real model, which takes its time, and more on a busy machine."""

OpenPage = Callable[..., Page]

CELLS = "#sg-stage [data-cell]"
PICTURES = f"{CELLS}[data-state='done'] img"


def prompt(page: Page) -> Locator:
    return page.locator("#sg-prompt textarea")


def seeds(page: Page) -> Locator:
    return page.locator("#sg-seeds input")


def variation(page: Page, number: int) -> Locator:
    return page.locator(f"#sg-vary-{number} input")


def cell(page: Page, index: int) -> Locator:
    return page.locator(f"#sg-stage [data-cell='{index}']")


def wait_until_done(page: Page, count: int = 4) -> None:
    """Wait until all pictures are there and loaded, and nothing is going on."""
    expect(page.locator(PICTURES)).to_have_count(count)
    expect(page.locator("#sg-stage")).to_have_attribute("aria-busy", "false")
    page.wait_for_function(
        """() => [...document.querySelectorAll("#sg-stage img, #sg-lineage img")].every(
            (image) => image.complete)"""
    )


def wait_for_new_round(page: Page, before: list[str], count: int = 4) -> None:
    """Wait until the stage shows so many other pictures than before, all finished."""
    try:
        page.wait_for_function(
            """before => {
                const isNew = ({dataset}) =>
                    dataset.state === "done" && !before.includes(dataset.pictureId);
                const cells = [...document.querySelectorAll("#sg-stage [data-cell]")];
                return cells.length > 0 && cells.every(isNew); }""",
            arg=before,
        )
    except NeverCame as error:
        said, stage = status(page).inner_text(), page.locator("#sg-stage").inner_html()
        raise AssertionError(f"no new round after {before}; {said!r}; {stage[:2000]}") from error
    wait_until_done(page, count)


def set_steps(page: Page, steps: int) -> None:
    """Give the run some length."""
    box = page.locator("#sg-steps input")
    if not box.is_visible():
        page.locator("#sg-settings > summary").click()
    expect(box).to_have_attribute("placeholder", re.compile(r"\d"))  # the offers have come
    box.fill(str(steps))


def wait_for_turns(page: Page) -> None:
    """Wait until every question about the place that was asked before has its answer."""
    page.evaluate("() => SeedGrid.turnsDone()")


def open_experts(page: Page) -> None:
    """Open the settings, and in them those that are folded away once more."""
    if not page.locator("#sg-steps input").is_visible():
        page.locator("#sg-settings > summary").click()
    page.click("#sg-expert-open")
    expect(page.locator("#sg-expert")).to_have_attribute("open", "")


def wait_until_open(page: Page) -> None:
    """Wait until the server has said where the page is: before that the stage shows nothing yet."""
    page.wait_for_function("() => SeedGrid.placeNow().epoch >= 0")


def generate(page: Page) -> list[str]:
    wait_until_open(page)
    before = ids(page)
    page.click("#sg-generate")
    wait_for_new_round(page, before)
    return ids(page)


def refine(page: Page, index: int) -> list[str]:
    wait_until_open(page)
    before = ids(page)
    cell(page, index).click()
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    return ids(page)


def ids(page: Page) -> list[str]:
    """The picture ids on the stage, cell by cell; empty ones where nothing is finished."""
    return page.eval_on_selector_all(CELLS, "cells => cells.map((c) => c.dataset.pictureId)")


def seeds_shown(page: Page) -> list[str]:
    return page.eval_on_selector_all(CELLS, "cells => cells.map((c) => c.dataset.seed)")


def status(page: Page) -> Locator:
    return page.locator("#sg-status")


class Held:
    """The first question whose address or body holds these words, until it is let go."""

    def __init__(self, page: Page, words: str) -> None:
        self._page = page
        self._words = words
        self._route: Route | None = None
        page.route(re.compile("/seedgrid/"), self._hold)

    def _hold(self, route: Route) -> None:
        asked = f"{route.request.url} {route.request.post_data or ''}"
        if self._route is None and self._words in asked:
            self._route = route
        else:
            route.fallback()

    @property
    def is_asked(self) -> bool:
        return self._route is not None

    def wait(self) -> Route:
        """Wait until it was asked."""
        while self._route is None:
            self._page.wait_for_timeout(20)
        return self._route

    def let_go(self) -> None:
        """Let it go, and wait for its answer."""
        route = self.wait()
        with self._page.expect_response(lambda answer: answer.request == route.request):
            route.continue_()
