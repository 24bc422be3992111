"""A second round tries other words than the first, and takes nothing away that was typed."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from steps import (
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    variation,
    wait_for_new_round,
    wait_until_done,
)

from seedgrid.core.prompts import FURTHER_SUFFIXES, GUIDE_SUFFIXES

OFFERED = list(FURTHER_SUFFIXES)


def offered(page: Page) -> list[str]:
    return [variation(page, number).input_value() for number in (1, 2, 3, 4)]


def expect_offered(page: Page, wanted: list[str]) -> None:
    for number, words in enumerate(wanted, start=1):
        expect(variation(page, number)).to_have_value(words)


def test_a_second_round_offers_what_was_not_tried(page: Page) -> None:
    """The artist's own words first, then the model's; never what the picture's words hold."""
    prompt(page).fill("a fox")
    seeds(page).fill("51-54")
    generate(page)
    cell(page, 0).click()
    expect_offered(page, list(GUIDE_SUFFIXES))  # a first round: as it was
    variation(page, 2).fill(", in bronze")
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    cell(page, 1).click()
    expect_offered(page, [", artsy", *OFFERED[:3]])
    variation(page, 3).fill(", typed by hand")
    cell(page, 2).click()
    expect_offered(page, [", artsy", OFFERED[0], ", typed by hand", OFFERED[2]])
    page.reload()
    wait_until_done(page)
    expect_offered(page, [", artsy", OFFERED[0], ", typed by hand", OFFERED[2]])
    first, second = {*GUIDE_SUFFIXES, ", in bronze"}, set(offered(page))
    refine(page, 2)
    cell(page, 0).click()
    page.wait_for_function(  # none that was tried in this work
        """tried => [...document.querySelectorAll("#sg-variations input")].every(
            (input) => !tried.includes(input.value))""",
        arg=[*first | second],
    )
    page.go_back()
    expect(variation(page, 3)).to_have_value(", typed by hand")
    prompt(page).fill("a boat")
    variation(page, 1).fill(", anew")
    generate(page)
    refine(page, 0)
    cell(page, 0).click()
    expect(variation(page, 1)).to_have_value(
        ", in bronze"
    )  # the artist's own last one not used here


def test_words_of_the_prompt_are_not_offered_again(page: Page) -> None:
    """Also in a first round: ", artsy" says nothing more of an artsy fox."""
    prompt(page).fill("an artsy fox, colorful")
    seeds(page).fill("55-58")
    generate(page)
    cell(page, 3).click()
    expect_offered(page, [", highly realistic", OFFERED[0], ", trending", OFFERED[1]])


def test_esc_on_a_word_closes_the_words_and_keeps_the_pick(page: Page) -> None:
    """The prompt has the focus again."""
    generate(page)
    cell(page, 0).click()
    prompt(page).focus()
    page.locator("#sg-hints .sg-chip").first.focus()
    page.keyboard.press("Escape")
    expect(prompt(page)).to_be_focused()
    expect(cell(page, 0)).to_have_attribute("aria-selected", "true")
