"""The queue: Enter while something is painted adds to it, and it is seen; no button moves."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from serving import Gate
from steps import OpenPage, cell, generate, prompt, refine, seeds, wait_until_done, wait_until_open

PLACES = """() => Object.fromEntries(
    [...document.querySelectorAll("#sg-card button, #sg-below button")]
    .filter((each) => each.offsetParent && each.id && !each.closest("#sg-tools")) // on the pick
    .map((each) => [each.id, JSON.stringify(each.getBoundingClientRect())]))"""


def test_enter_while_painting_adds_to_the_queue(open_page: OpenPage, gate: Gate) -> None:
    """What was asked for before is a chip under the bar, after a reload too, until stopped.

    “Add” stands where “Generate” was: a double click does not add the same words to themselves.
    """
    page = open_page()
    wait_until_open(page)
    prompt(page).fill("a held fox")
    page.locator("#sg-generate").dblclick()
    expect(page.locator("#sg-stop")).to_be_visible()
    expect(page.locator("#sg-generate")).to_have_text("Add")
    page.locator("#sg-generate").click()
    page.wait_for_timeout(300)  # long enough for a run that should not come
    expect(page.locator("#sg-queue li")).to_have_count(0)
    prompt(page).fill("a held owl")
    page.keyboard.press("Enter")
    chips = page.locator("#sg-queue li")
    expect(chips).to_have_text(["a held fox0 of 4×"])
    page.reload()
    expect(chips).to_have_text(["a held fox0 of 4×"])
    chips.get_by_role("button").click()
    expect(chips).to_have_count(0)
    gate.open()
    wait_until_done(page)
    expect(page.locator("#sg-generate")).to_have_text("Generate")


def test_no_button_of_the_card_moves_while_one_works(page: Page) -> None:
    """From the pick on, through a refinement and the next pick."""
    prompt(page).fill("a still fox")
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-picked .sg-facts")).to_be_visible()
    before = page.evaluate(PLACES)
    assert {"sg-refine", "sg-subtle", "sg-final", "sg-next"} <= before.keys()
    refine(page, 1)
    expect(page.locator("#sg-hint")).to_contain_text("Four variations")
    assert page.evaluate(PLACES) == page.evaluate(PLACES) | before
    cell(page, 2).click()
    expect(page.locator("#sg-hint")).to_contain_text("keeps this picture")
    assert page.evaluate(PLACES) == page.evaluate(PLACES) | before


def test_a_round_of_one_picture_picks_it(page: Page) -> None:
    """What is saved, refined or enlarged is what stands there."""
    wait_until_open(page)
    prompt(page).fill("a fox alone")
    seeds(page).fill("7")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-picked .sg-lock-seed")).to_have_text("7")
