"""Errors of the world: no server, a file that is too large or says nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from serving import serve_process
from steps import OpenPage, cell, generate, ids, prompt, status


@pytest.mark.sweep
def test_a_server_that_is_gone_is_said(open_page: OpenPage, tmp_path: Path) -> None:
    """Whatever asks it next."""
    with serve_process(tmp_path / "library") as (address, process):
        page = open_page(at=address, loses_server=True)
        generate(page)
        cell(page, 1).click()
        os.kill(process, signal.SIGKILL)
        page.click("#sg-more summary")
        page.click("#sg-verify")
        expect(page.locator("#sg-away")).to_be_visible()


def test_what_cannot_be_taken_in_is_never_sent(page: Page, tmp_path: Path) -> None:
    """It is refused at once in our own words: another kind of file, and a size above the limit.

    What is sent and is no picture is explained at the field; the stage is as it was.
    """
    first = generate(page)  # what a page says as it opens would come after
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
    assert not [url for url in sent if "/drop" in url]
    (tmp_path / "x.png").write_text("not a picture")
    page.set_input_files("#sg-drop input[type=file]", tmp_path / "x.png")
    expect(alert).to_contain_text("no picture that SeedGrid reads")
    assert ids(page) == first


def test_a_dropped_picture_opens_where_it_belongs(page: Page, tmp_path: Path) -> None:
    """With its recipe, or by its very pixels; another picture is what the next grid begins from."""
    prompt(page).fill("a fox that comes home")
    first = generate(page)
    data = page.request.get(f"{page.url.split('?')[0]}seedgrid/pictures/{first[2]}.png").body()
    (tmp_path / "whole.png").write_bytes(data)
    with Image.open(tmp_path / "whole.png") as image:
        image.convert("RGB").save(tmp_path / "bare.png")
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "strange.png")
    for name in ("whole.png", "bare.png"):
        prompt(page).fill("elsewhere")
        generate(page)
        page.set_input_files("#sg-drop input[type=file]", tmp_path / name)
        expect(cell(page, 2)).to_have_attribute("data-picture-id", first[2])
        expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
        expect(status(page)).to_contain_text("Taken into the library")
    page.set_input_files("#sg-drop input[type=file]", tmp_path / "strange.png")
    expect(status(page)).to_contain_text("the start of your next grid")
    expect(page.locator("#sg-starting img")).to_be_visible()
