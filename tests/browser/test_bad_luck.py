"""Errors of the world: no server, no folder, a file that is too large or says nothing."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect
from serving import serve_process
from steps import OpenPage, cell, generate, prompt, status


def test_a_folder_that_refuses_is_made_again_or_another_one_is_taken(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """On the page, by a click or a name; then everything goes on, until the server goes."""
    folder = tmp_path / "library"
    with serve_process(folder) as (address, process):
        page = open_page(at=address, loses_server=True)
        generate(page)
        shutil.rmtree(folder)
        folder.write_text("in the way")
        _refused(page, "a fox without a home")
        folder.unlink()
        again = page.get_by_role("button", name="Make the folder again")
        expect(again).to_be_in_viewport(ratio=1)
        again.click()
        expect(status(page)).to_contain_text(f"kept in {folder}")
        generate(page)
        shutil.rmtree(folder)
        folder.write_text("in the way")
        _refused(page, "a fox who moves")
        page.locator("#sg-status input").fill(str(tmp_path / "elsewhere"))
        page.get_by_role("button", name="Keep pictures there").click()
        expect(status(page)).to_contain_text(f"kept in {tmp_path / 'elsewhere'}")
        generate(page)
        assert list((tmp_path / "elsewhere").rglob("*.png"))
        cell(page, 1).click()
        os.kill(process, signal.SIGKILL)
        page.click("#sg-more summary")
        page.click("#sg-verify")
        expect(page.locator("#sg-away")).to_be_visible()


def test_what_cannot_be_taken_in_is_never_sent(page: Page, tmp_path: Path) -> None:
    """It is refused at once in our own words: another kind of file, and a size above the limit."""
    generate(page)  # what a page says as it opens would come after
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(243 * 2**20)
    alert = page.locator("#sg-drop [role=alert]")
    (tmp_path / "notes.txt").write_text("no picture")
    page.set_input_files("#sg-drop input[type=file]", tmp_path / "notes.txt")
    expect(alert).to_contain_text("notes.txt cannot be read here, only .png, ")
    expect(page.locator(".toast-wrap")).to_be_hidden()
    page.set_input_files("#sg-drop input[type=file]", large)
    expect(alert).to_contain_text("243 MB")
    expect(alert).to_contain_text("64 MB")
    assert not [url for url in sent if "upload" in url]


def test_a_picture_without_a_recipe_is_found_or_described(page: Page, tmp_path: Path) -> None:
    """The library knows its own pixels; another picture is what the next grid begins from."""
    prompt(page).fill("a fox that lost its text")
    first = generate(page)
    data = page.request.get(f"{page.url.split('?')[0]}seedgrid/pictures/{first[2]}.png").body()
    (tmp_path / "whole.png").write_bytes(data)
    Image.open(tmp_path / "whole.png").convert("RGB").save(tmp_path / "bare.png")
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "strange.png")
    prompt(page).fill("elsewhere")
    generate(page)
    page.set_input_files("#sg-drop input[type=file]", tmp_path / "bare.png")
    expect(cell(page, 2)).to_have_attribute("data-picture-id", first[2])
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    page.set_input_files("#sg-drop input[type=file]", tmp_path / "strange.png")
    expect(status(page)).to_contain_text("the start of your next grid")
    expect(page.locator("#sg-starting img")).to_be_visible()


def _refused(page: Page, words: str) -> None:
    prompt(page).fill(words)
    page.click("#sg-generate")
    expect(status(page)).to_contain_text("cannot be written")
