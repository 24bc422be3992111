"""The families of 2025 and 2026: lock, parity, the flow of a grid, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from diffusers.pipelines.hunyuan_image.pipeline_hunyuanimage import extract_glyph_text
from modern_pipelines import MODERN
from painting import PLACEMENT, check_script_reproduced, one_thread, paint, recipes_for
from PIL import Image
from refusing import refused
from sweeping import rest_swept
from test_loras import make_lora
from watches import SilentWatch

from seedgrid.core.errors import ModelError, RunCancelled, RunError
from seedgrid.core.recipe import ModelRef, Recipe
from seedgrid.core.variations import steer
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.models import catalogue, registry
from seedgrid.models.cards import make_card
from seedgrid.models.families import family_of
from seedgrid.models.files import read_folder
from seedgrid.studio import Studio

EACH = rest_swept(MODERN, ("qwen-image",))
# HiDream's experts compute with the tokens of a whole batch at once: its width is 1.
LOCKED = rest_swept([name for name in MODERN if name != "hidream"], ("z-image", "qwen-image"))
# The others turn positions with complex numbers, or sort, for which there is no portable rule.
PORTABLE = {
    *("flux2", "flux2-klein", "chroma", "aura-flow", "sana-sprint", "hunyuan-image"),
    *("ernie-image",),
}
WITHOUT_LORAS = ("hunyuan-image", "ernie-image")
WITH_LORAS = [name for name in MODERN if name not in WITHOUT_LORAS]
GUIDANCE = {"HunyuanImagePipeline": "distilled_guidance_scale"}
LONG = " ".join(["an enormous landscape with foxes"] * 12)  # 400 bytes, which are tokens


@pytest.mark.parametrize("dtype", rest_swept(("float32", "bfloat16"), ("bfloat16",)))
@pytest.mark.parametrize("name", LOCKED)
def test_neighbours_words_of_any_length_reach_no_bit(
    painter: DiffusersBackend, folder: Path, dtype: str
) -> None:
    """Beside longer words, shorter ones and none, in any slot, a picture stays itself.

    Plain diffusers pads to the longest of a batch: in bfloat16 3,807 of 12,288 bytes differed.
    """
    recipes = recipes_for(painter, folder, dtype=dtype, num_inference_steps=2)
    cell, *others = recipes
    alone = paint(painter, [cell] * 4)[2]
    for words in ((LONG, "x", LONG), ("", "fox", "a red fox!"), ("", LONG, "")):
        batch = [other.replace(prompt=prompt) for other, prompt in zip(others, words, strict=True)]
        np.testing.assert_array_equal(paint(painter, [*batch, cell])[3], alone, err_msg=str(words))
        np.testing.assert_array_equal(paint(painter, [cell, *batch])[0], alone, err_msg=str(words))
    assert not np.array_equal(paint(painter, [cell.replace(prompt="a blue owl")])[0], alone)


def call_arguments(pipeline: Any, recipes: Sequence[Recipe]) -> dict[str, Any]:
    """What plain diffusers is given for each of these families, written out by hand."""
    first = recipes[0]
    given: dict[str, Any] = {
        "width": first.width,
        "height": first.height,
        "num_inference_steps": first.num_inference_steps,
    }
    prompts = [recipe.prompt for recipe in recipes]
    match type(pipeline).__name__:
        case "ZImagePipeline":
            rows = [pipeline.encode_prompt(prompt=[text]) for text in prompts]
            given["guidance_scale"] = first.guidance_scale
            given["prompt_embeds"] = [words[0] for words, _ in rows]
            given["negative_prompt_embeds"] = [nothing[0] for _, nothing in rows]
        case "Lumina2Pipeline":
            given["guidance_scale"] = first.guidance_scale
            made = [pipeline.encode_prompt([text]) for text in prompts]
            words, mask, nothing, its_mask = (torch.cat(rows) for rows in zip(*made, strict=True))
            given |= {"prompt_embeds": words, "prompt_attention_mask": mask}
            given["negative_prompt_embeds"] = nothing
            given["negative_prompt_attention_mask"] = its_mask
        case "CogView4Pipeline" | "ErnieImagePipeline":
            given["guidance_scale"] = first.guidance_scale
            device = torch.device("cpu")
            for prefix, texts in (("", prompts), ("negative_", [""] * len(prompts))):
                rows = [pipeline.encode_prompt(prompt=[text], device=device)[0] for text in texts]
                is_list = rows[0].ndim == 2
                given[f"{prefix}prompt_embeds"] = rows if is_list else torch.cat(rows)
        case "SanaSprintPipeline":
            given |= {"prompt": prompts, "guidance_scale": first.guidance_scale}
            given |= {"use_resolution_binning": False, "intermediate_timesteps": None}
        case "QwenImagePipeline":
            given["true_cfg_scale"] = first.guidance_scale
            for prefix, texts in (("", prompts), ("negative_", [" "] * len(prompts))):
                rows = [pipeline.encode_prompt([text])[0][0] for text in texts]
                padded = torch.zeros(len(rows), given.get("max_sequence_length", 0) or 128 * 4, 64)
                padded = padded[:, : (len(rows[0]) // 128 + 1) * 128].to(rows[0].dtype)
                mask = torch.zeros(padded.shape[:2], dtype=torch.long)
                for place, row in enumerate(rows):
                    padded[place, : len(row)] = row
                    mask[place, : len(row)] = 1
                given[f"{prefix}prompt_embeds"] = padded
                given[f"{prefix}prompt_embeds_mask"] = mask
        case _:
            given["prompt"] = prompts
            given[GUIDANCE.get(type(pipeline).__name__, "guidance_scale")] = first.guidance_scale
    return given


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", EACH)
def test_a_picture_is_that_of_the_plain_call(
    painter: DiffusersBackend, folder: Path, dtype: str
) -> None:
    """Bit for bit; where words are read alone, of the call with `prompt_embeds`."""
    recipes = recipes_for(painter, folder, ("a fox", "a cow", "a hen", "a dog"), dtype=dtype)
    recipes = recipes[: recipes[0].lock_width]
    ours = paint(painter, recipes)
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folder, dtype=getattr(torch, dtype))
    pipeline.set_progress_bar_config(disable=True)
    generators = [torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes]
    with one_thread(), torch.no_grad():
        arguments = call_arguments(pipeline, recipes)
        images = pipeline(**arguments, generator=generators, output_type="pt").images
    theirs = (images.permute(0, 2, 3, 1).float().numpy() * 255).round().astype(np.uint8)
    np.testing.assert_array_equal(np.stack(ours), theirs)


@pytest.mark.parametrize("name", EACH)
def test_the_exported_script_needs_diffusers_alone(folder: Path, tmp_path: Path, name: str) -> None:
    """In a new process, words of unequal lengths and all, it makes the same pixels."""
    size = {} if name == "hidream" else {"width": 64, "height": 64}
    with Studio(str(folder), library=tmp_path / "library", placement=PLACEMENT) as studio:
        grid = studio.grid("a red fox", "0-1", num_inference_steps=2, **size)
        round_two = studio.refine(grid[1], [f", {LONG}", ", artsy"])
        entries = [*grid, *round_two]
    check_script_reproduced(entries, tmp_path, folder)


@pytest.mark.parametrize("name", EACH)
def test_previews_stop_and_negative_words(painter: DiffusersBackend, folder: Path) -> None:
    """Each step shows four pictures, Stop is heard at a step, negative words change the picture."""
    recipes = recipes_for(painter, folder, num_inference_steps=2)
    watch = SilentWatch(with_previews=True)
    painter.prepare(recipes[0], PLACEMENT)
    width = recipes[0].lock_width
    pictures = painter.paint([recipes[0]] * width, PLACEMENT, watch)
    assert len(watch.steps) == 2
    assert all(len(shown) == width and shown[0].shape[2] == 3 for shown in watch.previews)
    assert len(watch.noises[0]) == width
    with pytest.raises(RunCancelled):
        painter.paint(recipes[:width], PLACEMENT, SilentWatch(stop_after=1))
    if painter.card(str(folder)).has_negative_prompt:
        without = recipes[0].replace(negative_prompt="dull, blurry")
        assert not np.array_equal(paint(painter, [without])[0], pictures[0])


@pytest.mark.parametrize("name", LOCKED)
def test_a_picture_is_held_and_spread_whatever_is_beside_it(
    painter: DiffusersBackend, folder: Path
) -> None:
    """Words and pictures may be lists; what is not remembered of the way is painted again."""
    parents = recipes_for(painter, folder, ["a red fox"] * 4, num_inference_steps=4)
    grid = paint(painter, parents)
    words = (parents[2].replace(prompt=f"a red fox{line}") for line in (", neon", LONG))
    held = tuple(steer(parents[2], each, hold=0.5) for each in words)
    own = parents[1].replace(spread=0.3)
    pictures = paint(painter, (*held, own))
    fresh = DiffusersBackend()
    for recipe, picture in zip((*held, own), pictures, strict=True):
        assert np.array_equal(paint(fresh, (recipe,))[0], picture)
    assert not np.array_equal(pictures[2], grid[1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", EACH)
def test_the_probe_finds_no_leak(painter: DiffusersBackend, folder: Path, dtype: str) -> None:
    """Its poisoned neighbours reach nothing at the width that the family has."""
    (recipe, *_) = recipes_for(painter, folder, dtype=dtype, num_inference_steps=2)
    assert painter.probe(recipe, PLACEMENT, SilentWatch()).holds


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("StableVideoDiffusionPipeline", "model_video"),
        ("LTX2Pipeline", "model_video"),
        ("StableAudioPipeline", "model_audio"),
        ("QwenImageEditPipeline", "model_needs_picture"),
        ("FluxFillPipeline", "model_needs_picture"),
        ("ShapEPipeline", "model_other"),
        ("NobodysPipeline", "model_family"),
        ("../../Pipeline", "model_family"),
    ],
)
def test_what_does_not_paint_from_words_is_refused_with_what_it_is(
    tmp_path: Path, name: str, code: str
) -> None:
    """One sentence: what it is, and what to do; no list of class names."""
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": name}))
    with refused(ModelError, code) as caught:
        _ = registry.find(str(tmp_path)).card
    assert name in str(caught.value)
    assert "StableDiffusionPipeline" not in str(caught.value)


def test_a_folder_that_is_not_what_it_says_is_refused(sd: Path, tmp_path: Path) -> None:
    """A UNet's folder that claims to be Z-Image; loading it would end in words of Python's."""
    index = json.loads((sd / "model_index.json").read_text())
    index |= {"_class_name": "ZImagePipeline", "transformer": index.pop("unet")}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    with refused(ModelError, "model_mixed", match="its transformer is a UNet2DConditionModel"):
        _ = registry.find(str(tmp_path)).card


@pytest.mark.parametrize(
    ("called", "name", "steps", "guidance"),
    [
        ("Z-Image-Turbo", "z-image", 9, 0.0),
        ("Z-Image", "z-image", 50, 5.0),
        ("some-klein", "flux2-klein", 4, 1.0),
        ("FLUX.1-schnell", "flux", 4, 0.0),
        ("Qwen-Image-Lightning", "qwen-image", 8, 1.0),
        ("SDXL-Lightning", "sdxl", 4, 0.0),
    ],
)
def test_models_for_few_steps_begin_with_few(
    folder: Path, tmp_path: Path, called: str, steps: int, guidance: float
) -> None:
    """By their index where it says so, and by their name otherwise."""
    (tmp_path / called).symlink_to(folder, target_is_directory=True)
    card = make_card(ModelRef(id=called, weights_sha256="ab" * 32), read_folder(tmp_path / called))
    assert (card.num_inference_steps, card.guidance_scale) == (steps, guidance)


def test_a_family_that_no_test_names_says_so(
    painter: DiffusersBackend, sd: Path, tmp_path: Path
) -> None:
    """A class that is in no table is read, painted, and listed as not tested."""
    folder = tmp_path / "pag"
    shutil.copytree(sd, folder)
    index = json.loads((folder / "model_index.json").read_text())
    index["_class_name"] = "StableDiffusionPAGPipeline"
    (folder / "model_index.json").write_text(json.dumps(index))
    assert not catalogue.describe(registry.find(str(folder))).is_tested
    pictures = paint(painter, recipes_for(painter, folder, num_inference_steps=2))
    assert len({picture.tobytes() for picture in pictures}) == 4


@pytest.mark.parametrize("name", EACH)
def test_every_scheduler_on_offer_paints_at_every_number_of_steps(
    painter: DiffusersBackend, folder: Path
) -> None:
    """Or the number is refused beforehand, by the card, with the fewest that it takes."""
    card = painter.card(str(folder))
    for scheduler in card.schedulers:
        for steps in (1, 2, 3, 7):
            if steps >= card.fewest_steps.get(scheduler, 1):
                changes = {"scheduler": scheduler, "num_inference_steps": steps}
                (recipe, *_) = recipes_for(painter, folder, **changes)
                assert len(paint(painter, [recipe])) == 1, (scheduler, steps)


@pytest.mark.parametrize("name", rest_swept(("z-image", "qwen-image", "kolors"), ()))
def test_a_start_keeps_lock_and_script(folder: Path, tmp_path: Path) -> None:
    """From a picture, too, words are read alone; the script paints the same bits."""
    rows, columns = np.mgrid[0:64, 0:64]
    photo = tmp_path / "photo.png"
    Image.fromarray(np.stack([rows * 4, columns * 3, rows], -1).astype(np.uint8)).save(photo)
    settings = {"start": photo, "strength": 0.5, "num_inference_steps": 4}
    with Studio(str(folder), library=tmp_path / "library", placement=PLACEMENT) as studio:
        grid = studio.grid("a red fox", "0-1", width=64, height=64, **settings)
        finals = studio.refine(grid[1], [f", {LONG}", ", artsy"])
    check_script_reproduced([*grid, *finals], tmp_path, folder)


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODERN)
def test_a_portable_picture_needs_no_neighbours(
    painter: DiffusersBackend, folder: Path, name: str
) -> None:
    """Whatever its words and its neighbours', it is the same bits; or it is said why not."""
    recipes = recipes_for(painter, folder, portable=True, num_inference_steps=1)
    cell, *others = recipes[: recipes[0].lock_width]
    if name not in PORTABLE:
        with pytest.raises(RunError, match="has no portable rule"):
            paint(painter, [cell])
        return
    batch = [other.replace(prompt=LONG) for other in others[:1]]
    np.testing.assert_array_equal(paint(painter, [*batch, cell])[-1], paint(painter, [cell])[0])


@pytest.mark.sweep
@pytest.mark.parametrize("name", WITH_LORAS)
def test_a_lora_changes_the_picture_and_the_script_knows_it(
    folder: Path, tmp_path: Path, name: str
) -> None:
    """As the plain call with that LoRA paints it, words beside longer ones and all."""
    size = {} if name == "hidream" else {"width": 64, "height": 64}
    (tmp_path / "loras").mkdir()
    file = make_lora(folder, tmp_path / "loras" / "foxes.safetensors")
    with Studio(str(folder), library=tmp_path / "library", placement=PLACEMENT) as studio:
        settings = {"num_inference_steps": 2, **size}
        grid = studio.grid("a red fox", "0-1", loras=[f"{file}=0.8"], **settings)
        bare = studio.grid("a red fox", "0-1", **settings)
        finals = studio.refine(grid[1], [f", {LONG}", ", artsy"])
    assert not np.array_equal(np.asarray(grid[0].image), np.asarray(bare[0].image))
    check_script_reproduced([*grid, *finals], tmp_path, folder)


@pytest.mark.parametrize(
    "prompt", ["a fox", "a sign 'open'", 'a sign "open"', "a sign “open”", "a sign ‘open’", "it's"]
)
def test_text_in_quotes_is_told_apart_as_hunyuan_image_does(prompt: str) -> None:
    """Its other reader guides a whole batch as soon as one prompt has such text."""
    pattern = family_of("HunyuanImagePipeline").separate_call_pattern
    assert bool(re.search(pattern, prompt)) == (extract_glyph_text(prompt) is not None)
