"""The page around the workflow: keys, errors, languages, two visitors, phone, hostile text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from serving import Gate, serve
from steps import (
    CELLS,
    PICTURES,
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    seeds_shown,
    status,
    variation,
    wait_for_new_round,
    wait_until_done,
)

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


ENGLISH = "Pick a|Seeds|Settings|Refine|Zoom"

CONTRACT = (
    *("prompt", "negative", "seeds", "generate", "stop", "stage", "picked", "vary-1", "vary-2"),
    *("vary-3", "vary-4", "refine", "hold", "back", "lineage", "status", "verify", "verdict"),
    *("save", "drop", "compare", "settings", "library"),
)


def test_every_id_of_the_contract_is_there_from_the_start(page: Page) -> None:
    """Scripts find each part by its id, also what is folded away; the settings stay folded.

    A screen reader says what each field is; light and dark follow the system.
    """
    for name in CONTRACT:
        expect(page.locator(f"#sg-{name}")).to_be_attached()
    expect(page.locator("#sg-negative")).to_be_hidden()
    expect(prompt(page)).to_have_accessible_name("Prompt")
    expect(page.locator("#sg-seeds").locator("input, textarea")).to_have_accessible_name("Seeds")
    for number in range(1, 5):
        expect(variation(page, number)).to_have_accessible_name(f"Variation {number}")
    expect(page.locator("#sg-refine")).to_have_attribute("aria-keyshortcuts", "R")
    for scheme, is_light in (("light", True), ("dark", False)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", colour)[0]) > 128) is is_light


KOREAN_R = """document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key: "ㄱ", code: "KeyR", bubbles: true }))"""


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    """Ctrl+Enter, 1-4, R, B, Z, F and Esc do what their buttons do, and ? lists them.

    Letters that are typed into a field are letters.
    """
    page.locator("body").press("?")
    expect(page.locator("#sg-help")).to_contain_text("Refine this seed")
    expect(page.locator("#sg-help kbd")).to_have_count(14)
    page.keyboard.press("Escape")
    expect(page.locator("#sg-help")).to_have_count(0)
    prompt(page).press("Control+Enter")
    wait_until_done(page)
    first = ids(page)
    prompt(page).fill("")
    prompt(page).press_sequentially("rbzf 1234")
    expect(prompt(page)).to_have_value("rbzf 1234")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    expect(page.locator("dialog")).to_have_count(0)
    page.evaluate("document.activeElement.blur()")
    page.locator("body").press("3")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    page.locator("body").press("f")
    expect(page.locator("#sg-star")).to_have_attribute("aria-pressed", "true")
    page.locator("body").press("z")
    expect(page.locator("dialog.sg-zoom")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.sg-zoom")).to_have_count(0)
    page.evaluate(KOREAN_R)
    page.wait_for_function("document.querySelector(\"[data-cell='0']\").dataset.seed === '2'")
    wait_until_done(page)
    page.locator("body").press("b")
    expect(cell(page, 0)).to_have_attribute("data-picture-id", first[0])


def test_enter_in_a_variation_refines(page: Page) -> None:
    """Whoever types words for a variation means this picture: its seed, the new words."""
    generate(page)
    for key in ("Enter", "Control+Enter"):
        before = ids(page)
        cell(page, 2).click()
        expect(page.locator("#sg-refine")).to_be_enabled()
        variation(page, 1).fill(f", at dusk, by {key}")
        variation(page, 1).press(key)
        wait_for_new_round(page, before)
        assert set(seeds_shown(page)) == {"2"}


def test_other_seeds_are_painted_and_stand_in_the_field(page: Page) -> None:
    """The next ones after those of the field, as many as it says, or drawn ones; all in sight."""
    before = generate(page)
    expect(page.locator("#sg-next")).to_have_text("Next four")
    page.click("#sg-next")
    wait_for_new_round(page, before)
    assert seeds_shown(page) == ["4", "5", "6", "7"]
    expect(seeds(page)).to_have_value("4-7")
    before = ids(page)
    page.click("#sg-roll")
    wait_for_new_round(page, before)
    assert seeds(page).input_value().split(", ") == seeds_shown(page)
    assert len(set(seeds_shown(page))) == 4
    seeds(page).fill("4, 5")
    expect(page.locator("#sg-next")).to_have_text("Next 2")
    page.click("#sg-next")
    expect(page.locator(CELLS)).to_have_count(2)
    wait_until_done(page, 2)
    assert seeds_shown(page) == ["6", "7"]
    seeds(page).fill("1 - 3; 8")
    expect(page.locator("#sg-next")).to_have_text("Next four")
    for refused in ("1, 2, 3, x", "1e2", "0x10", "7-8-9"):
        seeds(page).fill(refused)
        expect(page.locator("#sg-next")).to_have_text("Next 2")
    for count in (1, 3, 9):
        seeds(page).fill(f"1-{count}" if count > 1 else "1")
        page.click("#sg-generate")
        wait_until_done(page, count)
        expect(page.locator(CELLS)).to_have_count(count)


@pytest.mark.usefixtures("gate")
def test_escape_and_stop_keep_the_page_usable(page: Page) -> None:
    """Esc stops the run, also while one types; Generate is back at once and works.

    The second run wins the stage; the first one's last words do not disturb it.
    """
    prompt(page).fill("a fox that is held")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    cell(page, 0).click()
    prompt(page).press("Escape")
    expect(page.locator("#sg-generate")).to_be_visible()
    expect(status(page)).to_contain_text("Stopped")
    expect(page.locator(f"{CELLS}[aria-selected='true']")).to_have_count(0)
    prompt(page).fill("a fox that is held and stopped")
    page.click("#sg-generate")
    expect(cell(page, 0)).to_have_attribute("data-state", "painting")
    seeds(page).fill("10-13")
    prompt(page).fill("a fox after it")
    page.click("#sg-stop")
    page.click("#sg-generate")
    expect(page.locator(PICTURES)).to_have_count(4)
    wait_until_done(page)
    assert seeds_shown(page) == ["10", "11", "12", "13"]
    expect(status(page)).to_contain_text("Done")


@pytest.mark.sweep
def test_two_visitors_do_not_meet(open_page: OpenPage) -> None:
    """Each sees only their own pictures on stage and rail.

    The library of this machine is shared, so it is shown to who opens it and to nobody else.
    """
    one, two = open_page(), open_page()
    prompt(one).fill("a secret fox")
    mine = generate(one)
    two.reload()
    two.locator("#sg-stage[aria-busy]").wait_for()
    prompt(two).fill("a public fox")
    two.evaluate("scrollTo(0, document.body.scrollHeight)")
    generate(two)
    two.wait_for_load_state("networkidle")
    assert not any(id_ in two.content() for id_ in mine)
    assert "a secret fox" not in two.content()
    two.click("#sg-library")
    expect(two.locator(f"#sg-library [data-picture-id='{mine[0]}']")).to_have_count(0)
    expect(two.locator("#sg-library .sg-item").first).to_be_visible()
    expect(two.locator("#sg-library")).to_contain_text("a secret fox")


def test_a_file_that_is_gone_leaves_a_quiet_mark(
    open_page: OpenPage, elsewhere: str, their_library: Path
) -> None:
    """No broken image: one sentence, and Refine goes on from the recipe."""
    page = open_page(at=elsewhere)
    prompt(page).fill("a fox that goes")
    generate(page)
    refine(page, 0)
    page.wait_for_function(
        """() => { const small = [...document.querySelectorAll("#sg-lineage img")];
            return small.length === 8 && small.every((image) => image.complete); }"""
    )
    for path in their_library.rglob("objects/**/*.png"):
        path.unlink()
    page.reload()
    expect(cell(page, 1)).to_contain_text("The file of this picture is gone")
    expect(page.locator("#sg-stage img, #sg-lineage img")).to_have_count(0)
    cell(page, 1).click()
    expect(page.locator("#sg-hint")).to_contain_text("its recipe is kept")
    expect(page.locator("#sg-save")).to_be_disabled()
    before = ids(page)
    page.click("#sg-refine")
    wait_for_new_round(page, before)
    assert seeds_shown(page) == ["0"] * 4


def test_a_failed_run_says_what_to_do(page: Page) -> None:
    """The engine's error is on the page, and the next run works."""
    prompt(page).fill("something broken")
    page.click("#sg-generate")
    expect(status(page)).to_contain_text("try number format float32")
    expect(page.locator("#sg-generate")).to_be_visible()
    prompt(page).fill("a red fox")
    generate(page)


@pytest.mark.parametrize(
    ("locale", "path", "button", "untranslated"),
    [
        ("ko-KR", "", "만들기", f"{ENGLISH}|Compare"),
        pytest.param("zh-CN", "", "生成", f"{ENGLISH}|Compare", marks=pytest.mark.sweep),
        pytest.param(
            "tlh", "", "Generate", r"[\u3131-\ud7a3\u4e00-\u9fff]", marks=pytest.mark.sweep
        ),
        pytest.param("en-US", "?__lang=ko", "만들기", ENGLISH, marks=pytest.mark.sweep),
    ],
)
def test_the_page_speaks_the_visitors_language(
    open_page: OpenPage, locale: str, path: str, button: str, untranslated: str
) -> None:
    """Labels, what Python says at run time, and errors are all in one language."""
    page = open_page(path, locale=locale)
    expect(page.locator("#sg-generate")).to_have_text(button)
    generate(page)
    refine(page, 0)
    page.locator("#sg-settings > summary").click()
    seeds(page).fill("abc")
    page.click("#sg-generate")
    expect(page.locator("#sg-seeds [role=alert]")).to_be_visible()
    assert not re.search(untranslated, page.locator("#sg-page").inner_text())


HOSTILE = " ".join(
    (
        "<img src=x onerror=\"document.title='owned'\">",
        "${document.title='owned'}",
        "{{value}} {{#each value}}x{{/each}}",
        "</script><script>document.title='owned'</script>",
        "`+alert(1)+`",
        "\u202eright to left",
    )
)


def test_a_prompt_is_shown_and_never_run(page: Page) -> None:
    """Hostile words appear letter by letter, in the card, the stage and the rail."""
    prompt(page).fill(HOSTILE)
    generate(page)
    refine(page, 1)
    expect(page.locator("#sg-picked .sg-words")).to_have_text(HOSTILE)
    assert page.title() == "SeedGrid"
    assert page.locator("#sg-stage [data-cell] img[src='x']").count() == 0


def test_a_phone_scrolls_one_way_only(open_page: OpenPage) -> None:
    """No sideways scroll at any moment; Refine stays at the thumb; fields do not zoom the page."""
    page = open_page(**PHONE)
    sideways = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(sideways) <= 0
    generate(page)
    refine(page, 2)
    cell(page, 0).tap()
    assert page.evaluate(sideways) <= 0
    box = page.locator("#sg-refine").bounding_box()
    assert box["y"] + box["height"] <= 844
    sizes = page.eval_on_selector_all(
        "#sg-bar :is(input, textarea), #sg-variations input",
        "all => all.map((i) => parseFloat(getComputedStyle(i).fontSize))",
    )
    assert min(sizes) >= 16


def test_the_page_is_open_while_the_model_loads(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """It says so, and Generate may be pressed already."""
    assert browser.is_connected()
    with serve(tmp_path / "library", load_held=True) as address:
        page = open_page(at=address)
        expect(status(page)).to_contain_text("Loading the model")
        page.click("#sg-generate")
        Gate(tmp_path / "library").open()
        wait_until_done(page)
        page.close()  # before its server


@pytest.mark.sweep
def test_a_browser_that_keeps_no_cookie_sees_its_pictures_all_the_same(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """A Space stands in another site's frame, where some browsers keep none."""
    with serve(tmp_path / "public", public={}) as address:
        page = open_page(at=address)

        def without_cookie(route: Route) -> None:
            answer = route.fetch()
            page.context.clear_cookies()  # which the fetch itself kept
            kept = {name: told for name, told in answer.headers.items() if name != "set-cookie"}
            route.fulfill(response=answer, headers=kept)

        page.context.route(address, without_cookie)
        page.reload()
        generate(page)
        assert page.context.cookies() == []
        cell(page, 0).click()
        link = page.locator("#sg-export a").first.get_attribute("href")
        assert page.request.get(f"{address}{link}").status == 200
        assert page.request.get(f"{address}{link}".partition("?")[0]).status == 404
        page.close()  # before its server


def test_a_page_asks_little_and_for_the_library_later(page: Page) -> None:
    """Each file once; what is behind a door comes with the first click there."""
    names = """() => performance.getEntriesByType("resource").map((each) => each.name)"""
    asked = page.evaluate(names)
    assert len(asked) == len(set(asked)) < 20  # with the document itself, 20 at most
    assert not [name for name in asked if "library.js" in name or "models" in name]
    page.click("#sg-library-open")
    expect(page.locator("#sg-library input[type=search]")).to_be_visible()
    assert [name for name in page.evaluate(names) if "library.js" in name]


def test_the_page_keeps_its_own_policy(browser: Browser, address: str) -> None:
    """Nothing that it does is forbidden by it: painting, picking, large view, library, settings."""
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(address)
    page.click("#sg-generate")
    expect(page.locator("#sg-stage [data-state='done'] img")).to_have_count(4)
    cell(page, 0).click()
    page.click("#sg-zoom")
    expect(page.locator("dialog.sg-zoom img")).to_be_visible()
    page.keyboard.press("Escape")
    page.click("#sg-settings > summary")
    page.click("#sg-models")
    expect(page.locator("#sg-models-panel")).to_be_visible()
    page.keyboard.press("Escape")
    page.click("#sg-library-open")
    expect(page.locator("#sg-library .sg-item").first).to_be_visible()
    assert said == []
    context.close()
