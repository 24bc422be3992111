"""The probe where a picture begins from another, is a large final, in tiles, or has LoRAs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leaks_of_starts import OF_LORAS, OF_STARTS, OF_TILES
from painting import PLACEMENT, SilentWatch, recipes_for
from sweeping import rest_swept
from test_loras import make_lora

from seedgrid.core.recipe import Lora, Recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.probe_results import ProbeReport, recall_report
from seedgrid.models.loras import take_lora
from seedgrid.storage import starts

IN_TILES = Placement(threads=1, vae_tiling=True)


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A picture to begin from, kept where this process looks."""
    folder = tmp_path_factory.mktemp("starts")
    starts.know(folder)
    return starts.keep(folder, np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8))


@pytest.fixture(scope="module")
def lora(model_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Lora:
    path = tmp_path_factory.mktemp("loras") / "fox.safetensors"
    taken = take_lora(make_lora(model_folder("sd"), path))
    return Lora(id=taken.id, weights_sha256=taken.sha256)


@pytest.fixture
def paint_from(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], start: str
) -> Callable[..., Recipe]:
    def recipe(name: str = "sd", **changes: Any) -> Recipe:
        usual = {"num_inference_steps": 4, "start": start, "strength": 0.6}
        made = recipes_for(backend, model_folder(name), num_inference_steps=4)[0]
        return made.replace(**(usual | changes))

    return recipe


def probed(
    backend: DiffusersBackend, recipe: Recipe, placement: Placement = PLACEMENT
) -> ProbeReport:
    """Probe, and neither remember it nor ask what was remembered."""
    return backend._run_probe(recipe, placement, SilentWatch())


@pytest.mark.parametrize("name", rest_swept(["sd", "sdxl", "sd3", "flux", "lcm"], ["sd", "flux"]))
def test_no_sound_family_is_refused_when_it_begins_from_a_picture(
    backend: DiffusersBackend, paint_from: Callable[..., Recipe], name: str
) -> None:
    """And the encoding of the start is compared, too."""
    report = probed(backend, paint_from(name))
    assert report.holds, report.checks
    assert "encoder of the start" in {check.name for check in report.checks}


def test_a_neighbour_with_mixed_noise_does_not_reach_who_has_none(
    backend: DiffusersBackend,
    paint_from: Callable[..., Recipe],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mixing one row laid out all others anew in memory, and other kernels ran for them."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path))
    plain = paint_from()
    mixed = plain.replace(seed=3, noise_mix=({"seed": 5, "weight": 0.3},))
    backend.paint([plain, mixed], PLACEMENT, SilentWatch())
    report = probed(backend, plain)
    assert report.holds, report.checks


@pytest.mark.parametrize("name", rest_swept(OF_STARTS, [*OF_STARTS][:2]))
def test_a_leak_into_the_start_is_found(
    backend: DiffusersBackend,
    paint_from: Callable[..., Recipe],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """In its encoder, in its own draw, and in the noise that is laid over it."""
    recipe = paint_from()
    OF_STARTS[name](backend.load(recipe, PLACEMENT), monkeypatch)
    assert not probed(backend, recipe).holds


@pytest.mark.parametrize("name", rest_swept(OF_TILES, [*OF_TILES][:2]))
def test_a_leak_between_tiles_is_found(
    backend: DiffusersBackend,
    paint_from: Callable[..., Recipe],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """A larger picture is decoded in tiles, and tiles of four pictures are a batch like any."""
    recipe = paint_from(start="", strength=1.0, num_inference_steps=1, width=96)
    pipeline = backend.load(recipe, IN_TILES)
    monkeypatch.setattr(pipeline.vae, "tile_latent_min_size", 8)
    monkeypatch.setattr(pipeline.vae, "tile_sample_min_size", 64)
    assert probed(backend, recipe, IN_TILES).holds
    OF_TILES[name](pipeline, monkeypatch)
    assert not probed(backend, recipe, IN_TILES).holds


@pytest.mark.parametrize("name", rest_swept(OF_LORAS, [*OF_LORAS][:2]))
def test_a_leak_in_a_lora_is_found(
    backend: DiffusersBackend,
    paint_from: Callable[..., Recipe],
    lora: Lora,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Its layers are part of the denoiser; without a leak they are no reason to refuse."""
    recipe = paint_from(start="", strength=1.0, num_inference_steps=2, loras=(lora,))
    assert probed(backend, recipe).holds
    OF_LORAS[name](backend.load(recipe, PLACEMENT), monkeypatch)
    assert not probed(backend, recipe).holds


def test_a_large_final_is_tested_as_what_it_is(
    backend: DiffusersBackend, paint_from: Callable[..., Recipe]
) -> None:
    """It is painted alone; what was painted before must not reach it either."""
    report = probed(
        backend, paint_from(lock_width=1, width=128, height=128, strength=0.3), IN_TILES
    )
    assert (report.tested_width, report.size) == (1, "128x128")


def test_each_start_size_tile_and_lora_is_a_test_of_its_own(
    backend: DiffusersBackend, paint_from: Callable[..., Recipe], lora: Lora
) -> None:
    """All that changes shapes, steps or weights is in the key; which picture it is, is not."""
    recipe = paint_from(loras=(lora,))
    backend.probe(recipe, PLACEMENT, SilentWatch())
    passport = backend.prepare(recipe, PLACEMENT)
    assert recall_report(recipe, passport) is not None
    other = {"id": "fox", "weights_sha256": "ab" * 32, "scale": 1.0}
    for change in (
        {"start": "", "strength": 1.0},
        {"strength": 0.8},
        {"strength": 0.6000001},
        {"width": 72},
        {"num_inference_steps": 5},
        {"loras": ()},
        {"loras": (other,)},
        {"loras": (lora, other)},
        {"loras": (lora.model_copy(update={"scale": 0.5}),)},
    ):
        assert recall_report(recipe.replace(**change), passport) is None, change
    assert recall_report(recipe, backend.prepare(recipe, IN_TILES)) is None
    assert recall_report(recipe.replace(start="ab" * 32), passport) is not None
