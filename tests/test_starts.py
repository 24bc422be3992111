"""Starting from a picture: parity with plain diffusers, verify, and what becomes of the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from painting import PLACEMENT, check_bundle_reproduced, check_reproduced, claims_of, one_thread
from PIL import Image
from refusing import refused
from sweeping import rest_swept

from seedgrid.core.errors import InputError
from seedgrid.core.events import Step
from seedgrid.core.picture import pixels_sha256
from seedgrid.core.recipe import Recipe
from seedgrid.export.bundle import write_bundle
from seedgrid.export.script import script
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.library.take_in import take_in
from seedgrid.storage.starts import read_picture
from seedgrid.studio import Studio
from seedgrid.testing.fake import FAKE_CARD, FakeBackend
from seedgrid.verify.verifying import verify

PIPELINES = {
    "sd": "StableDiffusionImg2ImgPipeline",
    "sdxl": "StableDiffusionXLImg2ImgPipeline",
    "sd3": "StableDiffusion3Img2ImgPipeline",
    "flux": "FluxImg2ImgPipeline",
    "lcm": "LatentConsistencyModelImg2ImgPipeline",
}


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture without a recipe, of another size and shape than what is painted."""
    rows, columns = np.mgrid[0:60, 0:90]
    pixels = np.stack([rows * 4, columns * 2, (rows + columns) % 256], axis=-1).astype(np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    return path


def plain_start(folder: Path, pipeline: str, recipes: Sequence[Recipe], photo: Path) -> list[Any]:
    """Make the pictures as diffusers' documentation does it, cut to the size first."""
    first = recipes[0]
    pipe = getattr(diffusers, pipeline).from_pretrained(folder, dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    image = Image.open(photo)
    left = (image.width - image.height) // 2
    square = image.resize((64, 64), Image.LANCZOS, (left, 0, left + image.height, image.height))
    sized = {"width": 64, "height": 64} if pipeline.startswith(("StableDiffusion3", "Flux")) else {}
    with one_thread():
        return pipe(
            prompt=[recipe.prompt for recipe in recipes],
            image=[square] * len(recipes),
            strength=first.strength,
            num_inference_steps=first.num_inference_steps,
            guidance_scale=first.guidance_scale,
            generator=[torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes],
            **sized,
        ).images


@pytest.mark.parametrize("name", rest_swept(PIPELINES, ["sd", "flux"]))
def test_a_grid_from_a_picture_equals_the_plain_call(
    tmp_path: Path, folder: Path, photo: Path, name: str
) -> None:
    """Four seeds from one start, refined and verified: bit for bit diffusers' own pictures."""
    with Studio(str(folder), tmp_path / "library", placement=PLACEMENT) as studio:
        grid = studio.grid(
            "a fox", start=photo, strength=0.5, width=64, height=64, num_inference_steps=4
        )
        plain = plain_start(folder, PIPELINES[name], [each.recipe for each in grid], photo)
        for ours, theirs in zip(grid, plain, strict=True):
            np.testing.assert_array_equal(np.asarray(ours.image), np.asarray(theirs))
        finals = studio.refine(grid[2], [", artsy", "strength 0.8"])
        assert [final.recipe.start for final in finals] == [grid[2].recipe.start] * 2
        plain = plain_start(folder, PIPELINES[name], [finals[1].recipe] * 4, photo)
        np.testing.assert_array_equal(np.asarray(finals[1].image), np.asarray(plain[0]))
        verdicts = verify(claims_of(grid[0], *finals), studio.backend)
        assert {found.verdict for found in verdicts} == {"identical"}


@pytest.mark.sweep
def test_an_exported_bundle_holds_the_start(tmp_path: Path, sd: Path, photo: Path) -> None:
    """Its script makes the pictures again, and whoever imports it can verify them."""
    size = {"width": 64, "height": 64, "num_inference_steps": 4}
    with Studio(str(sd), tmp_path / "library", placement=PLACEMENT) as studio:
        entries = list(studio.grid("a fox", "0-1", start=photo, **size))
        write_bundle(entries, tmp_path / "art.zip", model=sd)
        (tmp_path / "alone.py").write_text(script(entries))
    check_bundle_reproduced(tmp_path / "art.zip")
    check_reproduced(tmp_path / "alone.py", "--model", sd)
    (tmp_path / "bare.py").write_text(script(entries, has_starts=False))
    with pytest.raises(AssertionError, match="what these pictures began from is missing"):
        check_reproduced(tmp_path / "bare.py", "--model", sd)
    elsewhere = Library(tmp_path / "elsewhere")
    taken = list(take_in(elsewhere, [tmp_path / "art.zip"]))
    assert [each.start for each in taken if each.start] == [entries[0].recipe.start]
    assert (elsewhere.starts / f"{entries[0].recipe.start}.png").is_file()


def test_a_picture_of_sixteen_bits_of_grey_keeps_its_greys(photo: Path) -> None:
    """Pillow clips all above 255 to white."""
    Image.fromarray(np.array([[0, 0x80FF, 0xFFFF]], np.uint16)).save(photo)
    assert read_picture(photo.read_bytes())[0, :, 0].tolist() == [0, 128, 255]


def test_the_start_is_kept_in_the_library(studio: Studio, photo: Path) -> None:
    """By the digest of its pixels; the file that was named may go."""
    grid = studio.grid("a fox", "0", start=photo, width=64, height=64)
    photo.unlink()
    recipe = grid[0].recipe
    kept = studio.library.folder / "starts" / f"{recipe.start}.png"
    assert pixels_sha256(np.asarray(Image.open(kept))) == recipe.start
    assert studio.grid("a cat", "0", start=recipe.start, width=64, height=64)[0].recipe.start


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"strength": 0.5}, "strength_start"),
        ({"strength": 0.0, "start": True}, "strength_range"),
        ({"strength": 1.5, "start": True}, "strength_range"),
        ({"strength": 0.1, "start": True, "num_inference_steps": 4}, "strength_small"),
        ({"start": "abcdef"}, "picture_unknown"),
        ({"start": "/nowhere.png"}, "picture_missing"),
    ],
)
def test_what_cannot_be_begun_is_refused(
    studio: Studio, photo: Path, settings: dict[str, Any], code: str
) -> None:
    """Before anything is painted, with what to do."""
    wanted = settings | ({"start": str(photo)} if settings.get("start") is True else {})
    with refused(InputError, code):
        studio.grid("a fox", "0", width=64, height=64, **wanted)


def test_a_final_is_the_picture_enlarged_and_painted_over(studio: Studio) -> None:
    """Four strengths of one pick, alone in their batches, on its seed and words."""
    picked = studio.grid("a fox", "3", width=64, height=64, num_inference_steps=4)[0]
    found = studio.final(picked, 2)
    assert [each.recipe.strength for each in found] == [0.2, 0.3, 0.4, 0.5]
    assert found[0].lineage.change == "128x128, strength 0.2"
    assert {each.lineage.parent_id for each in found} == {picked.id}
    for each in found:
        assert each.image.size == (128, 128)
        assert (each.recipe.start, each.recipe.lock_width) == (picked.pixels_sha256, 1)
        assert int(each.recipe.num_inference_steps * each.recipe.strength) == 4
        assert (each.seed, each.prompt) == (3, "a fox")
    (again,) = studio.final(found[1], 2, strengths=[0.5])
    assert again.image.size == (256, 256)


def test_a_model_that_runs_all_steps_from_a_start_is_asked_for_no_more(
    studio: Studio, backend: FakeBackend
) -> None:
    """LCM: 20 steps at strength 0.2 were asked of it, which diffusers refused."""
    backend._card = replace(FAKE_CARD, strength_shortens=False)
    picked = studio.grid("a fox", "3", width=64, height=64, num_inference_steps=4)[0]
    assert {each.recipe.num_inference_steps for each in studio.final(picked)} == {4}
    begun = studio.grid("a fox", "3", start=picked, strength=0.4, width=64, height=64)[0]
    assert begun.recipe.num_inference_steps == FAKE_CARD.num_inference_steps


def test_a_final_that_needs_much_memory_is_decoded_in_tiles(
    studio: Studio, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the placement, from which the passport is made, says so."""
    monkeypatch.setattr("seedgrid.core.finals.free_bytes", lambda: 1000)
    monkeypatch.setattr(backend, "_card", replace(FAKE_CARD, decoding_bytes=2048))
    picked = studio.grid("a fox", "3", width=64, height=64, num_inference_steps=4)[0]
    backend.calls.clear()
    run = studio.start_final(picked, 2, strengths=[0.5])
    finals = run.result()
    assert [notice.code for notice in run.notices] == ["final_tiles"]
    studio.start_again([studio.library.get(each.id) for each in finals]).result()
    assert all(call.placement.vae_tiling for call in backend.calls)  # So is what is compared.


@pytest.mark.parametrize("name", rest_swept(["sd", "lcm"], ["sd"]))
def test_a_final_equals_the_plain_call(tmp_path: Path, folder: Path, name: str) -> None:
    """Enlarged by Lanczos, then diffusers' image-to-image, alone: bit for bit."""
    with Studio(str(folder), tmp_path / "library", placement=PLACEMENT) as studio:
        picked = studio.grid("a fox", "3", width=32, height=32, num_inference_steps=2)[0]
        run = studio.start_final(picked, 2, strengths=[0.2])
        totals = {event.total for event in run.events() if isinstance(event, Step)}
        assert len(totals) == 1, "LCM's total once grew with its steps"
        (final,) = run.result()
        plain = plain_start(folder, PIPELINES[name], [final.recipe], picked.path)
    np.testing.assert_array_equal(png.read_pixels(final.path), np.asarray(plain[0]))
