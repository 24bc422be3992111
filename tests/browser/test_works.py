"""The works of one tab: earlier ones stay on the rail, folded, and Back leads to them."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect
from serving import Gate
from steps import (
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    wait_for_new_round,
    wait_for_turns,
    wait_until_done,
)

from seedgrid.core.prompts import GUIDE_PROMPT


def test_earlier_works_stay_on_the_rail_and_back_leads_to_them(open_page: OpenPage) -> None:
    """Other seeds and other words begin a work below the ones before, which open again.

    “New work” begins clean; the browser goes back all the same.
    """
    page = open_page()
    generate(page)
    refined = refine(page, 1)
    page.click("#sg-next")
    wait_for_new_round(page, refined)
    prompt(page).fill("a boat")
    boats = generate(page)
    expect(_folded(page)).to_have_text([GUIDE_PROMPT, GUIDE_PROMPT])
    _folded(page).first.click()
    wait_for_new_round(page, boats)
    assert ids(page) == refined, "it opens where it was left"
    expect(prompt(page)).to_have_value(GUIDE_PROMPT)
    page.go_forward()
    page.go_back()
    wait_for_turns(page)
    assert ids(page) == boats, "the browser's own way is kept"
    for _ in range(2):
        page.click("#sg-back")
        wait_for_turns(page)
    wait_until_done(page)
    assert ids(page) == refined
    page.reload()
    wait_until_done(page)
    expect(_folded(page)).to_have_count(2)
    expect(page.locator("#sg-back")).to_be_enabled()
    page.click("#sg-new")
    expect(prompt(page)).to_have_value("")
    expect(prompt(page)).to_be_focused()
    expect(page.locator("#sg-lineage :is(.sg-round, .sg-work)")).to_have_count(0)
    expect(page.locator("#sg-back")).to_be_disabled()
    prompt(page).fill("a ship")
    generate(page)
    expect(_folded(page)).to_have_count(0)
    for _ in range(2):
        page.go_back()
        wait_for_turns(page)
    wait_until_done(page)
    assert ids(page) == refined


def test_a_work_that_is_still_painted_forms_when_one_comes_back(page: Page, gate: Gate) -> None:
    """Its pictures come as they are made, though another work was begun meanwhile."""
    prompt(page).fill("a held pony")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    prompt(page).fill("a boat that waits")
    page.click("#sg-generate")
    expect(page.locator("#sg-queue li")).to_have_count(1)
    _folded(page).filter(has_text="a held pony").click()
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    gate.open()
    wait_until_done(page)
    assert page.locator("#sg-stage img").first.get_attribute("alt") == "a held pony"


def _folded(page: Page) -> Locator:
    return page.locator("#sg-lineage .sg-work")


def test_a_work_stopped_before_its_first_picture_is_in_nobodys_way(page: Page, gate: Gate) -> None:
    """The browser goes back to it and forward again; Back leads to the work before."""
    prompt(page).fill("a raft")
    boats = generate(page)
    prompt(page).fill("a held donkey")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    with page.expect_response("**/do/stop"):
        page.keyboard.press("Escape")
    gate.open()
    expect(cell(page, 0)).to_have_attribute("data-state", "stopped")
    prompt(page).fill("a canoe")
    ships = generate(page)
    page.go_back()
    wait_for_turns(page)
    page.go_forward()
    wait_for_turns(page)
    wait_until_done(page)
    assert ids(page) == ships
    page.click("#sg-back")
    wait_for_turns(page)
    wait_until_done(page)
    assert ids(page) == boats
