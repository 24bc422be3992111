"""Starting from a picture, in a real browser: a photograph, a picked picture, a large final."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from safetensors.numpy import save_file
from serving import serve
from steps import OpenPage, cell, generate, ids, wait_for_new_round


def test_a_dropped_photograph_begins_the_next_grid(page: Page, tmp_path: Path) -> None:
    """It stands beside the prompt, a click from its strength, until let go; so does a pick."""
    photo = tmp_path / "photo.jpg"
    Image.radial_gradient("L").convert("RGB").save(photo)
    page.locator("#sg-drop input[type=file]").set_input_files(str(photo))
    chip = page.locator(".sg-starting")
    expect(chip).to_be_visible()
    expect(page.locator("#sg-generate")).to_be_in_viewport()
    chip.click()
    expect(page.locator("#sg-strength input")).to_be_focused()
    expect(page.locator("#sg-strength")).to_be_in_viewport()
    generate(page)
    cell(page, 1).click()
    expect(page.locator("#sg-picked")).to_contain_text("from a picture, strength 0.6")
    page.click(".sg-starting-away")
    expect(chip).to_have_count(0)
    page.click("#sg-more summary")
    page.click("#sg-begin")
    expect(page.locator("#sg-start input")).to_have_value(ids(page)[1])
    expect(chip).to_be_visible()


def test_four_large_finals_of_the_pick(page: Page) -> None:
    """Four strengths in the four cells, twice as wide.

    On a phone the button lies far below them: they come into sight.
    """
    before = generate(page)
    cell(page, 2).click()
    expect(page.locator("#sg-final")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("#sg-final")
    expect(page.locator("#sg-stage")).to_be_in_viewport(ratio=0.9)
    wait_for_new_round(page, before)
    captions = page.locator("#sg-stage .sg-caption")
    expect(captions).to_have_text([f"512x512, strength 0.{tenths}" for tenths in (2, 3, 4, 5)])
    expect(page.locator("#sg-stage .sg-cell img").first).to_have_js_property("naturalWidth", 512)


@pytest.mark.sweep
def test_a_network_makes_the_large_final(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is here is offered beside the model itself, and in the large view."""
    networks = tmp_path / "models" / "upscalers"
    networks.mkdir(parents=True)
    weights = {"body.0.weight": np.zeros((4, 3, 3, 3), np.float32)}
    save_file(weights, networks / "2x-foxes.safetensors")
    monkeypatch.setenv("SEEDGRID_MODELS", str(tmp_path / "models"))
    with serve(tmp_path / "library") as address:
        page = open_page(at=address)
        before = generate(page)
        cell(page, 1).click()
        page.get_by_label("Enlarged by").select_option("2x-foxes")
        page.click("#sg-final")
        wait_for_new_round(page, before, count=1)
        expect(page.locator("#sg-stage .sg-caption").first).to_have_text("512x512, 2x-foxes")
        expect(page.get_by_label("Enlarged by")).to_have_value("2x-foxes")
        cell(page, 0).click()
        expect(page.locator("#sg-picked")).to_contain_text("enlarged by 2x-foxes")
        page.click("#sg-back")
        expect(cell(page, 3)).to_have_attribute("data-state", "done")
        page.click("#sg-zoom")
        page.keyboard.press("ArrowRight")
        page.click("dialog.sg-zoom [data-tool='large']")
        enlarged = page.locator("dialog.sg-zoom figure > img")
        expect(enlarged).to_have_js_property("naturalWidth", 1024)
        expect(page.locator("dialog.sg-zoom [data-tool='large']")).to_have_count(0)
        expect(page.locator("dialog.sg-zoom [data-tool='save']")).to_be_enabled()
        page.keyboard.press("Escape")
        expect(page.locator("#sg-picked")).to_contain_text("1024 × 1024")
        page.close()  # before its server
