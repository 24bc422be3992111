"""Where things stand: the next step is in sight at every size, and pictures use the room."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import OpenPage, cell, generate, prompt, refine

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
    """Four square pictures are as tall as the window allows; a wide window adds no empty middle."""
    page = open_page()
    generate(page)
    for width, height, least in ((1920, 1080, 470), (2560, 1440, 645), (1024, 768, 250)):
        page.set_viewport_size({"width": width, "height": height})
        box = cell(page, 0).bounding_box()
        assert box is not None
        assert box["width"] >= least, (width, height)


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
    expect(page.locator("#sg-lineage .sg-branches circle")).to_have_count(4)
    assert _grid_box(page) == before
    names = page.locator("#sg-lineage .sg-round-name").all_inner_texts()
    assert len(set(names)) == 4, names


def _grid_box(page: Page) -> object:
    """Where the pictures stand on the page, from its top."""
    page.evaluate("scrollTo(0, 0)")
    return page.locator("#sg-stage .sg-grid").bounding_box()
