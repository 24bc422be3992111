"""Ctrl+Z takes back a pick, words that a chip wrote, and what was thrown away; Copy picture."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import OpenPage, cell, generate, prompt, variation, wait_for_turns


def test_ctrl_z_takes_back_a_pick_and_the_words_of_a_chip(page: Page) -> None:
    """Each in its turn, the newest first; the four lines of a chip in one go."""
    generate(page)
    cell(page, 1).click()
    cell(page, 2).click()
    page.wait_for_timeout(100)  # two steps, and not one
    before = [variation(page, number).input_value() for number in (1, 2, 3, 4)]
    page.locator("#sg-fours .sg-chip", has_text="Steps").click()
    expect(variation(page, 4)).to_have_value("steps 16")
    page.keyboard.press("Control+z")
    for number, words in enumerate(before, start=1):
        expect(variation(page, number)).to_have_value(words)
    page.keyboard.press("Control+z")
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Control+z")
    expect(page.locator("#sg-stage [aria-selected='true']")).to_have_count(0)
    wait_for_turns(page)
    expect(page.locator("#sg-refine")).to_be_disabled()


def test_ctrl_z_takes_back_what_was_thrown_away(page: Page) -> None:
    """As the button does that stands there for a while."""
    prompt(page).fill("an otter thrown away")
    generate(page)
    page.click("#sg-library-open")
    page.fill("#sg-library input[type=search]", "otter thrown")
    items = page.locator("#sg-library .sg-item").filter(has_text="an otter thrown away")
    expect(items).to_have_count(4)
    items.first.hover()
    items.first.locator(".sg-item-remove").click()
    expect(items).to_have_count(3)
    page.keyboard.press("Control+z")
    expect(items).to_have_count(4)
    expect(page.locator(".sg-undo")).to_be_hidden()


def test_a_picture_is_copied_for_other_programs(open_page: OpenPage) -> None:
    """The clipboard holds it as a PNG of its own size."""
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    generate(page)
    cell(page, 1).click()
    page.click("#sg-copy")
    expect(page.locator("#sg-copy")).to_have_text("Copied")
    size = page.evaluate(
        """async () => {
            const [item] = await navigator.clipboard.read();
            const picture = await createImageBitmap(await item.getType("image/png"));
            return [picture.width, picture.height]; }"""
    )
    assert size == page.locator("#sg-stage img").nth(1).evaluate(
        "(image) => [image.naturalWidth, image.naturalHeight]"
    )
