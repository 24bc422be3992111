"""The pick at the end: the large view, and pictures that leave as files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect
from steps import (
    CELLS,
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    status,
    wait_for_new_round,
    wait_until_done,
)

from seedgrid.formats import png

ZOOM = "dialog.sg-zoom"


def _zip(page: Page, selector: str) -> dict[str, bytes]:
    """Return the files of the archive that a link downloads."""
    with page.expect_download() as download:
        page.click(selector)
    with zipfile.ZipFile(download.value.path()) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_everything_is_done_in_the_large_view(page: Page) -> None:
    """Arrows go through the four; pick, favourite, save and refine are there."""
    prompt(page).fill("A café, artsy")
    first = generate(page)
    page.click("#sg-keys")
    expect(page.locator("#sg-help")).to_contain_text("Zoom")
    page.keyboard.press("Escape")
    picture = page.locator(f"{ZOOM} figure > img")
    cell(page, 1).dblclick()
    expect(picture).to_have_attribute("src", f"seedgrid/pictures/{first[1]}.png")
    page.keyboard.press("Escape")
    page.locator("body").press("Escape")  # lets go of what the first click picked
    page.locator("body").press("z")
    expect(picture).to_have_attribute("src", f"seedgrid/pictures/{first[0]}.png")
    page.keyboard.press("ArrowLeft")
    expect(picture).to_have_attribute("src", f"seedgrid/pictures/{first[3]}.png")
    page.keyboard.press("ArrowRight")
    page.click(f"{ZOOM} .sg-arrow-after")
    page.keyboard.press("ArrowRight")
    expect(picture).to_have_attribute("src", f"seedgrid/pictures/{first[2]}.png")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    page.click(f"{ZOOM} [data-tool='pick']")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    favourite = page.locator(f"{ZOOM} [data-tool='favourite']")
    favourite.click()
    expect(favourite).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    expect(favourite).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("f")  # means the picture that one sees, not the one that is picked
    expect(favourite).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowLeft")
    expect(favourite).to_have_attribute("aria-pressed", "true")
    with page.expect_download() as download:
        page.click(f"{ZOOM} [data-tool='save']")
    assert download.value.suggested_filename == "a-cafe-artsy-seed-2.png"
    page.click(f"{ZOOM} [data-tool='refine']")
    expect(page.locator(ZOOM)).to_have_count(0)
    wait_for_new_round(page, first)
    assert set(page.eval_on_selector_all(CELLS, "all => all.map((c) => c.dataset.seed)")) == {"2"}


def test_a_grid_a_tree_and_a_selection_leave_as_pictures(page: Page) -> None:
    """One ZIP each, the PNGs with their recipes, named by their words, and nothing else."""
    prompt(page).fill("a zipped fox")
    seeds(page).fill("5-6")
    page.click("#sg-generate")
    expect(page.locator(f"{CELLS}[data-state='done']")).to_have_count(2)
    cell(page, 0).click()
    page.click("#sg-refine")
    expect(page.locator(f"{CELLS}[data-state='done']")).to_have_count(4)
    cell(page, 1).click()
    page.click("#sg-more summary")
    grid = _zip(page, "#sg-export a[href*='/round.zip'][href*='download']")
    tree = _zip(page, "#sg-export a[href*='/work.zip'][href*='download']")
    assert (len(grid), len(tree)) == (4, 6)
    assert {"a-zipped-fox-seed-5.png", "a-zipped-fox-seed-6.png"} <= set(tree)
    assert {png.read(data).recipe.seed for data in grid.values()} == {5}
    page.click("#sg-library-open")
    page.fill("#sg-library input[type=search]", "zipped")
    expect(page.locator("#sg-library .sg-item")).to_have_count(6)
    page.click("#sg-library .sg-select")
    there = ids(page)
    for at in (0, 1):
        page.locator("#sg-library .sg-item-open").nth(at).click()
    page.locator("#sg-library .sg-item-open").nth(1).click()
    page.locator("#sg-library .sg-item-open").nth(2).click()
    expect(page.locator("#sg-library .sg-selected")).to_contain_text("2 selected")
    assert ids(page) == there
    assert len(_zip(page, "#sg-library .sg-download")) == 2
    link = page.locator("#sg-library .sg-download")
    link.evaluate("link => (link.href = link.href.replace(/ids=.*/, 'ids=gone'))")
    with page.expect_popup() as refused:  # A refusal is read, not saved as a file that failed
        link.click()
    expect(refused.value.locator("body")).to_have_text("there is nothing to download")


def test_a_poster_brings_a_work_back_on_anybodys_page(
    page: Page, open_page: OpenPage, elsewhere: str, tmp_path: Path
) -> None:
    """Dropped elsewhere, it is painted again there: the same rounds, the same bits."""
    first = generate(page)
    refined = refine(page, 1)
    cell(page, 0).click()
    page.click("#sg-more summary")
    poster = page.locator("#sg-export a", has_text="Poster").evaluate("link => link.href")
    (tmp_path / "poster.png").write_bytes(httpx.get(poster).content)
    theirs = open_page(at=elsewhere)
    theirs.set_input_files("#sg-drop input", tmp_path / "poster.png")
    wait_until_done(theirs)
    assert ids(theirs) == first
    expect(seeds(theirs)).to_have_value("0-3")
    expect(theirs.locator("#sg-lineage .sg-round")).to_have_count(2)
    expect(theirs.locator("#sg-lineage .sg-was-picked")).to_have_count(1)
    expect(status(theirs)).to_contain_text("identical")
    theirs.locator("#sg-lineage .sg-round").nth(1).click()
    wait_for_new_round(theirs, first)
    assert ids(theirs) == refined
