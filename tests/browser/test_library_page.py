"""The library, dropping, links, verifying and exports in a real browser."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import httpx
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Page, expect
from serving import serve
from steps import (
    CELLS,
    Held,
    OpenPage,
    cell,
    generate,
    ids,
    open_experts,
    prompt,
    refine,
    seeds,
    seeds_shown,
    set_steps,
    status,
    wait_for_turns,
    wait_until_done,
)

from seedgrid.library import Library
from tools.benchmarks.library import a_picture, fill

IS_DRAWN = "(node) => node.checkVisibility({contentVisibilityAuto: true})"
ITEMS = "#sg-library .sg-item"


def open_library(page: Page) -> None:
    page.click("#sg-library-open")
    expect(page.locator(ITEMS).first).to_be_visible()


def shown(page: Page) -> list[str]:
    """The ids of the items that are there, in order."""
    return page.eval_on_selector_all(
        f"{ITEMS} .sg-item-open", "all => all.map((each) => each.dataset.pictureId)"
    )


def search(page: Page, words: str) -> None:
    page.fill("#sg-library input[type=search]", words)
    expect(page.locator(f"{ITEMS} .sg-item-count")).to_have_count(0)  # pictures, no works


def test_a_day_begins_where_the_browser_is(open_page: OpenPage) -> None:
    """The library's times are in UTC, the days of its search are not."""
    page = open_page(timezone_id="Asia/Seoul")
    page.click("#sg-library-open")
    page.get_by_role("button", name="Filter").click()
    for name, instant in (("since", "2020-01-04T15"), ("until", "2020-01-05T15")):
        with page.expect_request("**/do/search") as asked:
            page.locator(f"#sg-library input[name={name}]").fill("2020-01-05")
        assert asked.value.post_data_json["asked"][name] == f"{instant}:00:00.000"


def test_the_library_lies_over_the_page_and_closes(page: Page) -> None:
    """Tab stays in it, and the focus goes back to what opened it, which opens it again."""
    generate(page)
    for close in (lambda: page.click("#sg-library-close"), lambda: page.keyboard.press("Escape")):
        open_library(page)
        for _ in range(3):
            page.keyboard.press("Tab")
            expect(page.locator("#sg-library dialog:focus-within")).to_be_visible()
        close()
        expect(page.locator("#sg-library .sg-item").first).not_to_be_visible()
        expect(page.locator("#sg-library-open")).to_be_focused()


def test_a_work_is_found_and_gone_on_with(page: Page) -> None:
    """Search, click, and the picture is on the stage at its place, ready to refine."""
    prompt(page).fill("a zebra of the library")
    first = generate(page)
    refine(page, 2)
    prompt(page).fill("something newer")
    generate(page)
    open_library(page)
    search(page, "zebra library")
    expect(page.locator(ITEMS)).to_have_count(8)
    page.locator(f"{ITEMS} [data-picture-id='{first[1]}']").click()
    expect(cell(page, 1)).to_have_attribute("data-picture-id", first[1])
    expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sg-lineage .sg-round")).to_have_count(2)
    page.click("#sg-refine")
    page.wait_for_function("document.querySelector(\"[data-cell='0']\").dataset.seed === '1'")


@pytest.mark.sweep
def test_a_large_library_comes_as_one_scrolls(open_page: OpenPage, tmp_path: Path) -> None:
    """A page of cards at a time, in order; what is far from the window is not drawn.

    What empties the trash is offered while something is in it.
    """
    library = Library(tmp_path)
    library.add(a_picture())
    fill(library, 500)
    with serve(tmp_path) as address:
        page = open_page(at=address)
        open_library(page)
        trash = page.get_by_role("button", name="Trash", exact=True)
        empty = page.get_by_role("button", name="Empty the trash")
        trash.click()
        expect(page.get_by_text("The trash is empty.")).to_be_visible()
        expect(empty).to_be_hidden()
        trash.click()
        page.locator(ITEMS).first.hover()
        page.locator(f"{ITEMS} .sg-item-remove").first.click()
        trash.click()
        expect(empty).to_be_visible()
        while page.locator(ITEMS).count():
            page.locator(f"{ITEMS} .sg-item-remove").first.click()
        expect(empty).to_be_hidden()
        trash.click()
        page.fill("#sg-library input[type=search]", "fox")
        expect(page.locator(ITEMS).nth(59)).to_be_attached()
        assert page.locator(ITEMS).count() <= 240
        page.wait_for_function(
            """(items) => { document.querySelector("#sg-library dialog").scrollTo(0, 1e9);
            return document.querySelectorAll(items).length > 240; }""",
            arg=ITEMS,
        )
        shown = page.eval_on_selector_all(
            f"{ITEMS} [data-picture-id]", "all => all.map((each) => each.dataset.pictureId)"
        )
        assert len(set(shown)) == len(shown)
        drawn = page.locator(f"{ITEMS} p").first.evaluate(IS_DRAWN)
        assert not drawn
        page.close()  # before its server


def test_what_is_thrown_away_can_be_taken_back(page: Page) -> None:
    """One click removes, one click or Ctrl+Z undoes; several go and come back together."""
    prompt(page).fill("a wombat to lose")
    generate(page)
    open_library(page)
    search(page, "wombat")
    expect(page.locator(ITEMS)).to_have_count(4)
    page.locator(ITEMS).first.hover()
    page.locator(f"{ITEMS} .sg-item-remove").first.click()
    expect(page.locator(ITEMS)).to_have_count(3)
    with page.expect_response("**/do/search"):
        search(page, "wombat lose")
    page.click("#sg-library .sg-undo button")
    expect(page.locator(ITEMS)).to_have_count(4)
    there = shown(page)
    page.click("#sg-library .sg-select")
    page.locator(f"{ITEMS} .sg-item-open").first.click()
    page.locator(f"{ITEMS} .sg-item-open").nth(2).click(modifiers=["Shift"])
    expect(page.locator(".sg-selected-count")).to_have_text("3 selected")
    page.click("#sg-library [data-tool=favourite]")
    expect(page.locator(f"{ITEMS} .sg-icon-star")).to_have_count(3)
    page.click("#sg-library [data-tool=compare]")
    expect(page.locator("dialog.sg-compare .sg-compare-others button")).to_have_count(2)
    page.keyboard.press("Escape")
    page.click("#sg-library [data-tool=remove]")
    expect(page.locator(ITEMS)).to_have_count(1)
    expect(page.locator(".sg-undo")).to_contain_text("3")
    page.click("#sg-library .sg-undo button")
    expect(page.locator(ITEMS)).to_have_count(4)
    assert shown(page) == there
    page.locator(ITEMS).first.hover()
    page.locator(f"{ITEMS} .sg-item-remove").first.click()
    page.keyboard.press("Control+z")
    expect(page.locator(ITEMS)).to_have_count(4)
    expect(page.locator(".sg-undo")).to_be_hidden()
    page.locator(ITEMS).first.hover()
    page.locator(f"{ITEMS} .sg-item-remove").first.click()
    page.get_by_role("button", name="Trash", exact=True).click()
    expect(page.locator(ITEMS)).to_have_count(1)


def test_what_the_library_changes_is_seen_on_the_stage(page: Page) -> None:
    """Thrown away, taken back, made a favourite: cell and card say so without a reload.

    The star filters the library; a note is there after a reload.
    """
    prompt(page).fill("an egret above its library")
    first = generate(page)
    cell(page, 2).click()
    expect(page.locator("#sg-star")).to_be_visible()
    open_library(page)
    search(page, "egret")
    expect(page.locator(ITEMS)).to_have_count(4)
    wanted = page.locator(ITEMS).filter(has=page.locator(f"[data-picture-id='{first[2]}']"))
    wanted.hover()
    wanted.locator(".sg-item-remove").click()
    expect(cell(page, 2)).to_have_attribute("data-mark", "picture_trashed")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    page.click("#sg-library .sg-undo button")
    expect(cell(page, 2)).to_have_attribute("data-mark", "")
    page.click("#sg-library .sg-select")
    wanted.locator(".sg-item-open").click()
    page.click("#sg-library [data-tool=favourite]")
    expect(page.locator("#sg-star")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Favourites", exact=True).click()
    expect(page.locator(ITEMS)).to_have_count(1)
    page.click("#sg-library-close")
    page.fill("#sg-picked .sg-note", "for the cover")
    page.press("#sg-picked .sg-note", "Enter")
    page.reload()
    expect(page.locator("#sg-picked .sg-note")).to_have_value("for the cover")


def test_tags_gather_and_works_alike_are_one(page: Page) -> None:
    """Markup in a tag is text; its chip opens the collection; what is equal is one card."""
    hostile = "<img src=x onerror=alert(1)>"
    prompt(page).fill("a heron made twice")
    generate(page)
    generate(page)
    open_library(page)
    expect(page.locator(ITEMS).first).to_contain_text("2 × the same")
    search(page, "heron twice")
    expect(page.locator(ITEMS)).to_have_count(4)
    expect(page.locator(f"{ITEMS} .sg-times")).to_have_text(["2 × the same"] * 4)
    page.click("#sg-library .sg-select")
    for at in (1, 2):
        page.locator(f"{ITEMS} .sg-item-open").nth(at).click()
    tagged = [shown(page)[at] for at in (1, 2)]
    page.fill("#sg-library .sg-tag-form input", hostile)
    page.keyboard.press("Enter")
    expect(page.locator(".sg-shared-tags")).to_have_text(hostile)
    page.keyboard.press("Escape")
    chip = page.locator("#sg-library .sg-tags button")
    expect(chip).to_have_text(f"{hostile}4")
    chip.click()
    expect(page.locator(ITEMS)).to_have_count(2)
    assert shown(page) == tagged
    expect(page.locator(f"{ITEMS} .sg-item-tag").first).to_have_text(hostile)
    page.select_option("#sg-library .sg-order", "oldest")
    page.wait_for_function(
        f"id => document.querySelector('{ITEMS} .sg-item-open').dataset.pictureId === id",
        arg=tagged[1],
    )
    page.click("#sg-library .sg-select")
    page.click("#sg-library [data-tool=all]")
    page.click("#sg-library .sg-shared-tags button")
    expect(chip).to_have_count(0)
    expect(page.locator(ITEMS)).to_have_count(4)


@pytest.mark.sweep
def test_on_a_phone_a_finger_selects(open_page: OpenPage) -> None:
    """Captions stand under the pictures, no cross on each; what is selected goes and comes back."""
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    prompt(page).fill("a wombat on a phone")
    generate(page)
    open_library(page)
    search(page, "wombat phone")
    expect(page.locator(ITEMS)).to_have_count(4)
    expect(page.locator(f"{ITEMS} p").first).to_contain_text("a wombat on a phone")
    expect(page.locator(f"{ITEMS} p").first).to_be_visible()
    expect(page.locator(f"{ITEMS} .sg-item-remove").first).to_be_hidden()
    page.click("#sg-library .sg-select")
    page.click("#sg-library [data-tool=all]")
    page.click("#sg-library [data-tool=remove]")
    expect(page.locator(ITEMS)).to_have_count(0)
    page.click("#sg-library .sg-undo button")
    expect(page.locator(ITEMS)).to_have_count(4)


def test_another_tools_picture_fills_in_the_page(page: Page, tmp_path: Path) -> None:
    """Words and seed are in the fields, and the status says what cannot come along.

    The model is still the one that was chosen: where it was another than the server's own, the
    LoRA that came along did not fit any more.
    """
    open_experts(page)
    model = page.locator("#sg-model select")
    model.select_option("bundled")
    wait_for_turns(page)
    expect(model).to_have_value("bundled")
    texts = PngInfo()
    texts.add_text(
        "parameters",
        "a castle in the air\nNegative prompt: fog\n"
        "Steps: 20, Sampler: Euler, CFG scale: 7, Seed: 42, Size: 64x64",
    )
    path = tmp_path / "a1111.png"
    Image.new("RGB", (64, 64), "red").save(path, pnginfo=texts)
    page.set_input_files("#sg-drop input[type=file]", path)
    expect(prompt(page)).to_have_value("a castle in the air")
    expect(seeds(page)).to_have_value("42")
    expect(status(page)).to_contain_text("AUTOMATIC1111")
    expect(page.locator("#sg-steps input")).to_have_value("")
    page.get_by_role("button", name="Use its settings too: Steps 20, Guidance 7").click()
    expect(page.locator("#sg-steps input")).to_have_value("20")
    expect(prompt(page)).to_have_value("a castle in the air")
    expect(model).to_have_value("bundled")


def test_subtle_and_strong_keep_words_and_seed(page: Page) -> None:
    """Neighbours differ from each other and from their parent, at any depth."""
    first = generate(page)
    for button in ("subtle", "strong"):
        before = ids(page)
        cell(page, 1).click()
        page.click(f"#sg-{button}")
        page.wait_for_function(
            "before => document.querySelector('[data-cell]').dataset.pictureId !== before",
            arg=before[0],
        )
        wait_until_done(page)
        assert len(set(seeds_shown(page))) == 1
        expect(cell(page, 2)).to_contain_text(f"{button} 3")
    assert not set(first) & set(ids(page))


def test_a_table_of_seeds_and_prompts(page: Page) -> None:
    """Each prompt on each seed, labelled; a cell is refined like any other."""
    set_steps(page, 4)
    prompt(page).fill("a fox in a table")
    open_experts(page)
    page.fill("#sg-more-prompts textarea", "a house in a table\n\na moon in a table")
    seeds(page).fill("3, 9")
    page.click("#sg-generate")
    wait_until_done(page, 6)
    assert seeds_shown(page) == ["3", "9"] * 3
    headings = page.locator("#sg-stage .sg-heading")
    expect(headings).to_have_text(
        ["3", "9", "a fox in a table", "a house in a table", "a moon in a table"]
    )
    cell(page, 3).click()
    page.click("#sg-refine")
    expect(page.locator(CELLS)).to_have_count(4)
    wait_until_done(page)
    assert seeds_shown(page) == ["9"] * 4
    expect(cell(page, 0)).to_have_attribute("title", re.compile("a house in a table"))


def test_a_round_leaves_as_sheet_bundle_and_script(page: Page, address: str) -> None:
    """Each link of Export gives its file; Verify says that the picture is identical.

    A verdict goes with the picture that it is about.
    """
    first = generate(page)
    cell(page, 1).click()
    page.click("#sg-more summary")
    page.click("#sg-verify")
    expect(page.locator("#sg-verdict [data-verdict='identical']")).to_contain_text("Identical")
    cell(page, 0).click()
    expect(page.locator("#sg-verdict .sg-verdict")).to_have_count(0)
    links = page.eval_on_selector_all(
        "#sg-export a[href*='/export/']", "all => all.map((a) => a.href)"
    )
    assert len(links) == 6
    answers = {
        httpx.URL(link).path.rsplit(".", 1)[1]: httpx.get(link).content for link in links[::2]
    }
    assert Image.open(io.BytesIO(answers["png"])).width > 256
    assert b"DDIMScheduler" in answers["py"]
    names = zipfile.ZipFile(io.BytesIO(answers["zip"])).namelist()
    assert len([name for name in names if name.endswith(".png")]) == 4
    assert {"reproduce.py", "requirements.txt", "recipes.json"} <= set(names)
    assert httpx.get(f"{address}seedgrid/export/{first[0]}/round.exe").status_code == 422


def test_another_pick_ends_a_verification(page: Page) -> None:
    """Its verdict is not put under the other picture."""
    generate(page)
    cell(page, 1).click()
    page.click("#sg-more summary")
    held = Held(page, "do/verify")
    page.click("#sg-verify")
    held.wait()
    with page.expect_event("requestfailed", lambda request: "do/verify" in request.url):
        cell(page, 0).click()
    expect(page.locator("#sg-verdict .sg-verdict")).to_have_count(0)
