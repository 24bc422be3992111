"""Words on the page with the model in the box: unknown ones are told, Chinese ones are painted."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect
from serving import serve
from steps import (
    CELLS,
    SLOW_MS,
    SOON_MS,
    Held,
    OpenPage,
    cell,
    prompt,
    seeds,
    set_steps,
    variation,
    wait_until_done,
)

from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.formats import png
from seedgrid.models.shelf import bundled_folder


@pytest.fixture
def patience() -> Iterator[None]:
    """A real model takes its time, more so on a busy machine."""
    expect.set_options(timeout=SLOW_MS)
    yield
    expect.set_options(timeout=SOON_MS)


@pytest.fixture(scope="module")
def bundled_address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: ARG001 (no browser, no page)
    """The page with the model in the box."""
    if not (bundled_folder() / "model_index.json").is_file():
        pytest.skip("no bundled model in assets/model")
    with serve(tmp_path_factory.mktemp("bundled"), real=True) as address:
        yield address


def test_unknown_words_are_told_before_the_click(open_page: OpenPage, bundled_address: str) -> None:
    """At the prompt, with the words and another model a click away; gone with the words."""
    page = open_page(at=bundled_address)
    prompt(page).fill("a submarine below Tokyo")
    advice = page.locator("#sg-hints .sg-advice")
    expect(advice).to_contain_text(
        "does not know: submarine, Tokyo. It draws 30 things, among them Labrador"
    )
    advice.get_by_role("button", name="Its words").click()
    expect(page.locator(".sg-chip", has_text="sunflower")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".sg-hint-list")).to_be_hidden()
    advice.get_by_role("button", name="Another model").click()
    expect(page.locator("#sg-model select")).to_be_focused()
    page.keyboard.press("Escape")
    page.fill("#sg-size input", "512x512")
    expect(page.locator("#sg-size .sg-advice")).to_contain_text("made for 256x256")
    page.fill("#sg-size input", "")
    expect(page.locator("#sg-size .sg-advice")).to_have_count(0)
    page.locator("#sg-steps input").fill("12")
    expect(page.locator("#sg-settings .sg-advice")).to_contain_text("made for few steps (1)")
    tops = [page.locator(f"#sg-{name} input").bounding_box()["y"] for name in ("steps", "guidance")]
    assert tops[0] == tops[1]  # The notice does not push the field beside it down.
    page.locator("#sg-steps input").fill("")
    page.fill("#sg-negative textarea, #sg-negative input", "fog")
    page.fill("#sg-guidance input", "1")
    expect(page.locator("#sg-negative .sg-advice")).to_contain_text("nothing can be left out")
    variation(page, 1).fill(", qwxz")
    expect(page.locator("#sg-variations .sg-advice")).to_contain_text("qwxz")
    prompt(page).fill("a cat, watercolor")
    expect(page.locator("#sg-hints .sg-advice")).to_have_count(0)


COVERED = """() => {
    const plate = document.querySelector(".sg-invitation > :last-child").getBoundingClientRect();
    const isCovered = (box) => box.bottom > plate.top && box.top < plate.bottom
        && box.right > plate.left && box.left < plate.right;
    const captions = [...document.querySelectorAll(".sg-opening .sg-caption")];
    return captions.filter((each) => isCovered(each.getBoundingClientRect()))
        .map((each) => each.textContent);
}"""


def test_the_page_opens_with_pictures_of_the_model_in_the_box(
    open_page: OpenPage, bundled_address: str
) -> None:
    """A click goes on from one, honestly from elsewhere; the guide's four are a click away."""
    page = open_page(at=bundled_address)
    expect(page.locator(".sg-example")).to_have_count(4)
    expect(variation(page, 2)).to_have_value(", neon")
    for width in (390, 1024, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(COVERED) == [], width
    cell(page, 1).click()
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator(f"{CELLS}[data-state='done']")).to_have_count(4)
    expect(page.locator("#sg-picked .sg-badge").last).to_have_text("Not checked")
    expect(page.locator("#sg-picked .sg-words")).to_have_text("mushroom in the style of Van Gogh")
    expect(page.locator("#sg-refine")).to_be_enabled()
    expect(page.locator("#sg-final, #sg-final-4").filter(visible=True)).to_have_count(2)
    page.locator("#sg-fours .sg-chip").first.click()
    expect(variation(page, 2)).to_have_value(GUIDE_SUFFIXES[1])


def test_the_palette_knows_words_and_not_their_letters(
    open_page: OpenPage, bundled_address: str
) -> None:
    """What is in the prompt is lit, not what is in a variation; another subject takes its place.

    Half of a word is no word yet; once nothing completes it, it is told.
    """
    page = open_page(at=bundled_address)
    dragon = page.locator(".sg-chip", has_text="dragon")
    expect(dragon).to_be_attached()
    expect(variation(page, 1)).to_have_value(", at night")
    prompt(page).click()
    prompt(page).fill("a cartoon of a red fox")
    lit = page.locator(".sg-hint-list [aria-pressed='true']")
    expect(lit).to_have_text(["fox", "red"])
    dragon.click()
    expect(prompt(page)).to_have_value("a cartoon of a red dragon")
    prompt(page).press("Control+A")
    page.keyboard.type("a lighth")
    advice = page.locator("#sg-hints .sg-advice")
    expect(advice).to_contain_text("lighth")
    expect(advice).to_be_hidden()
    page.keyboard.type("q")
    expect(advice).to_contain_text("lighthq")
    expect(advice).to_be_visible()


def test_advice_is_of_what_stands_in_the_field_now(
    open_page: OpenPage, bundled_address: str
) -> None:
    """An answer about earlier words, though it comes later than others would, does not stay."""
    page = open_page(at=bundled_address)
    early = Held(page, "a submarine")
    prompt(page).fill("a submarine")
    early.wait()
    prompt(page).fill("a cat")
    page.wait_for_timeout(600)  # long enough for an answer that would be overtaken
    early.let_go()
    page.wait_for_timeout(300)  # long enough for what should not stay
    expect(page.locator("#sg-hints .sg-advice")).to_have_count(0)


@pytest.mark.sweep
@pytest.mark.usefixtures("patience")
def test_a_chinese_prompt_paints_what_it_says(open_page: OpenPage, bundled_address: str) -> None:
    """The very pixels of its English words; the card says both, words are offered in Chinese."""
    page = open_page("?__lang=zh", at=bundled_address, locale="zh-CN")
    set_steps(page, 2)
    prompt(page).fill("潜艇，水彩")
    expect(page.locator("#sg-hints .sg-advice")).to_contain_text("不认识：潜艇")
    expect(page.locator("#sg-hints .sg-advice")).to_contain_text("猫")
    seeds(page).fill("5")
    prompt(page).fill("猫，水彩")
    expect(page.locator("#sg-hints .sg-advice")).to_have_count(0)
    expect(page.locator(".sg-chip", has_text="向日葵")).to_be_visible()
    shas = []
    for words in ("猫，水彩", "cat, watercolor"):
        prompt(page).fill(words)
        page.click("#sg-generate")
        page.wait_for_function(
            "words => document.querySelector('[data-cell]').title === words", arg=words
        )
        wait_until_done(page, 1)
        cell(page, 0).click()
        expect(page.locator("#sg-picked .sg-words")).to_have_text(words)
        source = cell(page, 0).locator("img").get_attribute("src")
        record, _ = png.read_checked(httpx.get(f"{bundled_address}{source}").content)
        assert (record.recipe.prompt, record.recipe.words) == ("cat, watercolor", words)
        shas.append(record.pixels_sha256)
        painted = page.locator("#sg-picked .sg-painted")
        expect(painted).to_have_count(1 if words == "猫，水彩" else 0)
    assert len(set(shas)) == 1
