"""Styles: four variations that an artist keeps under a name, in this browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import OpenPage, cell, generate, variation

MINE = (", at night", ", in the rain", ", (golden:1.2) light", "guidance 5")


def picked(page: Page) -> None:
    cell(page, 1).click()
    expect(page.locator("#sg-fours .sg-four-keep")).to_be_visible()


def test_four_variations_are_kept_by_name_used_and_forgotten(open_page: OpenPage) -> None:
    """By keyboard; they are there after a reload, and for the next picture."""
    page = open_page()
    generate(page)
    picked(page)
    for number, line in enumerate(MINE, start=1):
        variation(page, number).fill(line)
    page.locator("#sg-fours .sg-four-keep").press("Enter")
    page.get_by_label("Name of these four").fill("my weather")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="my weather", exact=True)).to_be_visible()
    expect(page.locator("#sg-fours .sg-four-keep")).to_be_focused()
    page.reload()
    picked(page)
    page.locator("#sg-fours").get_by_role("button", name="Words", exact=True).click()
    expect(variation(page, 1)).not_to_have_value(MINE[0])
    page.get_by_role("button", name="my weather", exact=True).press("Enter")
    for number, line in enumerate(MINE, start=1):
        expect(variation(page, number)).to_have_value(line)
    page.get_by_role("button", name="Forget “my weather”").press("Enter")
    expect(page.get_by_role("button", name="my weather", exact=True)).to_have_count(0)
    page.locator("#sg-fours .sg-four-keep").press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#sg-fours .sg-four-keep")).to_be_focused()
