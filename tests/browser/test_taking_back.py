"""Ctrl+Z takes back a pick and words that a chip wrote; Copy picture."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect
from steps import (
    OpenPage,
    cell,
    generate,
    ids,
    seeds_shown,
    status,
    variation,
    wait_for_new_round,
    wait_for_turns,
)


def test_ctrl_z_takes_back_a_pick_and_the_words_of_a_chip(page: Page) -> None:
    """Each in its turn, the newest first; the four lines of a chip in one go.

    What a chip writes is what is painted.
    """
    generate(page)
    cell(page, 1).click()
    cell(page, 1).click()
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")  # a second click keeps it
    cell(page, 2).click()
    page.wait_for_timeout(100)  # two steps, and not one
    before = [variation(page, number).input_value() for number in (1, 2, 3, 4)]
    lines = ["guidance 4", "guidance 5.5", "guidance 11", "guidance 15"]
    guidance = page.locator("#sg-fours .sg-chip", has_text="Guidance")
    guidance.click()
    for number, words in enumerate(lines, start=1):
        expect(variation(page, number)).to_have_value(words)
    page.keyboard.press("Control+z")
    for number, words in enumerate(before, start=1):
        expect(variation(page, number)).to_have_value(words)
    page.keyboard.press("Control+z")
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Control+z")
    expect(page.locator("#sg-stage [aria-selected='true']")).to_have_count(0)
    wait_for_turns(page)
    expect(page.locator("#sg-refine")).to_be_disabled()
    cell(page, 1).click()
    guidance.click()
    first = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, first)
    expect(page.locator("#sg-stage .sg-caption")).to_have_text(lines)
    assert seeds_shown(page) == ["1"] * 4


def test_a_picture_is_copied_for_other_programs(open_page: OpenPage) -> None:
    """The clipboard holds it as a PNG of its own size."""
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    generate(page)
    cell(page, 1).click()
    page.click("#sg-copy")
    expect(status(page)).to_have_text("Copied")
    expect(page.locator("#sg-copy")).to_have_attribute("data-copied", "")
    size = page.evaluate(
        """async () => {
            const [item] = await navigator.clipboard.read();
            const picture = await createImageBitmap(await item.getType("image/png"));
            return [picture.width, picture.height]; }"""
    )
    assert size == page.locator("#sg-stage img").nth(1).evaluate(
        "(image) => [image.naturalWidth, image.naturalHeight]"
    )


def test_a_browser_that_refuses_the_clipboard_is_said(page: Page, troubles: list[str]) -> None:
    """With what to do, instead of "Copied"."""

    def refuse(route: Route) -> None:
        answer = route.fetch()
        policy = {"permissions-policy": "clipboard-write=()"}
        route.fulfill(response=answer, headers=answer.headers | policy)

    page.route(page.url, refuse)
    page.reload()
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-copy")).to_be_enabled()
    page.click("#sg-copy")
    expect(status(page)).to_contain_text("does not let this page copy")
    expect(page.locator("#sg-copy")).not_to_have_attribute("data-copied", "")
    assert "Permissions policy" in troubles.pop()
