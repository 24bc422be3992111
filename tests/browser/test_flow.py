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


def test_generate_pick_refine_and_back(page: Page) -> None:
    """The guide's workflow by mouse, ids of the contract only."""
    first = generate(page)
    assert seeds_shown(page) == ["0", "1", "2", "3"]
    assert_two_by_two(page)
    expect(status(page)).to_have_text(re.compile("Done|library"))
    second = refine(page, 2)
    assert seeds_shown(page) == ["2"] * 4
    assert not set(first) & set(second)
    assert_two_by_two(page)
    page.click("#sg-back")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    assert ids(page) == first
    expect(page.locator("#sg-picked")).to_contain_text("2")


def test_a_finished_picture_is_the_file_with_its_recipe(page: Page, address: str) -> None:
    """The image on the stage is the PNG of the library: seed, words and parent are inside."""
    first = generate(page)
    refine(page, 1)
    source = cell(page, 3).locator("img").get_attribute("src")
    record, _ = png.read_checked(httpx.get(f"{address}{source}").content)
    assert record.recipe.prompt == GUIDE_PROMPT + GUIDE_SUFFIXES[3]
    assert record.recipe.seed == 1
    assert record.lineage.parent_id == first[1]


def test_the_seed_shown_is_the_seed_used(page: Page) -> None:
    """Editing the seeds while a run goes on changes nothing on the pictures."""
    seeds(page).fill("7, 11, 42, 4294967295")
    page.click("#sg-generate")
    seeds(page).fill("1-4")
    wait_until_done(page)
    assert seeds_shown(page) == ["7", "11", "42", "4294967295"]
    cell(page, 3).click()
    expect(page.locator("#sg-picked .sg-lock-seed")).to_have_text("4294967295")


def test_the_words_of_a_variation_are_marked(page: Page) -> None:
    """The card shows what was added to the parent's prompt."""
    variation(page, 2).fill(", at dusk")
    generate(page)
    refine(page, 0)
    cell(page, 1).click()
    expect(page.locator("#sg-picked ins")).to_have_text(", at dusk")


def test_four_of_a_setting_fill_the_variations(page: Page) -> None:
    """One click writes four guidances into the fields; the captions say which picture has which."""
    generate(page)
    cell(page, 1).click()
    page.click("#sg-fours button:has-text('Guidance')")
    lines = [variation(page, number).input_value() for number in range(1, 5)]
    assert lines == ["guidance 4", "guidance 5.5", "guidance 11", "guidance 15"]
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    captions = page.locator("#sg-stage .sg-caption")
    expect(captions).to_have_text(lines)
    assert seeds_shown(page) == ["1"] * 4


def test_four_refinements_deep_the_root_is_four_steps_back(page: Page) -> None:
    """Back leads to the root, from where a branch starts; the rail shows both lines."""
    root = generate(page)
    for index in (0, 1, 2, 3):
        refine(page, index)
    rounds = page.locator("#sg-lineage .sg-round")
    expect(rounds).to_have_count(5)
    for _ in range(4):
        before = ids(page)
        page.click("#sg-back")
        page.wait_for_function(
            "before => document.querySelector('[data-cell]').dataset.pictureId !== before",
            arg=before[0],
        )
    assert ids(page) == root
    expect(page.locator("#sg-back")).to_be_disabled()
    refine(page, 3)
    expect(rounds).to_have_count(6)
    expect(page.locator("#sg-lineage .sg-branches circle")).to_have_count(6)
    rounds.nth(2).click()
    expect(rounds.nth(2)).to_have_attribute("aria-current", "step")


def test_the_parent_stays_in_view_and_can_be_refined_again(page: Page) -> None:
    """With nothing picked among the variations, Refine makes another branch of their parent."""
    generate(page)
    refine(page, 1)
    expect(page.locator("#sg-hint")).to_be_visible()
    variation(page, 1).fill(", in the fog")
    before = ids(page)
    page.click("#sg-refine")
    page.wait_for_function(
        "before => document.querySelector('[data-cell]').dataset.pictureId !== before",
        arg=before[0],
    )
    wait_until_done(page)
    assert seeds_shown(page) == ["1"] * 4
    expect(cell(page, 0)).to_contain_text("in the fog")


def test_a_picture_may_be_picked_while_it_forms(page: Page, gate: Gate) -> None:
    """The ring is there at once; Refine waits for the picture and then takes that one."""
    prompt(page).fill("a fox that is held while it forms")
    page.click("#sg-generate")
    expect(cell(page, 1)).to_have_attribute("data-state", "painting")
    cell(page, 1).click()
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-refine")).to_be_disabled()
    gate.open()
    page.click("#sg-refine")  # waits until it is allowed
    page.wait_for_function("document.querySelector(\"[data-cell='0']\").dataset.seed === '1'")
    wait_until_done(page)
    assert seeds_shown(page) == ["1"] * 4


def test_a_second_click_keeps_the_pick_and_escape_lets_go(page: Page) -> None:
    """Nothing is let go of in silence."""
    generate(page)
    cell(page, 0).click()
    expect(page.locator("#sg-refine")).to_be_enabled()
    cell(page, 0).click()
    expect(cell(page, 0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    expect(status(page)).to_contain_text("Picture 1 is not picked any more")
    expect(page.locator("#sg-refine")).to_be_disabled()


def test_a_reload_brings_everything_back(page: Page) -> None:
    """Stage, ring, card and rail are as they were."""
    generate(page)
    second = refine(page, 2)
    cell(page, 1).click()
    expect(page.locator("#sg-picked")).to_contain_text("artsy")
    page.reload()
    wait_until_done(page)
    assert ids(page) == second
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-picked")).to_contain_text("artsy")
    expect(page.locator("#sg-lineage .sg-round")).to_have_count(2)


def test_a_reload_in_the_middle_goes_on_watching(page: Page, gate: Gate) -> None:
    """A run does not belong to the tab that started it."""
    prompt(page).fill("a fox that is held and outlives its tab")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    page.reload()
    expect(page.locator("#sg-stop")).to_be_visible()
    gate.open()
    wait_until_done(page)
    assert seeds_shown(page) == ["0", "1", "2", "3"]


def test_save_gives_the_file_as_it_is(page: Page, address: str) -> None:
    """The saved PNG is the library's, byte for byte."""
    generate(page)
    cell(page, 2).click()
    expect(page.locator("#sg-save")).to_be_enabled()
    with page.expect_download() as download:
        page.click("#sg-save")
    source = cell(page, 2).locator("img").get_attribute("src")
    assert download.value.path().read_bytes() == httpx.get(f"{address}{source}").content
    assert download.value.suggested_filename == "labrador-in-the-style-of-vermeer-seed-2.png"


def test_zoom_and_compare(page: Page) -> None:
    """Zoom shows one picture, Compare a picture over its parent, and the difference."""
    first = generate(page)
    second = refine(page, 0)
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
    """Each cell shows a preview of each step, and the line under it grows."""
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


def test_a_refinement_begins_with_one_noise_four_times(page: Page, gate: Gate) -> None:
    """One sees the lock: four pictures of one seed come out of the very same noise."""
    prompt(page).fill("a fox out of one noise")
    generate(page)
    cell(page, 2).click()
    variation(page, 1).fill(", held")
    page.evaluate(NOTE_PREVIEWS)
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
    """The answer to the click shows them: nothing is followed, no file is asked for twice."""
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
