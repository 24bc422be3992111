"""WCAG 2.2 AA: axe-core finds nothing in any state, and every flow goes by keyboard alone.

What axe cannot see (the order of Tab, arrows, 200 % zoom) is pressed here by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from steps import (
    CELLS,
    SOON_MS,
    OpenPage,
    cell,
    generate,
    ids,
    open_experts,
    prompt,
    seeds,
    set_steps,
    status,
    wait_for_new_round,
    wait_until_done,
)

AXE: Final = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE: Final = """async (rules) => {
    const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`));
}"""
END_TRANSITIONS: Final = """() => document.getAnimations()
    .filter((each) => each instanceof CSSTransition).forEach((each) => each.finish())"""
HIDDEN: Final = """() => {
    const node = document.activeElement;
    const box = (node.closest("label") ?? node).getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const there = document.elementFromPoint(x, y);
    const frame = node.closest("label, .sg-vary, .sg-setting, .sg-cell, .sg-slider") ?? node;
    if (node === document.body || frame.contains(there) || there?.contains(node)) return null;
    const [what, by] = [node, there].map((each) => each?.outerHTML.slice(0, 200));
    return `${what} at ${x} ${y} lies under ${by}`;
}"""
THEMES: Final = (("light", TAGS), ("dark", {"type": "rule", "values": ["color-contrast"]}))
"""What depends on the theme are colours alone."""


def _found(page: Page, state: str) -> list[str]:
    """Return what axe finds in both themes; what is scrolled half under the bar is no smaller."""
    found = []
    page.evaluate("scrollTo(0, 0)")
    for theme, rules in THEMES:
        page.emulate_media(color_scheme=theme)
        page.evaluate(END_TRANSITIONS)
        found += [f"{state}, {theme}: {each}" for each in page.evaluate(RUN_AXE, rules)]
    return found


def _refused(page: Page) -> None:
    page.keyboard.press("Escape")
    seeds(page).fill("abc")
    page.click("#sg-generate")
    expect(page.locator("#sg-seeds [role=alert]")).to_be_visible()


def _library(page: Page) -> None:
    seeds(page).fill("4-7")
    generate(page)  # A second work, so that two can be selected.
    _picked(page)
    page.click("#sg-library-open")
    expect(page.locator("#sg-library .sg-item").first).to_be_visible()


def _selecting(page: Page) -> None:
    page.click("#sg-library .sg-select")
    for at in (0, 1):
        page.locator("#sg-library .sg-item-open").nth(at).click()
    expect(page.locator("#sg-library [data-tool='compare']")).to_be_enabled()
    page.fill("#sg-library .sg-tag-form input", "night")
    page.keyboard.press("Enter")
    expect(page.locator("#sg-library .sg-tags button")).to_have_count(1)


def _undoing(page: Page) -> None:
    page.click("#sg-library [data-tool='remove']")
    expect(page.locator("#sg-library .sg-undo")).to_be_visible()


def _zoom(page: Page) -> None:
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    page.locator("body").press("z")
    expect(page.locator("dialog.sg-zoom")).to_be_visible()


def _settings(page: Page) -> None:
    page.keyboard.press("Escape")
    set_steps(page, 3)
    open_experts(page)
    # A target at the window's edge is said to be covered there; one scrolls to it.
    page.locator("#sg-export dl").scroll_into_view_if_needed()


def _help(page: Page) -> None:
    page.keyboard.press("Escape")
    page.locator("body").press("?")
    expect(page.locator("#sg-help")).to_be_visible()


def _picked(page: Page) -> None:
    cell(page, 1).click()
    expect(page.locator("#sg-picked .sg-facts")).to_be_visible()


def _more(page: Page) -> None:
    page.click("#sg-more summary")
    expect(page.locator("#sg-verify")).to_be_visible()


STATES: Final[tuple[tuple[str, Callable[[Page], object]], ...]] = (
    ("empty", lambda page: expect(page.locator("#sg-generate")).to_be_visible()),
    ("words", lambda page: prompt(page).click()),
    ("done", generate),
    ("picked", _picked),
    ("more", _more),
    ("compare", lambda page: page.click("#sg-compare")),
    ("refused", _refused),
    ("library", _library),
    ("selecting", _selecting),
    ("undo", _undoing),
    ("zoom", _zoom),
    ("keys", _help),
    ("settings", _settings),
)


def test_axe_finds_nothing_in_any_state(page: Page) -> None:
    """0 violations of WCAG 2.2 AA, in light and dark."""
    page.evaluate(AXE)
    found = []
    for state, reach in STATES:
        reach(page)
        found += _found(page, state)
    assert not found, "\n".join(found)


@pytest.mark.usefixtures("gate")
def test_axe_finds_nothing_while_it_paints(open_page: OpenPage) -> None:
    """The same while four pictures form; on a phone, where the words are rows to scroll."""
    page = open_page(viewport={"width": 390, "height": 844})
    page.evaluate(AXE)
    expect(page.locator("#sg-hints .sg-chip").first).to_be_attached()
    prompt(page).fill("a fox that is held and looked at")
    narrow = _found(page, "words")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    found = narrow + _found(page, "busy")
    page.click("#sg-stop")
    assert not found, "\n".join(found)


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(1400, 900), (390, 844)])
def test_the_whole_flow_by_keyboard_alone(open_page: OpenPage, size: tuple[int, int]) -> None:
    """Words, pictures by arrows, a variation, back, zoom, favourite, library, settings, models."""
    page = open_page(viewport={"width": size[0], "height": size[1]})
    expect(page.locator("#sg-hints .sg-chip").first).to_be_attached()  # the model's words have come
    _tab_to(page, "#sg-prompt textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("a keyboard fox")
    _tab_to(page, "#sg-hints .sg-chip")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#sg-hints .sg-chip").nth(1)).to_be_focused()
    expect(page.locator(".sg-hint-list")).to_have_css("visibility", "visible")
    _tab_to(page, "#sg-seeds input")
    expect(page.locator(".sg-hint-list")).to_have_css("visibility", "hidden")
    page.keyboard.press("Enter")
    wait_until_done(page)
    first = ids(page)
    _tab_to(page, f"{CELLS}")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(cell(page, 3)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(cell(page, 3)).to_have_attribute("aria-selected", "true")
    _tab_to(page, "#sg-vary-1 input")
    page.keyboard.press("Enter")
    wait_for_new_round(page, first)
    _tab_to(page, "#sg-back")
    page.keyboard.press("Enter")
    expect(cell(page, 0)).to_have_attribute("data-picture-id", first[0])
    _tab_to(page, "#sg-zoom")
    page.keyboard.press("Enter")
    zoom = page.locator("dialog.sg-zoom")
    zoom.wait_for()
    page.keyboard.press("ArrowRight")
    expect(zoom.locator(".sg-place")).to_have_text("1 / 4")
    _tab_to(page, "[data-tool='favourite']")
    page.keyboard.press("Enter")
    expect(zoom.locator("[data-tool='favourite']")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#sg-star")).to_have_attribute("aria-pressed", "true")
    _tab_to(page, "#sg-settings > summary")
    page.keyboard.press("Enter")
    _tab_to(page, "#sg-steps input")
    page.keyboard.type("3")
    _tab_to(page, "#sg-models")
    page.keyboard.press("Enter")
    expect(page.locator("#sg-models-panel li").first).to_be_visible()
    _tab_to(page, "#sg-models-file")
    page.keyboard.press("Escape")
    expect(page.locator("#sg-models")).to_be_focused()
    _tab_to(page, "#sg-library-open")
    page.keyboard.press("Enter")
    expect(page.locator("#sg-library .sg-item").first).to_be_visible()
    _tab_to(page, "#sg-library .sg-item-open")
    page.keyboard.press("Enter")
    expect(status(page)).to_be_visible()


@pytest.mark.parametrize("size", [pytest.param((700, 450), marks=pytest.mark.sweep), (320, 600)])
def test_nothing_is_lost_at_200_percent(open_page: OpenPage, size: tuple[int, int]) -> None:
    """A window of half the size, as zooming in makes it: no sideways scroll, all can be reached."""
    page = open_page(viewport={"width": size[0], "height": size[1]})
    generate(page)
    cell(page, 0).click()
    expect(page.locator("#sg-refine")).to_be_enabled()
    page.click("#sg-more summary")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    expect(page.locator("#sg-fours .sg-chip").first).to_be_attached()
    assert page.locator("#sg-fours").evaluate("row => row.scrollWidth - row.clientWidth") <= 0
    for part in ("prompt", "generate", "refine", "vary-4", "verify", "settings", "library-open"):
        page.locator(f"#sg-{part}").scroll_into_view_if_needed()
        expect(page.locator(f"#sg-{part}")).to_be_in_viewport()


def _tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until a node has the focus; whatever has it on the way is seen, not covered."""
    for _ in range(most):
        page.keyboard.press("Tab")
        try:  # The list of the field before fades away over this one.
            page.wait_for_function(f"() => ({HIDDEN})() === null", timeout=SOON_MS)
        except PlaywrightTimeoutError:
            pytest.fail(str(page.evaluate(HIDDEN)))
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not lead to {selector}")
