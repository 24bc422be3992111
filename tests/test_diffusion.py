"""DiffusersBackend: batches, steps, previews, stopping, errors; real small pipelines throughout."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pipelines
import pytest
import torch
from diffusers import AutoencoderKL, StableDiffusionPipeline, attention_backend
from diffusers.models.attention_dispatch import _AttentionBackendRegistry
from diffusers.pipelines.stable_diffusion_xl import pipeline_stable_diffusion_xl
from diffusers.utils.constants import DIFFUSERS_ATTN_BACKEND
from painting import PLACEMENT, paint, recipes_for
from PIL import Image
from refusing import refused
from safetensors.torch import load_file, save_file
from singlefile import save_single_file
from sweeping import rest_swept
from watches import SilentWatch

from seedgrid.core.errors import DeviceError, InputError, ModelError, RunCancelled, RunError
from seedgrid.core.recipe import Lora, NoiseShare
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion import caches
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.noise import mix_noise
from seedgrid.diffusion.previews import unpacked

NAMES = ("sd", "sdxl", "sd3", "flux", "pixart", "lcm", "ddpm", "ddim")
FAMILIES = rest_swept(NAMES, ("sd", "flux", "ddpm"))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_tells_its_steps_and_shows_previews(
    painter: DiffusersBackend, folder: Path
) -> None:
    """Families without a callback tell their steps too; a preview is a small RGB picture."""
    recipes = recipes_for(painter, folder, prompts=("a fox", "a house"))
    watch = SilentWatch(with_previews=True)
    painter.paint(recipes, PLACEMENT, watch)
    assert watch.steps == [(1, 3), (2, 3), (3, 3)]
    for previews in watch.previews:
        assert len(previews) == 2
        assert all(preview.dtype == np.uint8 and preview.shape[2] == 3 for preview in previews)


@pytest.mark.parametrize("name", rest_swept(NAMES[:6], ("sd", "flux")))
@pytest.mark.parametrize("mix", [(), (NoiseShare(seed=9, weight=0.5),)])
def test_the_noise_that_is_shown_is_the_noise_that_is_used(
    painter: DiffusersBackend, folder: Path, mix: tuple[NoiseShare, ...]
) -> None:
    """The pipeline's own first latents, unpacked and mixed, are what the preview is made of."""
    (recipe,) = recipes_for(painter, folder, prompts=("a fox",))
    recipe = recipe.replace(noise_mix=mix)
    painter.prepare(recipe, PLACEMENT)
    loaded = painter._pipelines.get(recipe, PLACEMENT)
    drawn_by: list[torch.Tensor] = []  # The picture's own noise, then that of its mix.
    original = type(loaded.pipeline).prepare_latents

    @functools.wraps(original)  # How noise is mixed goes by the names of its arguments.
    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        drawn = original(*args, **kwargs)
        latents = drawn[0] if isinstance(drawn, tuple) else drawn
        rows = unpacked(loaded.preview.channels, latents, recipe.height, recipe.width)
        drawn_by.append(rows[0])
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(loaded.pipeline), "prepare_latents", prepare_latents)
        painter.paint([recipe], PLACEMENT, SilentWatch())
    used = mix_noise(*drawn_by, mix[0].weight) if mix else drawn_by[0]
    sigma = float(getattr(loaded.pipeline.scheduler, "init_noise_sigma", 1.0))
    assert torch.allclose(loaded.preview._noise(recipe), used / sigma, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_previews_change_no_bit(painter: DiffusersBackend, folder: Path) -> None:
    """Looking on is free of consequences."""
    recipes = recipes_for(painter, folder)
    watched = painter.paint(recipes, PLACEMENT, SilentWatch(with_previews=True))
    np.testing.assert_array_equal(watched, paint(painter, recipes))


def test_previews_of_latents_resemble_the_pictures(painter: DiffusersBackend) -> None:
    """Two pixels for each latent one, each like its own picture and less like its neighbour's."""
    card = painter.card("bundled")
    recipes = resolve(Request(prompt="a red fox in the style of watercolor", seeds=(1, 2)), card)
    watch = SilentWatch(with_previews=True)
    pictures = painter.paint(recipes, PLACEMENT, watch)
    small = [
        np.asarray(Image.fromarray(each).resize((32, 32), Image.Resampling.BOX)).ravel()
        for each in pictures
    ]
    previews = [preview.ravel() for preview in watch.previews[-1]]
    alike = np.corrcoef([*previews, *small])[:2, 2:]
    assert {preview.shape for preview in watch.previews[-1]} == {(32, 32, 3)}
    assert alike.diagonal().min() > 0.95
    assert alike[0, 1] < alike[0, 0]
    assert alike[1, 0] < alike[1, 1]


@pytest.mark.parametrize("name", FAMILIES)
def test_stop_takes_effect_within_one_step(painter: DiffusersBackend, folder: Path) -> None:
    """After the wish no further step is made, and the backend paints again afterwards."""
    recipes = recipes_for(painter, folder)
    watch = SilentWatch(stop_after=1)
    with pytest.raises(RunCancelled):
        painter.paint(recipes, PLACEMENT, watch)
    assert len(watch.steps) == 1
    assert len(paint(painter, recipes)) == 4


def test_the_passport_is_that_of_the_computation(painter: DiffusersBackend, sd: Path) -> None:
    """Threads and determinism are those in force while painting, and put back afterwards."""
    recipe = recipes_for(painter, sd)[0]
    before = torch.get_num_threads()
    passport = painter.prepare(recipe, Placement(threads=1))
    assert passport.threads == 1
    assert passport.determinism["deterministic_algorithms"] == "2"
    assert torch.get_num_threads() == before
    assert torch.get_deterministic_debug_mode() == 0


def test_two_models_stay_loaded_and_a_third_makes_room(
    model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back and forth between two loads each of them once; where memory is low, one stays."""
    painter = DiffusersBackend()
    recipes = [recipes_for(painter, model_folder(name))[0] for name in ("ddpm", "ddim", "sd")]
    for recipe in recipes:
        painter.prepare(recipe, PLACEMENT)
    assert [painter.is_ready(recipe, PLACEMENT) for recipe in recipes] == [False, True, True]
    monkeypatch.setattr(caches, "free_bytes", lambda: 0)
    painter.prepare(recipes[0], PLACEMENT)
    assert [painter.is_ready(recipe, PLACEMENT) for recipe in recipes] == [True, False, False]


def test_other_weights_under_the_same_name_are_refused(painter: DiffusersBackend, sd: Path) -> None:
    """A recipe names its weights by their digest; a picture is never made with others."""
    recipe = recipes_for(painter, sd)[0]
    other = recipe.replace(model=recipe.model.model_copy(update={"weights_sha256": "0" * 64}))
    with refused(ModelError, "model_changed"):
        painter.prepare(other, PLACEMENT)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"scheduler": "Flow Euler"}, "scheduler_unknown"),
        ({"scheduler": "x"}, "scheduler_unknown"),
        ({"loras": (Lora(id="x", weights_sha256="0" * 64),)}, "lora_missing"),
    ],
)
def test_a_recipe_from_elsewhere_is_checked(
    painter: DiffusersBackend, sd: Path, changes: dict[str, Any], code: str
) -> None:
    """A PNG may ask a model for what it cannot do."""
    recipe = recipes_for(painter, sd)[0].replace(**changes)
    with refused(InputError, code):
        painter.prepare(recipe, PLACEMENT)


def test_a_scheduler_that_needs_more_steps_says_so(painter: DiffusersBackend, sd: Path) -> None:
    """PNDM has to begin with four steps; fewer made diffusers fail with an array's shapes."""
    recipe = recipes_for(painter, sd, scheduler="PNDM", num_inference_steps=3)[0]
    with pytest.raises(InputError, match="at least 4 steps"):
        painter.prepare(recipe, PLACEMENT)
    enough = recipe.replace(num_inference_steps=4)
    assert len(paint(painter, [enough])) == 1


@pytest.mark.parametrize(
    ("placement", "error"),
    [
        (Placement(device="cuda:99"), DeviceError),
        (Placement(offload="model", device="cpu"), DeviceError),
        (Placement(attention="imagined"), InputError),
    ],
)
def test_a_placement_that_cannot_be_is_an_error(
    painter: DiffusersBackend, sd: Path, placement: Placement, error: type[Exception]
) -> None:
    """Nothing is computed somewhere else instead."""
    recipe = recipes_for(painter, sd)[0]
    with pytest.raises(error):
        painter.prepare(recipe, placement)


def with_weights(folder: Path, tmp_path: Path, part: str, change: Callable[[Any], Any]) -> Path:
    """Copy a model and change all weights of one of its parts."""
    copy = Path(shutil.copytree(folder, tmp_path / f"changed {part}"))
    path = copy / part / "diffusion_pytorch_model.safetensors"
    save_file({name: change(tensor) for name, tensor in load_file(path).items()}, path)
    return copy


@pytest.mark.parametrize("part", ["unet", "vae"])
def test_a_part_that_gives_nan_is_an_error_with_advice(
    painter: DiffusersBackend, sd: Path, tmp_path: Path, part: str
) -> None:
    """The latents may be fine and the picture not: known of float16 VAEs."""
    broken = with_weights(sd, tmp_path, part, lambda t: t * float("nan"))
    with refused(RunError, "picture_nan", match="float32"):
        paint(painter, recipes_for(painter, broken))


@pytest.mark.parametrize("part", ["unet", "vae"])
def test_one_picture_that_is_none_costs_its_neighbours_nothing(
    painter: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Good cells of a batch are given, bit for bit, and the bad one says why."""
    recipes = recipes_for(painter, sd)
    good = paint(painter, recipes)
    pipeline = painter.load(recipes[0], PLACEMENT)
    owner, name = (pipeline.unet, "forward") if part == "unet" else (pipeline.vae, "decode")
    original = getattr(owner, name)

    def spoiling(rows: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(rows, *args, **kwargs)
        output[0][2 :: 4 if len(output[0]) >= 4 else 99] = float("nan")
        return output

    monkeypatch.setenv("SEEDGRID_CACHE", str(sd.parent / f"cache {part}"))
    monkeypatch.setattr(owner, name, spoiling)
    outcomes = DiffusersBackend.paint(painter, recipes, PLACEMENT, SilentWatch())
    if part == "unet":
        for cell in (0, 1, 3):
            np.testing.assert_array_equal(outcomes[cell], good[cell])
        assert isinstance(outcomes[2], RunError)
        assert outcomes[2].code == "picture_nan"
    else:
        assert sum(isinstance(outcome, RunError) for outcome in outcomes) <= 1


def test_attention_is_that_of_the_process(
    painter: DiffusersBackend, model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script around us that had chosen another kernel changed bits, and no passport told."""
    (recipe, *_) = recipes_for(painter, model_folder("flux"), num_inference_steps=1)
    transformer = painter.load(recipe, PLACEMENT).transformer
    original, kernels = transformer.forward, []

    def looking(*args: Any, **kwargs: Any) -> Any:
        kernels.append(_AttentionBackendRegistry.get_active_backend()[0])
        return original(*args, **kwargs)

    monkeypatch.setattr(transformer, "forward", looking)
    with attention_backend("_native_math"):
        paint(painter, [recipe])
    assert {str(kernel.value) for kernel in kernels} == {DIFFUSERS_ATTN_BACKEND}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (StableDiffusionPipeline, "encode_prompt"),
        (StableDiffusionPipeline, "from_pretrained"),
        (AutoencoderKL, "decode"),
    ],
    ids=["words", "loading", "decoding"],
)
def test_memory_that_is_full_once_is_given_back_and_the_very_picture_comes(
    painter: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """Everything is let go of and tried again as it was: the bits are those of an easy run."""
    recipes = recipes_for(painter, sd)
    easy = paint(painter, recipes)
    true, times = getattr(owner, name), []

    def full_once(*arguments: object, **named: object) -> object:
        times.append(name)
        if len(times) == 1:
            torch.empty(1 << 60, dtype=torch.uint8)  # Really asks the allocator for an exabyte.
        return true(*arguments, **named)

    painter.close()
    monkeypatch.setattr(owner, name, full_once)
    np.testing.assert_array_equal(paint(painter, recipes), easy)
    assert len(times) > 1


@pytest.mark.parametrize("name", rest_swept(NAMES[:6], ("sd", "flux")))
def test_a_noise_mix_grows_out_of_the_plain_picture(
    painter: DiffusersBackend, folder: Path
) -> None:
    """A vanishing share changes nothing; more of it leads further away; the mix stays locked."""
    plain = recipes_for(painter, folder)[0]
    mixes = [
        plain.replace(noise_mix=(NoiseShare(seed=77, weight=weight),))
        for weight in (1e-12, 0.1, 0.6)
    ]
    reference = paint(painter, [plain])[0].astype(int)
    alone = [paint(painter, [mix])[0] for mix in mixes]
    distances = [np.abs(picture.astype(int) - reference).mean() for picture in alone]
    assert distances[0] == 0
    assert 0 < distances[1] < distances[2]
    np.testing.assert_array_equal(paint(painter, [plain, *mixes])[1:], alone)


def test_models_without_latents_cannot_mix_noise(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """DDPM's call takes no first noise from outside, and that is said."""
    recipe = recipes_for(painter, model_folder("ddpm"))[0]
    mix = recipe.replace(noise_mix=(NoiseShare(seed=9, weight=0.5),))
    with refused(InputError, "noise_mix_unsupported"):
        paint(painter, [mix])


def test_attention_and_memory_format_are_honoured(painter: DiffusersBackend, sd: Path) -> None:
    """Every choice of placement paints, and differs from the plain one in the last bits only."""
    recipes = recipes_for(painter, sd)
    plain = np.stack(paint(painter, recipes)).astype(int)
    for placement in (
        Placement(threads=1, attention="math"),
        Placement(threads=1, attention="sliced"),
        Placement(threads=1, channels_last=True),
        Placement(threads=1, vae_slicing=True, vae_tiling=True),
    ):
        pictures = np.stack(painter.paint(recipes, placement, SilentWatch())).astype(int)
        assert np.abs(pictures - plain).max() <= 2


def test_tiles_are_told_of_and_stopped_between(
    painter: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding a large final once took minutes after its last step, deaf and dumb."""
    recipe = recipes_for(painter, sd, ("a fox",), lock_width=1, width=96)[0]
    placement = Placement(threads=1, vae_tiling=True)
    vae = painter.load(recipe, placement).vae
    monkeypatch.setattr(vae, "tile_latent_min_size", 8)
    monkeypatch.setattr(vae, "tile_sample_min_size", 64)
    watch = SilentWatch()
    painter.paint([recipe], placement, watch)
    total = len(watch.tiles)
    assert total > 1
    assert watch.tiles == [(number, total) for number in range(1, total + 1)]
    stopped = SilentWatch(stop_after=len(watch.steps) + 1)
    with pytest.raises(RunCancelled):
        painter.paint([recipe], placement, stopped)
    assert stopped.tiles == [(1, total)]


def test_a_single_file_paints_what_its_folder_paints(
    painter: DiffusersBackend, sd: Path, tmp_path: Path
) -> None:
    """The same weights, from one file in the original layout, give the same bits."""
    configurations = Path(shutil.copytree(sd, tmp_path / "fox"))
    for weights in configurations.rglob("*.safetensors"):
        weights.unlink()
    save_single_file(pipelines.build("sd"), tmp_path / "fox.safetensors")
    single = recipes_for(painter, tmp_path / "fox.safetensors")
    assert single[0].model.id == "fox.safetensors"
    expected = paint(painter, recipes_for(painter, sd))
    np.testing.assert_array_equal(paint(painter, single), expected)


def test_a_package_that_is_installed_draws_nothing_on_pictures(
    monkeypatch: pytest.MonkeyPatch, model_folder: Callable[[str], Path]
) -> None:
    """SDXL's watermark once came with it, and no passport says so."""
    folder = model_folder("sdxl")
    plain = paint(DiffusersBackend(), recipes_for(DiffusersBackend(), folder))
    module = pipeline_stable_diffusion_xl
    monkeypatch.setattr(module, "is_invisible_watermark_available", lambda: True)
    inverting = type("", (), {"apply_watermark": lambda _, images: -images})
    monkeypatch.setattr(module, "StableDiffusionXLWatermarker", inverting, raising=False)
    backend = DiffusersBackend()
    np.testing.assert_array_equal(paint(backend, recipes_for(backend, folder)), plain)
