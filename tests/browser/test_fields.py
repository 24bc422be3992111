"""The fields: what stands in them is what is painted, and a mistake is explained where it is."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from steps import (
    Held,
    OpenPage,
    cell,
    generate,
    ids,
    open_experts,
    prompt,
    seeds,
    seeds_shown,
    set_steps,
    variation,
    wait_for_new_round,
    wait_for_turns,
    wait_until_done,
)

from seedgrid.core.fields import ON_PAGE

MISTAKES = (
    ("seeds", "abc", "not a list of seeds"),
    ("seeds", "4294967296", "out of range"),
    ("prompt", "", "prompt is empty"),
    ("steps", "0", "is no number of steps"),
    ("size", "7", "7x7 does not work"),
    ("guidance", "31", "Guidance 31"),
    ("mix", "some of 7", "no mix of seeds"),
)


def test_a_mistake_is_explained_at_its_field(page: Page) -> None:
    """The message stands at the field, goes when one types, and nothing is lost."""
    first = generate(page)
    open_experts(page)
    for field, value, words in MISTAKES:
        box = page.locator(f"#sg-{field}").locator("input, textarea").first
        good = box.input_value()
        message = page.locator(f"#sg-{field} [role=alert]")
        box.fill(value)
        page.click("#sg-generate")
        wait_for_turns(page)
        expect(message).to_contain_text(words)
        expect(box).to_have_attribute("aria-invalid", "true")
        assert ids(page) == first
        expect(page.locator(".sg-status-line")).to_contain_text(words)
        box.press("x")
        expect(message).to_have_count(0)
        expect(page.locator(".sg-status-line")).to_be_empty()
        box.fill(good)


def test_a_link_with_a_scheduler_that_is_not_offered_is_refused_not_changed(
    page: Page, address: str
) -> None:
    """The list shows what the link says, and Generate says what is wrong with it."""
    page.goto(f"{address}?prompt=a+moon&scheduler=Nope")
    expect(page.locator("#sg-scheduler select")).to_have_value("Nope")
    page.click("#sg-generate")
    expect(page.locator("#sg-scheduler [role=alert]")).to_contain_text("Nope")


def test_so_many_seeds_or_drawn_ones_are_a_choice_beside_the_field(page: Page) -> None:
    """The first one stays, so a grid that is liked is part of the wall; Generate still paints."""
    first = ids(page)
    seeds(page).fill("5, 9")
    count = page.get_by_label("How many seeds")
    count.select_option("16")
    expect(seeds(page)).to_have_value("5-20")
    count.select_option("Drawn")
    assert len(set(seeds(page).input_value().split(", "))) == 16
    assert ids(page) == first


def test_an_offer_that_comes_late_changes_no_choice(page: Page) -> None:
    """What is chosen while it is asked for stays, and an earlier model's lists are not shown."""
    set_steps(page, 2)
    open_experts(page)
    scheduler, model = page.locator("#sg-scheduler select"), page.locator("#sg-model select")
    held = Held(page, "do/offer")
    model.dispatch_event("change")
    earlier = held.wait().fetch().json()
    scheduler.select_option("Euler")
    with page.expect_response("**/do/offer"):
        model.dispatch_event("change")
    earlier["offer"]["lists"]["scheduler"] = [["Of another model", "Of another model"]]
    held.wait().fulfill(json=earlier)
    generate(page)
    expect(scheduler).to_have_value("Euler")
    cell(page, 0).click()
    expect(page.locator("#sg-picked .sg-facts")).to_contain_text("Euler")


def test_what_was_just_typed_is_what_is_painted(page: Page) -> None:
    """Words, seeds, settings and variations count from the very keystroke."""
    set_steps(page, 3)
    for button in ("Enter", "Control+Enter", "click"):
        before = ids(page)
        type_and_send(page, button)
        wait_for_new_round(page, before, 2)
        assert seeds_shown(page) == ["21", "22"]
        cell(page, 0).click()
        facts = page.locator("#sg-picked .sg-facts")
        expect(facts).to_contain_text(f"fog {button}")
        expect(facts).to_contain_text("96 × 64 · steps 2")
        expect(page.locator("#sg-picked .sg-words")).to_have_text(f"typed at once {button}")
    page.evaluate(
        """() => {
            const input = document.querySelector("#sg-vary-2 input");
            input.value = ", in the same tick";
            input.dispatchEvent(new Event("input", { bubbles: true }));
            document.querySelector("#sg-refine").click();
        }"""
    )
    expect(cell(page, 1)).to_contain_text("in the same tick")
    wait_until_done(page)


def type_and_send(page: Page, button: str) -> None:
    """Fill everything in and send it in one tick."""
    page.evaluate(
        """button => {
            const type = (id, value) => {
                const input = document.querySelector(`#sg-${id} :is(textarea, input)`);
                input.value = value;
                input.dispatchEvent(new Event("input", { bubbles: true }));
            };
            type("seeds", "21, 22");
            type("steps", "2");
            type("size", "96x64");
            type("negative", `fog ${button}`);
            type("prompt", `typed at once ${button}`);
            const prompt = document.querySelector("#sg-prompt textarea");
            const key = { key: "Enter", bubbles: true, cancelable: true };
            if (button === "Enter") prompt.dispatchEvent(new KeyboardEvent("keydown", key));
            else if (button === "click") document.querySelector("#sg-generate").click();
            else prompt.dispatchEvent(new KeyboardEvent("keydown", { ...key, ctrlKey: true }));
        }""",
        button,
    )


def test_portable_is_a_switch_and_the_card_is_marked(page: Page) -> None:
    """What it means and costs stands at the switch; only a portable picture's card says it."""
    set_steps(page, 2)
    open_experts(page)
    facts, badge = page.locator("#sg-picked .sg-facts"), page.locator("#sg-picked .sg-badge")
    generate(page)
    cell(page, 0).click()
    expect(facts).to_contain_text("steps 2")
    expect(facts).not_to_contain_text("same on every machine")
    expect(page.locator("#sg-portable")).to_contain_text("to the last bit, on any computer")
    page.check("#sg-portable input")
    expect(page.locator("#sg-portable")).to_contain_text("three to five times as long")
    generate(page)
    cell(page, 0).click()
    expect(facts).to_contain_text("same on every machine")
    expect(badge).to_have_text("Same everywhere")
    page.uncheck("#sg-portable input")


def test_experts_have_a_drawer_of_their_own(page: Page) -> None:
    """An artist sees five settings; each says what it does, and where bits stay the same.

    They scroll under the bar: no label of theirs is seen on it.
    """
    page.set_viewport_size({"width": 1400, "height": 600})
    page.locator("#sg-settings > summary").click()
    label = page.locator("#sg-negative label")
    expect(label).to_be_visible()
    on_top = label.evaluate(
        """(label) => {
            const bar = document.querySelector("#sg-generate").getBoundingClientRect();
            const middle = (bar.top + bar.bottom) / 2;
            const place = label.getBoundingClientRect();
            scrollBy({ top: (place.top + place.bottom) / 2 - middle, behavior: "instant" });
            const { left, top, bottom } = label.getBoundingClientRect();
            const isThere = Math.abs((top + bottom) / 2 - middle) < 4;
            const seen = document.elementFromPoint(left + 4, middle);
            return [isThere, seen.closest("#sg-settings") !== null];
        }"""
    )
    assert on_top == [True, False]
    for row in ON_PAGE:
        if row.widget == "bar":
            continue
        field = page.locator(f"#sg-{row.id}")
        expect(field).to_be_visible(visible=not row.is_expert)
        sentence = {"other": "", "last": "last bits", "same": "no bit"}[row.effect]
        expect(field).to_contain_text(sentence)
    open_experts(page)
    expect(page.locator("#sg-expert")).to_have_attribute("open", "")
    expect(page.locator("#sg-determinism")).to_be_visible()


def test_pasted_settings_of_other_tools_go_into_their_fields(open_page: OpenPage) -> None:
    """What is no setting here stays where it was."""
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#sg-shapes option:not([hidden])")).to_have_count(5)
    text = "a fox --ar 16:9 --seed 41 --v 6"
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    prompt(page).fill("")
    page.keyboard.press("Control+V")
    expect(prompt(page)).to_have_value("a fox --v 6")
    expect(seeds(page)).to_have_value("41")
    page.evaluate("text => navigator.clipboard.writeText(text)", "an owl --seed 9999999999")
    prompt(page).fill("")
    page.keyboard.press("Control+V")
    expect(prompt(page)).to_have_value("an owl --seed 9999999999")
    expect(seeds(page)).to_have_value("41")
    expect(page.locator("#sg-shapes")).to_have_value("344x192")


def test_a_shape_of_the_bar_is_painted(page: Page) -> None:
    """The field of sizes says what it stands for, and may be written into all the same."""
    set_steps(page, 2)
    shapes = page.locator("#sg-shapes")
    offered = shapes.locator("option:not([hidden])")
    expect(offered).to_have_text(["1:1", "3:2", "2:3", "16:9", "9:16"])
    own = shapes.input_value()
    expect(shapes).to_have_attribute("title", re.compile("^1:1"))
    shapes.select_option("16:9")
    expect(page.locator("#sg-size input")).to_have_value("344x192")
    generate(page)
    box = cell(page, 0).bounding_box()
    assert abs(box["width"] / box["height"] - 344 / 192) < 0.02
    page.fill("#sg-size input", "96x64")
    expect(shapes).to_have_value("96x64")
    page.fill("#sg-size input", "")
    expect(shapes).to_have_value(own)


def test_earlier_prompts_come_back(page: Page) -> None:
    """By ArrowUp, as in a terminal, and from a list that can be searched and shortened."""
    for words in ("a first fox", "a second owl"):
        prompt(page).fill(words)
        generate(page)
    prompt(page).fill("not sent yet")
    for key, words in (
        ("ArrowUp", "a second owl"),
        ("ArrowUp", "a first fox"),
        ("ArrowUp", "a first fox"),
        ("ArrowDown", "a second owl"),
        ("ArrowDown", "not sent yet"),
    ):
        prompt(page).press(key)
        expect(prompt(page)).to_have_value(words)
    page.click(".sg-history summary")
    page.fill(".sg-history input", "OWL")
    expect(page.locator(".sg-history-use")).to_have_text(["a second owl"])
    page.click(".sg-history-use")
    expect(prompt(page)).to_have_value("a second owl")
    page.click(".sg-history-forget")
    page.fill(".sg-history input", "")
    expect(page.locator(".sg-history-use")).to_have_text(["a first fox"])
    page.reload()
    prompt(page).click()
    page.click(".sg-history summary")
    expect(page.locator(".sg-history-use")).to_have_text(["a first fox"])
    page.click(".sg-history-clear")
    expect(page.locator(".sg-history")).to_be_hidden()


def test_tab_or_a_tap_completes_the_word_and_tab_moves_on_where_nothing_completes_it(
    open_page: OpenPage,
) -> None:
    """By the model's words and earlier prompts; Escape lets it go, so nobody is kept in a field."""
    page = open_page()
    ghost = page.locator(".sg-ghost")
    expect(page.locator("#sg-hints .sg-chip").first).to_be_attached()
    prompt(page).fill("misty mountains, ")
    page.keyboard.type("tren")
    expect(ghost).to_contain_text("ding")
    expect(prompt(page)).to_have_attribute("aria-description", re.compile("trending"))
    page.keyboard.press("Tab")
    expect(prompt(page)).to_have_value("misty mountains, trending")
    expect(prompt(page)).to_be_focused()
    expect(ghost).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(prompt(page)).to_have_value("misty mountains, tren")
    page.keyboard.type("d")
    ghost.locator("kbd").click()
    expect(prompt(page)).to_have_value("misty mountains, trending")
    expect(prompt(page)).to_be_focused()
    generate(page)
    variation(page, 1).fill("")
    page.keyboard.type(", MIST")
    expect(ghost).to_contain_text("y mountains")
    page.keyboard.press("Escape")
    expect(ghost).to_have_count(0)
    page.keyboard.press("Tab")
    expect(variation(page, 2)).to_be_focused()
    expect(variation(page, 1)).to_have_value(", MIST")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("End")
    page.keyboard.type(" mi")
    page.keyboard.press("ArrowLeft")
    expect(ghost).to_have_count(0)
    page.keyboard.press("Tab")
    expect(variation(page, 2)).to_be_focused()


def test_an_unknown_list_is_told_under_the_bar_with_its_place(open_page: OpenPage) -> None:
    """On a phone, too, where the prompt has a row of its own: nothing of the bar is covered."""
    page = open_page(viewport={"width": 390, "height": 844})
    prompt(page).fill("a __coat__ fox")
    page.click("#sg-generate")
    expect(page.locator("#sg-prompt [role=alert]")).to_contain_text("styles/coat.txt")
    page.click("#sg-generate", trial=True)
    expect(prompt(page)).to_have_value("a __coat__ fox")


def test_of_two_places_opened_quickly_the_last_ones_model_is_chosen(page: Page) -> None:
    """The lists of the first one's model come late."""
    set_steps(page, 2)  # waits for the lists
    model = page.locator("#sg-model select")
    here, held = model.input_value(), Held(page, "do/offer")
    for name, scheduler in (("another", "Euler"), (here, "DPM++ 2M")):
        fields = {"model": name, "scheduler": scheduler}
        page.evaluate("fields => void SeedGrid.shows.fields(fields)", fields)
    held.wait().continue_()
    expect(page.locator("#sg-scheduler select")).to_have_value("DPM++ 2M")
    page.wait_for_timeout(300)  # long enough for lists that should not come
    expect(model).to_have_value(here)
