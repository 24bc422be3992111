"""Holding a composition on the page: a slider under Refine, by model, where there are steps."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import cell, generate, ids, prompt, seeds, set_steps, wait_for_new_round


def slide(page: Page, share: str) -> None:
    """Move the slider as its keys do."""
    page.locator("#sg-hold").evaluate(
        """(slider, share) => {
            slider.value = share;
            for (const kind of ["input", "change"])
                slider.dispatchEvent(new Event(kind, {bubbles: true})); }""",
        share,
    )


def test_a_refinement_holds_what_the_slider_says(page: Page) -> None:
    """It is told in the caption, is remembered, and is not offered below four steps."""
    expect(page.locator("#sg-hold")).to_be_hidden()
    prompt(page).fill("a fox")
    seeds(page).fill("61-64")
    set_steps(page, 5)
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-hold")).to_be_visible()
    expect(page.locator("#sg-hold-row output")).to_have_text("seed only")
    slide(page, "0.4")
    expect(page.locator("#sg-hold-row output")).to_have_text("40 %")
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    expect(page.locator("#sg-stage")).to_contain_text("hold 0.4")
    cell(page, 2).click()
    expect(page.locator("#sg-hold")).to_have_value("0.4")
    page.reload()
    cell(page, 0).click()
    expect(page.locator("#sg-hold-row output")).to_have_text("40 %")
    set_steps(page, 3)
    generate(page)
    cell(page, 0).click()
    expect(page.locator("#sg-hold")).to_be_hidden()
    before = ids(page)
    page.click("#sg-refine")  # What is remembered is not asked of so few steps.
    wait_for_new_round(page, before)
