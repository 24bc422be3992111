"""Where things stand: the next step is in sight at every size, and pictures use the room."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from steps import (
    CELLS,
    PICTURES,
    Held,
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    status,
    wait_for_new_round,
    wait_until_done,
)

SIZES = (
    *((360, 600), (390, 844), (640, 600), (768, 1024), (860, 600), (861, 600), (1024, 600)),
    *((1024, 768), (1080, 700), (1280, 720), (1400, 900), (1920, 1080), (2560, 600), (2560, 1440)),
)
LONG_PROMPT = "Labrador in the style of Vermeer, " + "with a long story around it, " * 12
ON_TOP = """(selector) => {
    const box = document.querySelector(selector).getBoundingClientRect();
    const isInside = box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
    const seen = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    return isInside && seen?.closest(selector) !== null;
}"""
IS_WHOLE = """(selector) => {
    const box = document.querySelector(selector).getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight;
}"""
CUT = """all => all.filter((e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight)
    .map((e) => e.textContent)"""
LINES = (
    "all => all.map((e) => Math.round(e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)))"
)
MEET = """(selectors) => {
    const [a, b] = selectors.map((each) => document.querySelector(each).getBoundingClientRect());
    return a.right > b.left && b.right > a.left && a.bottom > b.top && b.bottom > a.top;
}"""
OVER_ART = """([words, pictures]) => {
    const boxes = (selector) =>
        [...document.querySelectorAll(selector)].map((e) => e.getBoundingClientRect());
    const meet = (a, b) =>
        a.bottom > b.top && b.bottom > a.top && a.right > b.left && b.right > a.left;
    return boxes(words).filter((each) => boxes(pictures).some((picture) => meet(each, picture)));
}"""
WITHIN = """([inner, outer]) => {
    const box = (selector) => document.querySelector(selector).getBoundingClientRect();
    const [a, b] = [box(inner), box(outer)];
    return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
}"""
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"


def test_the_next_step_is_in_sight_at_every_size(open_page: OpenPage) -> None:
    """Generate before a grid and Refine after a pick, whole and not covered, without scrolling."""
    page = open_page()
    hidden = _sizes_without(page, "#sg-generate")
    prompt(page).fill(LONG_PROMPT)
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-refine")).to_be_enabled()
    assert hidden + _sizes_without(page, "#sg-refine") == []


def test_the_pictures_use_the_room_of_a_large_window(open_page: OpenPage) -> None:
    """Four square pictures are as tall as the window allows; a wide window adds no empty middle.

    A prompt of four lines takes room from the pictures, and hides none of them.
    """
    page = open_page()
    generate(page)
    for width, height, least in ((1920, 1080, 445), (2560, 1440, 620), (1024, 768, 250)):
        page.set_viewport_size({"width": width, "height": height})
        box = cell(page, 0).bounding_box()
        assert box["width"] >= least, (width, height)
    page.set_viewport_size({"width": 1400, "height": 900})
    box = page.locator("#sg-stage .sg-grid").bounding_box()
    assert box["y"] + box["height"] <= 900
    assert box["height"] > 700
    status(page).evaluate("line => line.scrollIntoView({block: 'nearest'})")  # as an error does
    assert page.evaluate("scrollY") == 0
    prompt(page).fill(LONG_PROMPT)
    page.wait_for_function(IS_WHOLE, arg="#sg-stage .sg-grid")
    page.wait_for_function(IS_WHOLE, arg="#sg-status")
    box = page.locator("#sg-generate").bounding_box()
    assert box["height"] < 50


def _sizes_without(page: Page, button: str) -> list[tuple[str, int, int]]:
    """Return the sizes at which a button is not in sight, or the page scrolls sideways."""
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 0)")
        if not page.evaluate(ON_TOP, button) or page.evaluate(SIDEWAYS) > 0:
            found.append((button, width, height))
    return found


def test_the_grid_stays_where_it_is_when_the_rail_branches(open_page: OpenPage) -> None:
    """Lanes take their room from the rail's small pictures, not from the large ones."""
    page = open_page()
    generate(page)
    before = _grid_box(page)
    for picked in (0, 1, 2):
        refine(page, picked)
        page.click("#sg-back")
        expect(cell(page, picked)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-lineage .sg-branch")).to_have_count(3)
    assert _grid_box(page) == before
    names = page.locator("#sg-lineage .sg-round-name").all_inner_texts()
    assert len(set(names)) == 4, names


def test_refine_stays_where_it_is_from_pick_to_pick(page: Page) -> None:
    """Also until the server's card comes: the panel fell in and came back with each click."""
    pictures = generate(page)
    refine_button, facts = page.locator("#sg-refine"), page.locator("#sg-picked .sg-facts")
    cell(page, 0).click()
    expect(facts).to_be_visible()
    expect(page.locator("#sg-fours .sg-chip").first).to_be_visible()
    before = refine_button.bounding_box()
    card = Held(page, f'"id":"{pictures[1]}"')
    cell(page, 1).click()
    card.wait()
    expect(facts).to_have_count(0)
    assert refine_button.bounding_box() == before
    card.let_go()
    expect(facts).to_be_visible()
    assert refine_button.bounding_box() == before


def _grid_box(page: Page) -> object:
    """Where the pictures stand on the page, from its top."""
    page.evaluate("scrollTo(0, 0)")
    return page.locator("#sg-stage .sg-grid").bounding_box()


@pytest.mark.sweep
def test_a_korean_phone_cuts_no_words_and_covers_no_button(open_page: OpenPage) -> None:
    """Captions, dates, the undo, what is compared and the news that nobody answers, all in Korean.

    Korean may be broken between any two letters: what was one line stood in a column.
    """
    page = open_page(
        viewport={"width": 390, "height": 844}, locale="ko-KR", has_touch=True, loses_server=True
    )
    seeds(page).fill("0-11")
    page.click("#sg-generate")
    wait_for_new_round(page, [], 12)
    before = ids(page)
    cell(page, 0).click()
    page.click("#sg-subtle")
    wait_for_new_round(page, before)
    assert page.eval_on_selector_all(f"{CELLS} .sg-caption", CUT) == []
    page.click("#sg-library-open")
    page.fill("#sg-library input[type=search]", "Vermeer")
    expect(page.locator("#sg-library .sg-item").nth(3)).to_be_visible()
    expect(page.locator("#sg-library .sg-item-count")).to_have_count(0)  # pictures, no works
    page.get_by_role("button", name="필터").click()
    words = page.locator("#sg-library .sg-library-head, #sg-library .sg-filters, #sg-drop")
    assert not re.search(r"[A-Za-z]{4,}", "".join(words.all_inner_texts()).replace("SeedGrid", ""))
    assert page.eval_on_selector_all(".sg-dated span", LINES) == [1, 1]
    page.click(".sg-select")
    page.click(".sg-selected [data-tool='all']")
    page.click(".sg-selected [data-tool='compare']")
    assert _is_across(page, ".sg-compare-ways")
    page.keyboard.press("Escape")
    page.click(".sg-selected [data-tool='all']")
    page.locator(".sg-item-open").first.click()
    page.click(".sg-selected [data-tool='remove']")
    expect(page.locator(".sg-undo")).to_be_visible()
    assert page.eval_on_selector_all(".sg-undo > *", LINES) == [1, 1]
    page.route("**/healthz", lambda route: route.abort())
    page.evaluate("void SeedGrid.away()")
    assert _is_across(page, "#sg-away")


def _is_across(page: Page, selector: str) -> bool:
    """Tell whether something stands between the window's left and right edge."""
    box = page.locator(selector).bounding_box()
    size = page.viewport_size
    return box["x"] > 0 and box["x"] + box["width"] < size["width"]


def test_on_a_phone_a_round_that_is_known_comes_into_sight_too(open_page: OpenPage) -> None:
    """Refine lies below the stage; what is remembered is there without any painting."""
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    generate(page)
    for _ in range(2):
        cell(page, 1).click()
        before = ids(page)
        page.locator("#sg-tools").scroll_into_view_if_needed()
        page.mouse.wheel(0, 600)
        expect(page.locator("#sg-stage")).not_to_be_in_viewport()
        page.click("#sg-refine")
        wait_for_new_round(page, before)
        expect(page.locator("#sg-stage")).to_be_in_viewport(ratio=0.5)
        page.click("#sg-back")
        expect(cell(page, 1)).to_have_attribute("data-picture-id", before[1])


def test_words_and_seed_stand_below_the_picture(page: Page) -> None:
    """In a grid of few nothing lies over a picture, nor are a picture's words over the next one."""
    generate(page)
    refine(page, 1)
    for width, height in ((1400, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator("#sg-stage .sg-caption").first).not_to_be_empty()
        assert page.evaluate(OVER_ART, ["#sg-stage .sg-foot > :not(:empty)", PICTURES]) == []
        assert not page.evaluate(MEET, ["[data-cell='3'] .sg-caption", "#sg-below"])


def test_the_tools_of_the_pick_are_on_the_picture_while_it_is_pointed_at(page: Page) -> None:
    """Star, zoom, save, compare and copy, on each pick in turn; no picture is covered otherwise."""
    prompt(page).fill("a fox with tools")
    generate(page)
    tools = page.locator("#sg-tools")
    for index in (1, 2):
        cell(page, index).click()
        expect(tools).to_have_css("opacity", "1")
        assert page.evaluate(WITHIN, ["#sg-tools", f"[data-cell='{index}']"])
    page.click("#sg-star")
    expect(page.locator("#sg-star")).to_have_attribute("aria-pressed", "true")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    expect(tools).to_have_css("opacity", "0")
    page.locator("#sg-save").focus()
    expect(tools).to_have_css("opacity", "1")


def test_in_a_wall_and_under_a_finger_the_tools_stay_in_the_card(open_page: OpenPage) -> None:
    """Where they would cover a small picture, or nothing hovers."""
    phone = {"width": 390, "height": 844}
    for options, wanted, count in (
        ({}, "0-24", 25),
        ({"viewport": phone, "has_touch": True}, "0-3", 4),
    ):
        page = open_page(**options)
        prompt(page).fill("a fox whose tools are in the card")
        seeds(page).fill(wanted)
        page.click("#sg-generate")
        wait_until_done(page, count)
        cell(page, 1).click()
        expect(page.locator("#sg-save")).to_be_enabled()
        page.locator("#sg-save").scroll_into_view_if_needed()
        assert page.evaluate(WITHIN, ["#sg-tools", "#sg-card"])
