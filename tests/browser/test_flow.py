"""The workflow in a real browser: four seeds, one picked, four variations, and the way back."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, expect
from serving import Gate
from steps import (
    CELLS,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    seeds_shown,
    set_steps,
    status,
    variation,
    wait_for_new_round,
    wait_until_done,
)

from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES
from seedgrid.formats import png


def test_a_first_visitor_finds_the_guides_example(page: Page) -> None:
    """Prompt, seeds and suffixes are filled in, and the page says what to press."""
    expect(prompt(page)).to_have_value(GUIDE_PROMPT)
    expect(seeds(page)).to_have_value("0-3")
    for number, suffix in enumerate(GUIDE_SUFFIXES, start=1):
        expect(variation(page, number)).to_have_value(suffix)
    expect(page.locator("#sg-stage")).to_contain_text("Press Generate")
    expect(page.locator("#sg-refine")).to_be_disabled()
    expect(page.locator("#sg-back")).to_be_disabled()


def test_generate_pick_refine_and_back(page: Page, address: str) -> None:
    """The guide's workflow by mouse; each picture is the library's PNG, its recipe inside."""
    first = generate(page)
    assert seeds_shown(page) == ["0", "1", "2", "3"]
    assert_two_by_two(page)
    expect(status(page)).to_have_text(re.compile("Done|library"))
    second = refine(page, 2)
    assert seeds_shown(page) == ["2"] * 4
    assert not set(first) & set(second)
    assert_two_by_two(page)
    cell(page, 3).click()
    expect(page.locator("#sg-picked ins")).to_have_text(GUIDE_SUFFIXES[3])
    with page.expect_download() as download:
        page.click("#sg-save")
    name = "labrador-in-the-style-of-vermeer-colorful-seed-2.png"
    assert download.value.suggested_filename == name
    source = cell(page, 3).locator("img").get_attribute("src")
    data = httpx.get(f"{address}{source}").content
    assert download.value.path().read_bytes() == data
    record, _ = png.read_checked(data)
    assert record.recipe.prompt == GUIDE_PROMPT + GUIDE_SUFFIXES[3]
    assert (record.recipe.seed, record.lineage.parent_id) == (2, first[2])
    page.click("#sg-back")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    assert ids(page) == first
    expect(page.locator("#sg-picked")).to_contain_text("2")


def test_the_seed_shown_is_the_seed_used(page: Page) -> None:
    """Editing the seeds while a run goes on changes nothing on the pictures."""
    seeds(page).fill("7, 11, 42, 4294967295")
    page.click("#sg-generate")
    seeds(page).fill("1-4")
    wait_until_done(page)
    assert seeds_shown(page) == ["7", "11", "42", "4294967295"]
    cell(page, 3).click()
    expect(page.locator("#sg-picked .sg-lock-seed")).to_have_text("4294967295")


def test_four_refinements_deep_the_root_is_four_steps_back(page: Page) -> None:
    """Back leads to the root, from where a branch starts; the rail shows both lines.

    Pressed twice at once it goes two rounds back.
    """
    root = generate(page)
    for index in (0, 1, 2, 3):
        refine(page, index)
    rounds = page.locator("#sg-lineage .sg-round")
    expect(rounds).to_have_count(5)
    for _ in range(2):
        before = ids(page)
        page.click("#sg-back")
        page.wait_for_function(
            "before => document.querySelector('[data-cell]').dataset.pictureId !== before",
            arg=before[0],
        )
    page.evaluate("for (const _ of [1, 2]) document.querySelector('#sg-back').click()")
    expect(cell(page, 0)).to_have_attribute("data-picture-id", root[0])
    assert ids(page) == root
    expect(page.locator("#sg-back")).to_be_disabled()
    cell(page, 3).click()
    page.locator("#sg-refine").dblclick()  # It asks for one round.
    wait_for_new_round(page, root)
    expect(rounds).to_have_count(6)
    expect(page.locator("#sg-lineage .sg-branch")).to_have_count(5)
    rounds.nth(2).click()
    expect(rounds.nth(2)).to_have_attribute("aria-current", "step")


def test_a_picture_may_be_picked_while_it_forms(page: Page, gate: Gate) -> None:
    """A reload goes on watching; the ring is there at once, and Refine waits for the picture."""
    prompt(page).fill("a fox that is held while it forms")
    page.click("#sg-generate")
    expect(cell(page, 1)).to_have_attribute("data-state", "painting")
    page.reload()
    expect(page.locator("#sg-stop")).to_be_visible()
    expect(cell(page, 1)).to_have_attribute("data-state", "painting")
    cell(page, 1).click()
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-refine")).to_be_disabled()
    gate.open()
    page.click("#sg-refine")  # waits until it is allowed
    page.wait_for_function("document.querySelector(\"[data-cell='0']\").dataset.seed === '1'")
    wait_until_done(page)
    assert seeds_shown(page) == ["1"] * 4


def test_zoom_compare_and_a_reload(page: Page) -> None:
    """One picture large, or over its parent; a reload finds stage, ring, card and rail again.

    With nothing picked among the variations, Refine makes another branch of their parent.
    """
    first = generate(page)
    second = refine(page, 0)
    expect(page.locator("#sg-hint")).to_be_visible()
    cell(page, 3).click()
    page.click("#sg-zoom")
    expect(page.locator("dialog.sg-zoom img")).to_have_attribute("src", re.compile(f"{second[3]}"))
    page.keyboard.press("Escape")
    page.click("#sg-compare")
    shown = page.locator("dialog.sg-compare .sg-slider img")
    expect(shown.nth(0)).to_have_attribute("src", re.compile(first[0]))
    expect(shown.nth(1)).to_have_attribute("src", re.compile(second[3]))
    expect(page.locator("dialog.sg-compare ins")).to_have_text(", colorful")
    page.click("dialog.sg-compare .sg-toggle")
    brightest = page.evaluate(
        """() => { const c = document.querySelector("dialog.sg-compare canvas");
        return Math.max(...c.getContext("2d").getImageData(0, 0, c.width, c.height).data
            .filter((_, at) => at % 4 === 0)); }"""
    )
    assert 0 < brightest <= 255
    page.locator("dialog.sg-compare .sg-compare-others button").nth(2).click()
    expect(shown.nth(0)).to_have_attribute("src", re.compile(second[1]))
    page.reload()
    wait_until_done(page)
    assert ids(page) == second
    expect(cell(page, 3)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-picked")).to_contain_text("colorful")
    expect(page.locator("#sg-lineage .sg-round")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    expect(status(page)).to_contain_text("Picture 4 is not picked any more")
    expect(page.locator("#sg-hint")).to_contain_text("Four variations")
    variation(page, 1).fill(", in the fog")
    page.click("#sg-refine")
    wait_for_new_round(page, second)
    assert seeds_shown(page) == ["0"] * 4
    expect(cell(page, 0)).to_contain_text("in the fog")


NOTE_PREVIEWS = """() => {
    const pen = CanvasRenderingContext2D.prototype, draw = pen.drawImage;
    window.drawn = [];
    pen.drawImage = function (image, ...at) {
        draw.call(this, image, ...at);
        const cell = this.canvas.closest("[data-cell]");
        if (cell) window.drawn.push([cell.dataset.cell, image.src]);
    };
}"""


def test_previews_stream_while_it_paints(page: Page, gate: Gate) -> None:
    """Each cell shows a preview of each step, and the line under it grows.

    A refinement shows the lock: four pictures of one seed come out of the very same noise.
    """
    set_steps(page, 4)
    prompt(page).fill("a fox that is held step by step")
    page.evaluate(NOTE_PREVIEWS)
    page.click("#sg-generate")
    for step in (0, 1, 2, 3):  # the noise comes first
        gate.let(step)
        line = page.locator("[data-cell='0'] .sg-bar-line i")
        expect(line).to_have_attribute("style", re.compile(rf"scaleX\({step / 4:g}\)"))
        page.wait_for_function("many => window.drawn.length >= many", arg=4 * (step + 1))
    drawn = page.evaluate("window.drawn")
    assert [number for number, _ in drawn] == ["0", "1", "2", "3"] * 4
    assert len({source for _, source in drawn}) == 16
    gate.open()
    wait_until_done(page)
    gate.shut()
    cell(page, 2).click()
    page.evaluate("window.drawn = []")
    page.click("#sg-refine")
    page.wait_for_function("() => window.drawn.length >= 4")
    drawn = page.evaluate("window.drawn.slice(0, 4)")
    assert [number for number, _ in drawn] == ["0", "1", "2", "3"]
    assert len({source for _, source in drawn}) == 1
    gate.open()
    wait_until_done(page)


def assert_two_by_two(page: Page) -> None:
    """The four cells stand in two rows of two, square, all of one size."""
    boxes = [cell(page, index).bounding_box() for index in range(4)]
    places = [(round(box["x"]), round(box["y"]), round(box["width"])) for box in boxes if box]
    (left, top, side), (right, _, _), (_, bottom, _), _ = places
    assert right > left + side - 2
    assert bottom > top + side - 2
    assert places[1:] == [(right, top, side), (left, bottom, side), (right, bottom, side)]


def test_a_known_grid_takes_one_question_and_four_pictures(page: Page) -> None:
    """The answer to the click shows them: nothing is followed, no file is asked for twice.

    They can be made again and compared.
    """
    before = generate(page)
    page.wait_for_load_state("networkidle")  # what the first grid still had to ask
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.click("#sg-generate")
    page.wait_for_function(
        """before => [...document.querySelectorAll("#sg-stage [data-cell]")].every(
            (cell) => cell.dataset.state === "done" && !before.includes(cell.dataset.pictureId))""",
        arg=before,
    )
    expect(status(page)).to_contain_text("library")
    pictures = [url for url in asked if "/seedgrid/pictures/" in url]
    assert len(pictures) == len(set(pictures)) == 4
    assert sum("/do/generate" in url for url in asked) == 1
    assert not [url for url in asked if "/do/follow" in url]
    page.click("#sg-again")
    expect(status(page)).to_contain_text("Computed again and compared: identical")
    wait_until_done(page)
