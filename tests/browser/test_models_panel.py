"""The models panel as a stranger uses it: look, fetch, stop, go on, use, delete, drop a file.

The hub is a small one of our own on loopback; the client, the server and the files are real.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import axe_playwright_python
import numpy as np
import pytest
from hub import Hub
from playwright.sync_api import Browser, Locator, Page, Route, expect
from safetensors.numpy import load_file, save
from serving import serve
from steps import SLOW_MS, SOON_MS, Held, OpenPage, cell, generate, prompt

from seedgrid.models.shelf import bundled_folder

FOXES: Final = "someone/foxes"
AXE: Final = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
RUN_AXE: Final = """async () => {
    const { violations } = await axe.run(document.querySelector("dialog"), {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`));
}"""

DROP: Final = """([name, bytes]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([new Uint8Array(bytes)], name));
    const how = { dataTransfer, bubbles: true, cancelable: true };
    document.querySelector("#sg-stage").dispatchEvent(new DragEvent("drop", how));
}"""


CLOSED_AND_DROPPED: Final = f"""(file) => {{
    document.querySelector("dialog:has(#sg-models-panel)").close();
    ({DROP})(file);
}}"""
"""At once: a panel that was closed is still in the page until its close event."""


@pytest.fixture(scope="module")
def address(
    browser: Browser,  # noqa: ARG001 (no browser, no page)
    published_hub: Hub,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The page of somebody whose hub is ours, and whose cache is empty."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", published_hub.address)
        patch.setenv("HF_HOME", str(home))
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        patch.setenv("SEEDGRID_CACHE", str(home / "cache"))
        with serve(home / "library", real=True) as address:
            expect.set_options(timeout=SLOW_MS)
            yield address
            expect.set_options(timeout=SOON_MS)


def show(page: Page) -> Locator:
    """Open the panel by keyboard, and wait until it says what is here."""
    if not page.locator("#sg-models").is_visible():
        page.locator("#sg-settings > summary").click()
    page.locator("#sg-models").focus()
    page.keyboard.press("Enter")
    panel = page.locator("#sg-models-panel")
    expect(panel.get_by_text("bundled", exact=True)).to_be_visible()
    return panel


def lora_of_the_bundled_model(said: dict[str, str]) -> bytes:
    """Return a LoRA with one small layer that fits the model in the box."""
    layer = "mid_block.attentions.0.transformer_blocks.0.attn1.to_q"
    weights = load_file(bundled_folder() / "unet" / "diffusion_pytorch_model.safetensors")
    rows, columns = weights[f"{layer}.weight"].shape
    shapes = {"lora_A": (2, columns), "lora_B": (rows, 2)}
    layers = {
        f"unet.{layer}.{name}.weight": np.full(shape, 0.1, np.float32)
        for name, shape in shapes.items()
    }
    return save(layers, said)


def found_by_axe(page: Page) -> list[str]:
    """Look when nothing is drawn anew: rows that go while axe measures them have no colours."""
    expect(page.locator("#sg-models-panel[aria-busy='true']")).to_have_count(0)
    page.evaluate(AXE)
    found = []
    for theme in ("light", "dark"):
        page.evaluate("theme => document.body.classList.toggle('dark', theme === 'dark')", theme)
        found += [f"{theme}: {each}" for each in page.evaluate(RUN_AXE)]
    page.evaluate("document.body.classList.remove('dark')")
    return found


def test_a_model_is_fetched_beside_painting_and_used_and_deleted(
    open_page: OpenPage, hub: Hub
) -> None:
    """Stop, go on, use and delete; the page paints while the download is held up."""
    page = open_page()
    page.set_default_timeout(SLOW_MS)
    page.on("dialog", lambda dialog: dialog.accept())
    panel = show(page)
    name = panel.get_by_text("PixArt-alpha/PixArt-XL-2-512x512", exact=True)
    expect(name).to_have_css("font-variant-ligatures", "no-contextual")  # x, not a times sign
    hub.may_go.clear()
    panel.get_by_label("Add a model or a LoRA").fill(FOXES)
    page.keyboard.press("Enter")
    expect(panel.get_by_role("progressbar", name=FOXES)).to_be_visible()
    expect(panel.get_by_text(re.compile(r"\d+ (MB|KB) of 1"))).to_be_visible()
    assert found_by_axe(page) == []
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator("#sg-models")).to_be_focused()
    assert len(generate(page)) == 4
    panel = show(page)
    with page.expect_response(re.compile("/models/stop")):
        panel.get_by_role("button", name=f"Stop: {FOXES}").press("Enter")
    hub.may_go.set()
    expect(panel.get_by_text("Stopped at")).to_be_visible()
    panel.get_by_role("button", name=f"Go on: {FOXES}").press("Enter")
    use = panel.get_by_role("button", name=f"Use: {FOXES}")
    use.press("Enter")
    expect(panel).to_have_count(0)
    expect(page.locator("#sg-model select")).to_have_value(FOXES)
    panel = show(page)
    expect(panel.get_by_text("In use")).to_be_visible()
    assert found_by_axe(page) == []
    panel.get_by_role("button", name=f"Delete: {FOXES}").press("Enter")
    expect(panel.get_by_role("status")).to_contain_text("free again")
    expect(panel.get_by_role("button", name=f"Delete: {FOXES}")).to_have_count(0)


@pytest.mark.parametrize(
    ("language", "gated", "again"),
    [
        pytest.param("en", "hf auth login", "Try again", marks=pytest.mark.sweep),
        pytest.param("zh", "同意", "重试", marks=pytest.mark.sweep),
        ("ko", "약관", "다시 시도"),
    ],
)
def test_what_cannot_be_had_is_said_in_a_sentence(
    open_page: OpenPage, hub: Hub, language: str, gated: str, again: str
) -> None:
    """A name that is nobody's, a model with terms, a folder that is none; in each language.

    On a low window too: what is said stands far above the field, and comes into sight.
    """
    hub.repositories[FOXES].gated = True
    page = open_page(f"?__lang={language}", viewport={"width": 390, "height": 420})
    panel = show(page)
    panel.locator("#sg-models-name").fill(f"{FOXES}@main")
    page.keyboard.press("Enter")
    expect(panel.locator(".sg-models-moving")).to_contain_text(gated)
    expect(panel.locator(".sg-models-moving")).to_be_in_viewport()
    expect(panel.get_by_role("button", name=f"{again}: {FOXES}@main")).to_be_visible()
    panel.locator("#sg-models-name").fill("/nowhere/at/all")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("status")).to_contain_text("/nowhere/at/all")
    expect(panel.get_by_role("status")).to_be_in_viewport()
    assert found_by_axe(page) == []


def test_an_answer_that_comes_late_clears_nothing_newer(open_page: OpenPage, hub: Hub) -> None:
    """The name that was typed meanwhile stays in the field, and what was said about it is shown."""
    assert hub
    page = open_page()
    panel = show(page)
    held = Held(page, "models/add")
    field = panel.locator("#sg-models-name")
    field.fill("one/name")
    page.keyboard.press("Enter")
    held.wait()
    field.fill("/nowhere/at/all")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("status")).to_contain_text("/nowhere/at/all")
    with page.expect_response("**/seedgrid/models?*"):
        held.let_go()
    expect(page.locator("#sg-models-panel")).to_have_attribute("aria-busy", "false")
    page.evaluate("new Promise((resolve) => setTimeout(resolve))")
    expect(field).to_have_value("/nowhere/at/all")
    expect(panel.get_by_role("status")).to_contain_text("/nowhere/at/all")


def test_a_dropped_file_is_kept_where_models_are(open_page: OpenPage, hub: Hub) -> None:
    """One that is no model is refused, one that lacks its configurations says what to fetch."""
    page = open_page()
    page.set_default_timeout(SLOW_MS)
    panel = show(page)
    picker = panel.locator("#sg-models-file")
    picker.set_input_files({"name": "cat.safetensors", "mimeType": "", "buffer": b"x" * 3_000_000})
    expect(panel.get_by_role("status")).to_contain_text("cat.safetensors")
    expect(panel.get_by_role("button", name="Delete: cat.safetensors")).to_have_count(0)
    name = "cond_stage_model.transformer.text_model.embeddings.position_ids"
    header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    whole = struct.pack("<Q", len(header)) + header + bytes(4)
    picker.set_input_files({"name": "fox.safetensors", "mimeType": "", "buffer": whole})
    expect(panel.get_by_role("button", name="Delete: fox.safetensors")).to_be_visible()
    family = "stable-diffusion-v1-5/stable-diffusion-v1-5"
    expect(panel.get_by_text(f"a few megabytes of {family}")).to_be_visible()
    hub.repositories[family] = hub.repositories[FOXES]
    panel.get_by_role("button", name="Fetch its configurations: fox.safetensors").press("Enter")
    expect(panel.get_by_role("button", name="Use: fox.safetensors")).to_be_visible()
    del hub.repositories[family]


@pytest.mark.sweep
def test_a_lora_is_dropped_and_stands_in_the_prompt_with_scale_and_words(
    open_page: OpenPage,
) -> None:
    """As `<lora:name:scale>`, beside the trigger words that its file tells; it paints so."""
    page = open_page()
    page.set_default_timeout(SLOW_MS)
    page.on("dialog", lambda dialog: dialog.accept())
    panel = show(page)
    content = lora_of_the_bundled_model({"modelspec.trigger_phrase": "inkfox, ink"})
    page.evaluate(CLOSED_AND_DROPPED, ["ink fox.safetensors", list(content)])
    expect(panel.get_by_role("status")).to_contain_text("ink fox")
    use = panel.get_by_role("button", name="Use: ink fox")
    use.press("Enter")
    leave = panel.get_by_role("button", name="Leave out: ink fox")
    expect(leave).to_be_focused()
    expect(prompt(page)).to_have_value(re.compile(r" <lora:ink fox:1>$"))
    panel.get_by_label("Scale of ink fox").fill("0.6")
    page.keyboard.press("Tab")
    panel.get_by_role("button", name="Put “inkfox” into the prompt").press("Enter")
    expect(prompt(page)).to_have_value(re.compile(r", inkfox <lora:ink fox:0\.6>$"))
    expect(panel.get_by_text("Trigger words")).to_be_visible()
    assert found_by_axe(page) == []
    page.keyboard.press("Escape")
    prompt(page).fill("a cat <lora:ink fox:0.6>")
    prompt(page).evaluate("field => field.setSelectionRange(5, 5)")
    page.keyboard.type(", inkf")
    expect(page.locator(".sg-ghost")).to_contain_text("ox")  # a trigger word, before its LoRA
    page.keyboard.press("Tab")
    assert len(generate(page)) == 4
    expect(prompt(page)).to_have_value(re.compile(r", inkfox <lora:ink fox:0\.6>$"))
    cell(page, 0).click()
    expect(page.locator("#sg-picked")).to_contain_text("LoRA ink fox 0.6")
    panel = show(page)
    panel.get_by_role("button", name="Leave out: ink fox").press("Enter")
    expect(prompt(page)).to_have_value(re.compile(r", inkfox$"))
    panel.get_by_role("button", name="Delete: ink fox").press("Enter")
    expect(panel.get_by_role("status")).to_contain_text(
        re.compile(r"[1-9][\d.]* KB are free again")
    )
    expect(use).to_have_count(0)


def test_the_panel_opened_twice_is_one_and_says_why_it_is_refused(open_page: OpenPage) -> None:
    """A double click, and a server that has too much to do."""
    page = open_page()
    page.locator("#sg-settings > summary").click()
    page.locator("#sg-models").dblclick()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("heading", name="On this machine")).to_have_count(1)
    page.keyboard.press("Escape")
    answer = {"said": "too many at once", "wrong": True}
    page.route("**/seedgrid/models?*", lambda route: route.fulfill(json=answer))
    page.locator("#sg-models").click()
    expect(page.locator("#sg-models-panel")).to_contain_text("too many at once")


def test_a_download_counts_on_after_a_gap_in_the_net(open_page: OpenPage) -> None:
    """What had no answer in the gap is asked again."""
    page, answers = open_page(loses_server=True), iter((1, None))
    row = {"id": FOXES, "state": "fetching", "total": 9, "left_s": None, "error": None}

    def answer(route: Route) -> None:
        num_bytes = next(answers, 5)
        if num_bytes is None:
            return route.abort()
        told = route.fetch().json() | {"downloads": [row | {"num_bytes": num_bytes}]}
        return route.fulfill(json=told)

    page.route("**/seedgrid/models?*", answer)
    show(page)
    expect(page.locator(f"progress[aria-label='{FOXES}']")).to_have_attribute("value", "5")
