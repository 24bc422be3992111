"""The page with the model that comes in the box: the whole way, once, with real pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect
from serving import serve
from steps import (
    SOON_MS,
    OpenPage,
    cell,
    generate,
    ids,
    prompt,
    refine,
    seeds,
    seeds_shown,
    set_steps,
    variation,
)

from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES
from seedgrid.formats import png
from seedgrid.models.registry import bundled_folder

SLOW_MS = 180_000


@pytest.fixture
def patience() -> Iterator[None]:
    """A real model takes its time, more so on a busy machine."""
    expect.set_options(timeout=SLOW_MS)
    yield
    expect.set_options(timeout=SOON_MS)


@pytest.mark.skipif(
    not (bundled_folder() / "model_index.json").is_file(), reason="no bundled model in assets/model"
)
@pytest.mark.usefixtures("patience")
def test_the_guides_example_with_the_bundled_model(open_page: OpenPage, tmp_path: Path) -> None:
    """Generate, pick the third, refine, walk back, verify: all on real weights."""
    with serve(tmp_path, real=True) as address:
        page = open_page(at=address)
        page.set_default_timeout(SLOW_MS)
        examples = page.locator(".sg-example")
        expect(examples).to_have_count(4)
        expect(variation(page, 2)).to_have_value(", neon")
        cell(page, 1).click()
        expect(cell(page, 1)).to_have_attribute("aria-selected", "true")
        expect(page.locator("#sg-picked .sg-badge").last).to_have_text("Not checked")
        expect(prompt(page)).to_have_value("sunflower in the style of Van Gogh")
        page.click("#sg-fours .sg-chip >> nth=0")  # the guide's four
        expect(variation(page, 2)).to_have_value(GUIDE_SUFFIXES[1])
        prompt(page).fill(GUIDE_PROMPT)
        seeds(page).fill("0-3")
        set_steps(page, 2)
        first = generate(page)
        assert seeds_shown(page) == ["0", "1", "2", "3"]
        refine(page, 2)
        source = cell(page, 1).locator("img").get_attribute("src")
        record, pixels = png.read_checked(httpx.get(f"{address}{source}").content)
        assert record.recipe.prompt == GUIDE_PROMPT + GUIDE_SUFFIXES[1]
        assert (record.recipe.seed, record.lineage.parent_id) == (2, first[2])
        assert pixels.std() > 0
        page.click("#sg-back")
        expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
        assert ids(page) == first
        page.click("#sg-verify")
        expect(page.locator("#sg-verdict [data-verdict='identical']")).to_be_visible()
        # The probe came before it, so the next card knows of the lock.
        cell(page, 0).click()
        expect(page.locator("#sg-picked .sg-badge")).to_have_attribute("data-lock", "tested")
