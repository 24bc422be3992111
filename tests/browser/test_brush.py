"""Only here: a part of the picked picture is painted over, and Refine changes that part alone."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Locator, Page, expect
from steps import Held, OpenPage, cell, generate, ids, prompt, seeds, variation, wait_for_new_round

from seedgrid.core.picture import Pixels
from seedgrid.formats import png
from seedgrid.formats.png import PngRecord


def veil(page: Page) -> Locator:
    return page.locator(".sg-brush-veil")


def a_picture_picked(page: Page, first_seed: int) -> str:
    """Paint four pictures, pick the second, and return its id."""
    prompt(page).fill("a quiet street")
    seeds(page).fill(f"{first_seed}-{first_seed + 3}")
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-brush")).to_be_enabled()
    return ids(page)[1]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw from one point to another, in shares of the picture."""
    box = veil(page).bounding_box()
    for x, y in (start, end):
        page.mouse.move(
            box["x"] + 1 + x * (box["width"] - 2), box["y"] + 1 + y * (box["height"] - 2), steps=4
        )
        if (x, y) == start:
            page.mouse.down()
    page.mouse.up()


def painted(page: Page, picture_id: str) -> tuple[PngRecord, Pixels]:
    """Fetch a picture as the page does, with its recipe."""
    answer = page.request.get(
        page.evaluate("id => new URL(`seedgrid/pictures/${id}.png`, location).href", picture_id)
    )
    return png.read_checked(answer.body())


def refine(page: Page, words: str) -> list[str]:
    variation(page, 1).fill(words)
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    return ids(page)


def test_outside_the_region_every_pixel_stays(page: Page, shared_library: Path) -> None:
    """A rectangle over the left half: the right half is the parent's to the bit.

    The recipe names the mask by its digest, which is found again.
    """
    _, parent = painted(page, a_picture_picked(page, 6101))
    page.click("#sg-brush")
    page.get_by_role("button", name="Rectangle").click()
    drag(page, (0.0, 0.0), (0.5, 1.0))
    expect(page.locator(".sg-brush-said")).to_have_text("50 % may change, every other pixel stays")
    page.get_by_label("Soft edge").fill("3")
    page.get_by_role("button", name="Use this part").click()
    expect(page.locator("#sg-only")).to_contain_text("Only here: 50 %")
    record, child = painted(page, refine(page, ", at night")[0])
    half = parent.shape[1] // 2
    assert (child[:, half + 1 :] == parent[:, half + 1 :]).all()
    assert (child[:, : half - 1] != parent[:, : half - 1]).any()
    expect(page.locator("#sg-stage")).to_contain_text("only here")
    assert record.recipe.feather == 3
    assert list(shared_library.rglob(f"{record.recipe.mask}.png"))


def test_strokes_and_the_region_are_taken_away(page: Page) -> None:
    """Undo, Clear, and Alt, which paints what stays; a region belongs to its picture.

    Another pick has none, the first has it still; the cross lets the whole picture change.
    """
    a_picture_picked(page, 6301)
    page.click("#sg-brush")
    said = page.locator(".sg-brush-said")
    page.get_by_role("button", name="Lasso").click()
    drag(page, (0.1, 0.1), (0.9, 0.1))  # A line encloses nothing.
    expect(said).to_contain_text("Paint over the part")
    page.get_by_role("button", name="Rectangle").click()
    drag(page, (0.0, 0.0), (0.5, 1.0))
    page.keyboard.down("Alt")
    drag(page, (0.0, 0.0), (0.5, 0.5))
    page.keyboard.up("Alt")
    expect(said).to_contain_text("25 %")
    page.get_by_role("button", name="Undo").click()
    expect(said).to_contain_text("50 %")
    page.get_by_role("button", name="Clear").click()
    expect(said).to_contain_text("Paint over the part")
    drag(page, (0.3, 0.3), (0.6, 0.6))
    page.get_by_role("button", name="Use this part").click()
    expect(page.locator("#sg-only .sg-chip")).to_be_visible()
    cell(page, 2).click()
    expect(page.locator("#sg-only .sg-chip")).to_be_hidden()
    cell(page, 1).click()
    page.locator("#sg-only .sg-chip").click()
    expect(page.locator("#sg-only .sg-chip")).to_be_hidden()
    refine(page, ", in the rain")
    expect(page.locator("#sg-stage")).not_to_contain_text("only here")


def test_keys_alone_paint_a_region(page: Page) -> None:
    """B over the large view, then arrows and Space."""
    a_picture_picked(page, 6401)
    page.keyboard.press("z")
    expect(page.locator("dialog.sg-zoom")).to_be_visible()
    page.keyboard.press("b")
    expect(veil(page)).to_be_focused()
    page.keyboard.press("Space")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    page.get_by_role("button", name="Use this part").press("Enter")
    expect(page.locator("#sg-only .sg-chip")).to_be_visible()


def test_a_finger_paints_a_region_on_a_phone(open_page: OpenPage) -> None:
    """The page does not scroll under it, and every tool can be reached."""
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    a_picture_picked(page, 6501)
    page.locator("#sg-brush").tap()
    box = veil(page).bounding_box()
    for name in ("Brush", "Lasso", "Rectangle", "Take away", "Undo", "Clear", "Use this part"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".sg-brush-said")).to_contain_text("every other pixel")
    page.get_by_role("button", name="Use this part").tap()
    expect(page.locator("#sg-only .sg-chip")).to_be_visible()


def test_live_words_change_the_region_alone(page: Page) -> None:
    """What follows the keys is what Refine then keeps: the parent's pixels outside."""
    _, parent = painted(page, a_picture_picked(page, 6701))
    page.click("#sg-brush")
    page.get_by_role("button", name="Rectangle").click()
    drag(page, (0.0, 0.0), (0.5, 1.0))
    page.get_by_role("button", name="Use this part").click()
    page.click("#sg-live")
    variation(page, 1).press_sequentially(" in fog")
    shown = page.locator("#sg-stage [data-state='live'] img").first
    expect(shown).to_be_visible()
    answer = page.request.get(shown.evaluate("image => image.src"))
    with Image.open(io.BytesIO(answer.body())) as image:
        live = np.asarray(image.convert("RGB"))
    half = parent.shape[1] // 2
    assert (live[:, half + 1 :] == parent[:, half + 1 :]).all()
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    _, kept = painted(page, ids(page)[0])
    assert (kept == live).all()


def test_a_press_beside_the_picture_keeps_the_strokes(page: Page) -> None:
    """A drag that begins beside it, too."""
    a_picture_picked(page, 6401)
    page.click("#sg-brush")
    page.get_by_role("button", name="Rectangle").click()
    drag(page, (0.0, 0.0), (0.5, 1.0))
    drag(page, (-0.1, 0.4), (0.3, 0.6))
    page.mouse.click(veil(page).bounding_box()["x"] - 30, 400)
    page.wait_for_timeout(100)
    expect(page.locator(".sg-brush-said")).to_contain_text("50 %")


def test_a_region_is_refined_before_the_card_of_its_picture_is_here(page: Page) -> None:
    """Its mask has the picture's size at once."""
    picked = a_picture_picked(page, 6501)
    page.click("#sg-brush")
    page.get_by_role("button", name="Rectangle").click()
    drag(page, (0.0, 0.0), (0.5, 1.0))
    page.get_by_role("button", name="Use this part").click()
    cell(page, 2).click()
    expect(page.locator("#sg-only .sg-chip")).to_be_hidden()
    held = Held(page, f'"id":"{picked}"')
    cell(page, 1).click()
    held.wait()
    refine(page, ", at night")
    expect(page.locator("#sg-stage")).to_contain_text("only here")
