"""Live on the page: pictures follow what is typed, and nothing is kept before somebody asks."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from serving import Gate
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
    wait_for_turns,
    wait_until_done,
)


@pytest.fixture
def live(page: Page) -> Page:
    """A page with a grid, and Live switched on."""
    return switch_on(page, "31-34")


def switch_on(page: Page, wanted: str) -> Page:
    seeds(page).fill(wanted)
    generate(page)
    button = page.locator("#sg-live")
    expect(button).to_have_attribute("aria-disabled", "false")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    return page


def wait_for_live(page: Page, *words: str) -> None:
    """Wait until the cells show live pictures of these words, one for all or one each."""
    page.wait_for_function(
        """words => [...document.querySelectorAll("#sg-stage [data-cell]")].every((cell, at) =>
            cell.dataset.state === "live" && cell.title === (words[at] ?? words[0])
            && cell.querySelectorAll("img").length === 1)""",
        arg=list(words),
    )


@dataclass(frozen=True)
class Shelf:
    """The library of the page: its files, and the rows of its database."""

    folder: Path

    @property
    def num_pictures(self) -> int:
        with closing(sqlite3.connect(self.folder / "library.db")) as database:
            (rows,) = database.execute("SELECT count(*) FROM pictures").fetchone()
        assert rows == len(list((self.folder / "objects").rglob("*.png")))
        return int(rows)


@pytest.fixture
def shelf(shared_library: Path) -> Shelf:
    return Shelf(shared_library)


def pixels(page: Page) -> list[str]:
    """What the pictures on the stage show, as numbers."""
    return list(
        page.evaluate(
            """() => Promise.all([...document.querySelectorAll("#sg-stage [data-cell] img")].map(
                async (image) => {
                    await image.decode();
                    const [width, height] = [image.naturalWidth, image.naturalHeight];
                    const canvas = new OffscreenCanvas(width, height);
                    const context = canvas.getContext("2d");
                    context.drawImage(image, 0, 0);
                    const {data} = context.getImageData(0, 0, width, height);
                    const digest = await crypto.subtle.digest("SHA-256", data);
                    return [...new Uint8Array(digest)].join(" "); }))"""
        )
    )


HURRY = """() => {
    const wait = window.setTimeout;
    window.setTimeout = (todo, after, ...more) => wait(todo, after / 10, ...more);
}"""
"""What the page waits for comes in a tenth of the time."""


def count_questions(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.url) if "/do/live-" in each.url else None)
    return asked


def test_it_is_off_until_somebody_switches_it_on(page: Page) -> None:
    """What was typed does nothing before; that it was switched on is remembered."""
    button = page.locator("#sg-live")
    expect(button).to_have_attribute("aria-pressed", "false")
    seeds(page).fill("21-24")
    generate(page)
    asked = count_questions(page)
    prompt(page).press_sequentially(" and more")
    page.wait_for_timeout(400)
    assert asked == []
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    wait_for_turns(page)
    prompt(page).press("Control+a")
    prompt(page).press_sequentially("a red fox at last")
    wait_for_live(page, "a red fox at last")


def test_the_pictures_follow_what_is_typed_and_enter_keeps_their_bits(
    live: Page, shelf: Shelf
) -> None:
    """Nothing is in library or rail before; afterwards the very same pixels are."""
    rounds, rows = live.locator("#sg-lineage .sg-round").count(), shelf.num_pictures
    for words in ("a fox", "a fox in the", "a fox in the snow"):
        prompt(live).fill(words)
        live.wait_for_timeout(60)
    wait_for_live(live, "a fox in the snow")
    expect(status(live)).to_contain_text("not kept yet")
    assert (live.locator("#sg-lineage .sg-round").count(), shelf.num_pictures) == (rounds, rows)
    seen = pixels(live)
    prompt(live).press("Enter")
    wait_until_done(live)
    assert pixels(live) == seen
    assert shelf.num_pictures == rows + 4


def test_a_click_keeps_the_grid_and_picks_the_picture(live: Page, shelf: Shelf) -> None:
    """Once, however long one looks at it."""
    rows = shelf.num_pictures
    prompt(live).fill("a boat")
    wait_for_live(live, "a boat")
    live.keyboard.press("Escape")
    cell(live, 2).click()
    expect(cell(live, 2)).to_have_attribute("aria-selected", "true")
    wait_until_done(live)
    expect(live.locator("#sg-picked")).to_contain_text("a boat")
    expect(live.locator("#sg-refine")).to_be_enabled()
    assert shelf.num_pictures == rows + 4


def test_in_a_variation_s_field_only_its_picture_changes(live: Page, shelf: Shelf) -> None:
    """The others are the very same nodes; Refine keeps all four on the picked seed."""
    cell(live, 1).click()
    expect(live.locator("#sg-refine")).to_be_enabled()
    lines = [f", {words}" for words in ("in oil", "in ink", "in chalk", "in clay")]
    for number, line in enumerate(lines, 1):
        variation(live, number).fill(line)
    words = prompt(live).input_value()
    wait_for_live(live, *(words + line for line in lines))
    live.evaluate(f"() => document.querySelectorAll('{CELLS} img').forEach((i) => (i.sgSame = 1))")
    variation(live, 3).fill(", in coal")
    wait_for_live(live, *(words + line for line in (*lines[:2], ", in coal", lines[3])))
    same = f"() => [...document.querySelectorAll('{CELLS} img')].map((i) => i.sgSame === 1)"
    assert live.evaluate(same) == [True, True, False, True]
    rows, seen = shelf.num_pictures, pixels(live)
    variation(live, 3).press("Enter")
    wait_until_done(live)
    assert pixels(live) == seen
    assert shelf.num_pictures == rows + 4


def test_words_that_are_typed_back_show_the_round_that_was_kept(live: Page) -> None:
    """Nothing is painted for it, and no second one is made. Settings are followed like words.

    What is half typed is said at no field: the focus stays, and the last pictures, too.
    """
    kept, words = ids(live), prompt(live).input_value()
    prompt(live).press("End")
    prompt(live).press_sequentially("s")
    wait_for_live(live, f"{words}s")
    prompt(live).press("Backspace")
    wait_until_done(live)
    assert ids(live) == kept
    live.locator("#sg-settings > summary").click()
    live.locator("#sg-negative textarea").fill("blue")
    wait_for_live(live, words)
    seeds(live).fill("31-")
    expect(status(live)).to_contain_text("31-")
    expect(seeds(live)).to_be_focused()
    expect(live.locator(".sg-field-error")).to_have_count(0)
    seeds(live).fill("0-7")
    expect(status(live)).to_contain_text("up to 4 pictures")


def test_a_word_is_painted_while_one_looks_at_it(live: Page) -> None:
    """By the pointer or the arrows; when one looks away the round is there again."""
    kept, words = ids(live), prompt(live).input_value()
    prompt(live).click()
    live.locator("#sg-hints .sg-chip", has_text="trending").hover()
    wait_for_live(live, f"{words}, trending")
    live.mouse.move(700, 880)
    wait_until_done(live)
    assert ids(live) == kept
    cell(live, 0).click()
    expect(live.locator("#sg-refine")).to_be_enabled()
    prompt(live).click()
    live.locator("#sg-hints .sg-chip", has_text="artsy").focus()
    expect(live.locator(f"{CELLS}[data-state='live']")).to_have_count(4)
    expect(live.locator(f"{CELLS}[title='{words}, artsy']")).not_to_have_count(0)
    assert prompt(live).input_value() == words


def test_it_waits_in_a_hidden_tab(live: Page) -> None:
    """It says so, and paints the words as they stand when one looks again."""
    hide = """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange")); }"""
    live.evaluate(hide, True)
    expect(status(live)).to_contain_text("waits until you look again")
    asked = count_questions(live)
    prompt(live).fill("a hidden fox")
    live.wait_for_timeout(400)
    assert asked == []
    live.evaluate(hide, False)
    wait_for_live(live, "a hidden fox")


def test_one_question_is_under_way_and_one_waits(live: Page, gate: Gate) -> None:
    """However many keys are pressed meanwhile, the last words alone come after it."""
    asked = count_questions(live)
    prompt(live).fill("held a")
    while not asked:
        live.wait_for_timeout(20)
    for words in ("held ab", "held abc", "held abcd"):
        prompt(live).fill(words)
        live.wait_for_timeout(200)
    gate.open()
    wait_for_live(live, "held abcd")
    assert len(asked) <= 5


@pytest.mark.sweep
def test_two_pages_each_follow_their_own_words(open_page: OpenPage, browser: Browser) -> None:  # noqa: ARG001
    """Of one visitor and of two: neither is shown the other's pictures."""
    one = switch_on(open_page(), "41-44")
    context = one.context
    two = context.new_page()
    two.goto(one.url.split("?")[0])
    expect(two.locator("#sg-live")).to_have_attribute("aria-disabled", "false")
    other = switch_on(open_page(), "51-54")
    for page in (one, two, other):
        page.evaluate(HURRY)
    for words in ("a", "a c", "a cat"):
        for page in (one, two, other):
            prompt(page).fill(f"{words} {(one, two, other).index(page)}")
    for number, page in enumerate((one, two, other)):
        wait_for_live(page, f"a cat {number}")


def test_what_was_not_answered_is_asked_again(open_page: OpenPage) -> None:
    """A question that had to wait, or that nobody heard; no older picture stays for its words."""
    live = switch_on(open_page(loses_server=True), "71-74")
    live.evaluate(HURRY)
    prompt(live).fill("a fox at first")
    wait_for_live(live, "a fox at first")
    waits = json.dumps({"live": {"number": 2, "key": "live_paused_queue", "data": {}}})
    body, kind = f"data: {waits}\n\n", "text/event-stream"
    live.route("**/do/live-generate", lambda r: r.fulfill(body=body, content_type=kind), times=1)
    prompt(live).fill("a fox later")
    wait_for_live(live, "a fox later")
    live.route("**/do/live-generate", lambda route: route.abort(), times=1)
    prompt(live).fill("a fox after all")
    wait_for_live(live, "a fox after all")


def test_ten_seconds_of_rest_keep_what_is_shown(live: Page, shelf: Shelf) -> None:
    """With the page in front, and once."""
    rows = shelf.num_pictures
    live.evaluate(HURRY)
    prompt(live).fill("a resting fox")
    wait_for_live(live, "a resting fox")
    wait_until_done(live)
    assert shelf.num_pictures == rows + 4
    expect(live.locator(f"{CELLS}[title='a resting fox']")).to_have_count(4)
