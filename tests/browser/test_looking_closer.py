"""Looking closer: the large view to 100 and 400 %, and four pictures that move together."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from steps import OpenPage, cell, generate, refine

ZOOM = "dialog.sg-zoom"
PICTURE = f"{ZOOM} figure > img"
SCALE = """(selector) => { const box = document.querySelector(selector).getBoundingClientRect();
    return box.width / document.querySelector(selector).naturalWidth; }"""


def test_wheel_drag_and_keys_look_closer(page: Page) -> None:
    """What is under the pointer stays there; a drag moves it; the next picture is seen whole.

    On the whole screen the buttons are there, too, and the arrows go from picture to picture.
    """
    generate(page)
    cell(page, 1).dblclick()
    _wait(page)
    fitted = page.evaluate(SCALE, PICTURE)
    for name, size in (("whole", 1), ("fourfold", 4)):
        page.click(f"{ZOOM} [data-tool='{name}']")
        assert page.evaluate(SCALE, PICTURE) == pytest.approx(size)
        expect(page.locator(f"{ZOOM} [data-tool='{name}']")).to_have_attribute(
            "aria-pressed", "true"
        )
    page.click(f"{ZOOM} [data-tool='fit']")
    assert page.evaluate(SCALE, PICTURE) == pytest.approx(fitted)
    left, top, width = _box(page)
    x, y = left + width / 4, top + width / 4
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    page.wait_for_function("document.querySelector('dialog.sg-near') !== null")
    left, top, width = _box(page)
    assert (x - left, y - top) == pytest.approx((width / 4, width / 4), abs=4)
    page.mouse.down()
    page.mouse.move(x + 30, y + 20)
    page.mouse.up()
    assert _box(page)[:2] == pytest.approx((left + 30, top + 20), abs=4)
    page.keyboard.press("ArrowLeft")
    assert _box(page)[0] > left + 30, "closer, an arrow moves the picture"
    page.keyboard.press("0")
    page.keyboard.press("+")
    page.click(f"{ZOOM} .sg-arrow-after")
    expect(page.locator(f"{ZOOM} .sg-place")).to_have_text("3 / 4")
    _wait(page)
    assert page.evaluate(SCALE, PICTURE) == pytest.approx(fitted)
    page.click(f"{ZOOM} [data-tool='full']")
    page.wait_for_function("document.fullscreenElement !== null")
    for button in ("whole", "full", "pick", "refine"):
        expect(page.locator(f":fullscreen [data-tool='{button}']")).to_be_visible()
    expect(page.locator(":fullscreen .sg-close")).to_be_visible()
    page.click(f"{ZOOM} [data-tool='pick']")
    expect(page.locator(f"{ZOOM} [data-tool='pick']")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"{ZOOM} .sg-place")).to_have_text("4 / 4")
    page.evaluate("document.exitFullscreen()")


def test_two_fingers_look_closer_and_one_goes_on(open_page: OpenPage) -> None:
    """A pinch makes the picture larger; where all of it is seen, a finger goes to the next one."""
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True)
    generate(page)
    cell(page, 1).tap()
    page.locator("body").press("z")
    _wait(page)
    left, top, width = _box(page)
    fitted, middle = page.evaluate(SCALE, PICTURE), (left + width / 2, top + width / 2)
    _fingers(page, *([(middle[0] - d, middle[1]), (middle[0] + d, middle[1])] for d in (30, 60)))
    assert page.evaluate(SCALE, PICTURE) == pytest.approx(2 * fitted, rel=0.05)
    expect(page.locator(f"{ZOOM} .sg-place")).to_have_text("2 / 4")
    page.click(f"{ZOOM} [data-tool='fit']")
    _fingers(page, *([(middle[0] + d, middle[1])] for d in (60, 0, -60)))
    expect(page.locator(f"{ZOOM} .sg-place")).to_have_text("3 / 4")


def test_four_side_by_side_move_together(page: Page) -> None:
    """What is seen of one picture is seen of the others."""
    generate(page)
    refine(page, 0)
    cell(page, 2).click()
    page.click("#sg-compare")
    page.click("dialog.sg-compare [data-tool='beside']")
    pictures = page.locator("dialog.sg-compare .sg-side img")
    expect(pictures).to_have_count(4)
    pictures.nth(1).hover(position={"x": 40, "y": 60})
    page.mouse.wheel(0, -300)
    page.wait_for_function("document.querySelector('.sg-side.sg-near') !== null")
    seen = pictures.evaluate_all("all => all.map((each) => getComputedStyle(each).transform)")
    assert len(set(seen)) == 1
    assert seen[0] not in ("none", "matrix(1, 0, 0, 1, 0, 0)")
    page.click("dialog.sg-compare [data-tool='beside']")
    expect(page.locator("dialog.sg-compare .sg-slider")).to_be_visible()


def _wait(page: Page) -> None:
    """Wait until the picture is there."""
    page.wait_for_function("s => document.querySelector(s)?.naturalWidth > 0", arg=PICTURE)


def _box(page: Page) -> tuple[float, float, float]:
    """Left, top and width of the picture as it is seen."""
    box = page.locator(PICTURE).bounding_box()
    return box["x"], box["y"], box["width"]


def _fingers(page: Page, *moments: list[tuple[float, float]]) -> None:
    """Put fingers down, move them from moment to moment, and lift them."""
    devtools = page.context.new_cdp_session(page)
    for number, points in enumerate(moments):
        kind = "touchMove" if number else "touchStart"
        touches = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(points)]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_brush_opened_from_the_large_view_leaves_nothing_of_it(page: Page) -> None:
    """The next large view stays at its own picture."""
    generate(page)
    cell(page, 0).dblclick()
    page.click(f"{ZOOM} [data-tool='brush']")
    expect(page.locator(".sg-brush-veil")).to_be_visible()
    page.keyboard.press("Escape")
    cell(page, 2).click()
    page.keyboard.press("z")
    star = page.locator(f"{ZOOM} [data-tool='favourite']")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    expect(page.locator(f"{ZOOM} .sg-place")).to_have_text("3 / 4")
