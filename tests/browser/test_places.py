"""Nothing typed is lost: reload, Back, Forward, another tab, a server that starts again, links."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from serving import Gate, serve, serve_process
from steps import (
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    set_steps,
    status,
    variation,
    wait_until_done,
)

from seedgrid.web.server.page import say

FIELDS = """() => ["prompt", "seeds", "steps", "size", "negative", "scheduler", "vary-1", "vary-2"]
    .map((id) => document.querySelector(`#sg-${id} :is(textarea, input, select)`)?.value)"""


def fields(page: Page) -> list[str]:
    return list(page.evaluate(FIELDS))


def expect_fields(page: Page, wanted: list[str]) -> None:
    """Wait until the fields show what is wanted, and keep it."""
    page.wait_for_function(f"wanted => String(({FIELDS})()) === wanted", arg=",".join(wanted))
    page.wait_for_timeout(100)
    assert fields(page) == wanted


def expect_ids(page: Page, wanted: list[str]) -> None:
    page.wait_for_function(
        """wanted => String([...document.querySelectorAll("#sg-stage [data-cell]")].map(
            (cell) => cell.dataset.pictureId)) === wanted""",
        arg=",".join(wanted),
    )


def type_a_cat(page: Page) -> None:
    set_steps(page, 2)
    prompt(page).fill("a cat")
    seeds(page).fill("11-14")
    page.evaluate("SeedGrid.reveal(document.querySelector('#sg-scheduler'))")
    page.locator("#sg-scheduler select").select_option("Euler")
    variation(page, 2).fill(", in the fog")


def test_a_reload_keeps_the_words(page: Page) -> None:
    """What stands in the fields and what was only typed is there again, in this tab alone."""
    type_a_cat(page)
    first = generate(page)
    wanted = fields(page)
    page.reload()
    expect_ids(page, first)
    expect_fields(page, wanted)
    prompt(page).fill("a dog, typed and not sent")
    wanted = fields(page)
    page.reload()
    expect_fields(page, wanted)
    second = refine(page, 1)
    assert fields(page)[0] == "a dog, typed and not sent"
    page.reload()
    expect_ids(page, second)
    expect_fields(page, wanted)


HASTE = """async () => {
    for (const step of ["back", "forward"])
        await new Promise((went) => {
            addEventListener("popstate", went, {once: true});
            history[step]();
        });
}"""


def test_back_and_forward_go_through_places(page: Page) -> None:
    """Each with its own words and its pick; they do not leave the site.

    Whoever goes on before the server has answered still has all places before and behind.
    """
    start = fields(page)
    type_a_cat(page)
    first, cat = generate(page), fields(page)
    prompt(page).fill("a boat")
    second, boat = generate(page), fields(page)
    third = refine(page, 2)
    page.go_back()
    expect_ids(page, second)
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    page.go_back()
    expect_ids(page, first)
    expect_fields(page, cat)
    page.go_back()
    expect(page.locator("#sg-stage")).to_contain_text("Press Generate")
    page.wait_for_function("document.querySelector('#sg-prompt textarea').value !== 'a boat'")
    assert fields(page)[1] in (start[1], cat[1])
    for wanted, words in ((first, cat), (second, boat), (third, boat)):
        page.go_forward()
        expect_ids(page, wanted)
        expect_fields(page, words)
    page.go_back()
    expect_ids(page, second)
    page.evaluate(HASTE)
    expect_ids(page, second)
    page.go_forward()
    expect_ids(page, third)


def test_an_address_opens_in_another_tab(page: Page, open_page: OpenPage) -> None:
    """A second tab shows the round, its pick and its words; one tab leaves the other alone."""
    type_a_cat(page)
    first, cat = generate(page), fields(page)
    cell(page, 3).click()
    expect(page).to_have_url(re.compile(f"place={first[3]}"))
    other = open_page("?" + page.url.split("?")[1])
    expect_ids(other, first)
    expect(cell(other, 3)).to_have_attribute("aria-selected", "true")
    expect_fields(other, [*cat[:6], ", highly realistic", ", artsy"])
    second = refine(other, 3)
    other.reload()
    expect_ids(other, second)
    beside = page.context.new_page()
    beside.goto(page.url)
    expect_ids(beside, first)
    generate_elsewhere(beside)
    beside.close()
    page.reload()
    expect_ids(page, first)
    expect_fields(page, cat)


def generate_elsewhere(page: Page) -> None:
    prompt(page).fill("something else in another tab")
    generate(page)


@pytest.mark.sweep
def test_a_server_that_starts_again_finds_the_words(open_page: OpenPage, tmp_path: Path) -> None:
    """In the middle of a run: the page comes back by itself, once, with all that was typed.

    Until then it says in the visitor's language, and not in Gradio's words, that nobody answers.
    """
    away = "#sg-away"
    with serve_process(tmp_path / "library") as (address, process):
        page = open_page(at=address, locale="ko-KR", loses_server=True)
        type_a_cat(page)
        prompt(page).fill("a cat, held")
        page.click("#sg-generate")
        expect(cell(page, 0)).to_have_attribute("data-state", "painting")
        os.kill(process, signal.SIGKILL)
    prompt(page).fill("a cat, typed while nobody answers")
    expect(page.locator(away)).to_contain_text("SeedGrid가 응답하지 않습니다")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".toast-wrap")).to_be_hidden()
    wanted = fields(page)
    Gate(tmp_path / "library").open()
    loads: list[str] = []
    page.on("load", lambda: loads.append(page.url))
    with serve(tmp_path / "library", port=port_of(address)):
        expect(status(page)).to_contain_text(say("status_interrupted", "ko"))
        expect(page.locator(away)).to_be_hidden()
        expect(page.locator("#sg-stage")).to_have_attribute("aria-busy", "false")
        expect_fields(page, wanted)
        generate(page)
        assert fields(page) == wanted
        assert len(loads) == 1
        page.close()  # before its server


def port_of(address: str) -> int:
    return int(address.rstrip("/").rsplit(":", 1)[1])


def test_a_link_opens_the_picture_or_fills_it_in(open_page: OpenPage, elsewhere: str) -> None:
    """A copied link shows the very picture where the library has it, else waits for a click."""
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    prompt(page).fill("a fox & a “link”")
    seeds(page).fill("31")
    set_steps(page, 1)
    page.click("#sg-generate")
    wait_until_done(page, 1)
    cell(page, 0).click()
    expect(page.locator("#sg-link")).to_be_enabled()
    expect(page.locator("#sg-picked .sg-facts")).to_be_visible()
    page.click("#sg-more summary")
    page.click("#sg-link")
    expect(status(page)).to_contain_text("this machine only")
    link = "?" + page.evaluate("navigator.clipboard.readText()").split("?")[1]
    other = open_page(link, count=1)
    expect_ids(other, ids(page))
    expect(prompt(other)).to_have_value("a fox & a “link”")
    expect(cell(other, 0)).to_have_attribute("aria-selected", "true")
    stranger = open_page(link, at=elsewhere)
    expect(status(stranger)).to_contain_text("press Generate")
    expect(prompt(stranger)).to_have_value("a fox & a “link”")
    expect(stranger.locator("#sg-steps input")).to_have_value("1")
    stranger.click("#sg-generate")
    wait_until_done(stranger, 1)
    expect(cell(stranger, 0)).to_have_attribute("data-seed", "31")
    stranger.reload()
    wait_until_done(stranger, 1)
    assert "prompt=" not in stranger.url
