"""Several pictures at once: marked, refined together, seen without the others, made larger."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import (
    CELLS,
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    seeds,
    status,
    variation,
    wait_for_new_round,
    wait_until_done,
)


def _wall(page: Page, number: int) -> list[str]:
    prompt(page).fill("a wall to choose from")
    seeds(page).fill(f"0-{number - 1}")
    page.click("#sg-generate")
    wait_until_done(page, number)
    return ids(page)


def test_several_pictures_are_refined_together_a_row_each(page: Page) -> None:
    """Marked by Shift with click or Enter; a row keeps its seed; Back finds the marks."""
    wall = _wall(page, 9)
    for number in (1, 2, 3, 4):
        variation(page, number).fill(f", word {number}")
    cell(page, 2).click(modifiers=["Shift"])
    cell(page, 7).focus()
    page.keyboard.press("Shift+Enter")
    expect(page.locator(f"{CELLS}[aria-checked='true']")).to_have_count(2)
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    page.get_by_role("button", name="Refine these").click()
    wait_for_new_round(page, wall, 8)
    made = page.eval_on_selector_all(CELLS, "all => all.map(({dataset}) => Number(dataset.seed))")
    assert made == [2] * 4 + [7] * 4
    columns = [f"word {number}" for number in (1, 2, 3, 4)]
    expect(page.locator(".sg-heading")).to_have_text([*columns, "2", "7"])
    cell(page, 6).click()
    page.click("#sg-compare")
    expect(page.locator("dialog.sg-compare figcaption")).to_contain_text("word 3")
    page.keyboard.press("Escape")
    page.click("#sg-back")
    expect(page.locator(f"{CELLS}[aria-checked='true']")).to_have_count(2)
    assert ids(page) == wall
    page.get_by_role("button", name="Refine these").click()
    wait_for_new_round(page, wall, 8)
    page.click("#sg-again")
    expect(status(page)).to_contain_text("identical")
    expect(page.locator(".sg-heading")).to_have_text([*columns, "2", "7"])


def test_a_finger_picks_several_and_hides_the_others(open_page: OpenPage) -> None:
    """A button makes clicks mark; what is not marked goes out of sight and comes back."""
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True)
    wall = _wall(page, 9)
    page.locator("#sg-several").tap()
    for index in (0, 5, 6):
        cell(page, index).tap()
    page.get_by_role("button", name="Hide the others").tap()
    seen = page.locator(f"{CELLS}:visible")
    expect(seen).to_have_count(3)
    assert seen.evaluate_all("all => all.map(({dataset}) => dataset.pictureId)") == [
        wall[index] for index in (0, 5, 6)
    ]
    page.get_by_role("button", name="Let go of them").tap()
    expect(seen).to_have_count(9)
    cell(page, 5).tap()
    expect(cell(page, 5)).to_have_attribute("aria-selected", "true")


def test_a_wall_has_larger_cells_and_is_looked_at_under_the_pointer(page: Page) -> None:
    """The slider trades columns for size; where a cell is small its picture is seen at 300 px."""
    _wall(page, 36)
    expect(page.locator("#sg-next")).to_have_text("Next 36")
    small = cell(page, 0).bounding_box()
    cell(page, 14).hover()
    look = page.locator(".sg-look")
    expect(look).to_be_visible()
    shown, held = look.bounding_box(), cell(page, 14).bounding_box()
    assert shown["width"] == 300
    assert shown["x"] >= held["x"] + held["width"] or shown["x"] + 300 <= held["x"]
    page.get_by_label("Cell size").fill("4")
    large = cell(page, 0).bounding_box()
    assert large["width"] > 2 * small["width"]
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    seeds(page).fill("0-3")
    generate(page)
    expect(page.get_by_label("Cell size")).to_be_hidden()
    first, second = cell(page, 0).bounding_box(), cell(page, 1).bounding_box()
    assert first["y"] == second["y"]


def test_while_several_are_picked_the_large_views_buttons_mean_its_picture(page: Page) -> None:
    """Its button picks; a click on the stage marks."""
    _wall(page, 9)
    cell(page, 0).click()
    page.click("#sg-several")
    page.keyboard.press("z")
    page.click("dialog.sg-zoom .sg-arrow-after")
    page.click("dialog.sg-zoom [data-tool='pick']")
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")


def test_keys_reach_only_what_is_not_hidden(page: Page) -> None:
    """Tab, digits, and the arrows of the large view."""
    _wall(page, 9)
    for index in (2, 7):
        cell(page, index).focus()
        page.keyboard.press("Shift+Enter")
    cell(page, 4).focus()
    page.get_by_role("button", name="Hide the others").press("Enter")
    expect(page.locator(f"{CELLS}[tabindex='0']:visible")).to_have_count(1)
    page.keyboard.press("5")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    cell(page, 2).dblclick()
    place = page.locator("dialog.sg-zoom .sg-place")
    expect(place).to_have_text("3 / 9")
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text("8 / 9")
