"""The probe: it finds what lets a neighbour in, refuses no sound model, and gives way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from leaks import LEAKS, NOT_FOUND, OF_WEIGHTS, on_output
from painting import PLACEMENT, one_thread, paint, recipes_for
from pictures import FAMILIES
from watches import SilentWatch

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.recipe import NoiseShare, Recipe
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.storage import starts
from seedgrid.studio import Studio

pytestmark = pytest.mark.usefixtures("forgetful")


@pytest.fixture
def recipe(painter: DiffusersBackend, sd: Path) -> Recipe:
    return recipes_for(painter, sd, num_inference_steps=6)[0]


def probed(
    painter: DiffusersBackend, recipe: Recipe, placement: Placement = PLACEMENT
) -> ProbeReport:
    return painter.probe(recipe, placement, SilentWatch())


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_found(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever real projects do over a batch, in any part: the lock is not said to hold."""
    LEAKS[name](painter.load(recipe, PLACEMENT), monkeypatch)
    report = probed(painter, recipe)
    assert any(not check.holds for check in report.checks if check.lock_width == 4)


@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_a_leak_of_a_neighbours_weights_is_found(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Words that weigh nothing themselves are tested beside such as weigh much and little."""
    OF_WEIGHTS[name](painter.load(recipe, PLACEMENT), monkeypatch)
    assert not probed(painter, recipe.replace(weights=True)).holds


@pytest.mark.parametrize("name", NOT_FOUND)
def test_what_docs_lock_md_calls_missed_is_missed(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A scale that the process keeps for good, and a cache whose threshold no step comes under."""
    NOT_FOUND[name](painter.load(recipe, PLACEMENT), monkeypatch)
    assert probed(painter, recipe).holds


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_sound_family_is_refused(painter: DiffusersBackend, folder: Path, dtype: str) -> None:
    """The real probe on real pipelines, one of each family."""
    report = probed(painter, recipes_for(painter, folder, dtype=dtype)[0])
    assert report.holds, report.checks
    assert all(check.compared > 0 for check in report.checks)


@pytest.mark.parametrize("name", ["sd", "flux", "lcm"])
def test_starts_and_tiles_are_no_reason_to_refuse(
    painter: DiffusersBackend, folder: Path, tmp_path: Path
) -> None:
    """A picture that begins from another with little strength, decoded in tiles."""
    starts.add_folder(tmp_path)
    start = starts.write(tmp_path, np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8))
    recipe = recipes_for(painter, folder, num_inference_steps=20)[0]
    report = probed(
        painter,
        recipe.replace(start=start, strength=0.1),
        Placement(device="cpu", threads=1, vae_tiling=True),
    )
    assert report.holds, report.checks


@pytest.mark.parametrize(
    ("scheduler", "width"), [("Euler a", 1), ("DPM++ 2M SDE", 2), ("Heun", 2), ("UniPC", 8)]
)
def test_other_widths_and_schedulers_are_tested_as_they_are(
    painter: DiffusersBackend, sd: Path, width: int, scheduler: str
) -> None:
    """Schedulers with a state, with draws of their own and with two calls a step."""
    recipe = recipes_for(painter, sd, lock_width=width, scheduler=scheduler)[0]
    mixed = recipe.replace(
        negative_prompt="blurry", noise_mix=(NoiseShare(seed=3, weight=0.1),), weights=True
    )
    report = probed(painter, mixed)
    assert (report.holds, report.tested_width) == (True, width)


def test_the_probe_leaves_no_trace(painter: DiffusersBackend, recipe: Recipe) -> None:
    """Pictures after it are those before it."""
    before = paint(painter, [recipe])[0]
    probed(painter, recipe)
    np.testing.assert_array_equal(paint(painter, [recipe])[0], before)
    pipeline = painter.load(recipe, PLACEMENT)
    assert "decode" not in vars(pipeline.vae)
    assert not pipeline.unet._forward_hooks
    assert not pipeline.unet._forward_pre_hooks


@pytest.mark.parametrize("steps", [1, 4, 20])
def test_it_costs_at_most_two_grids_of_four_steps(
    painter: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """However many steps are asked for; a guided batch of four has eight rows a step."""
    recipe = recipes_for(painter, sd, num_inference_steps=steps)[0]
    pipeline, rows = painter.load(recipe, PLACEMENT), {"denoised": 0, "decoded": 0}

    def count(name: str) -> Callable[..., None]:
        def hook(_module: object, args: Sequence[torch.Tensor], *_: object) -> None:
            rows[name] += len(args[0])

        return hook

    on_output(pipeline.unet, monkeypatch, count("denoised"))
    on_output(pipeline.vae.decoder, monkeypatch, count("decoded"))
    assert probed(painter, recipe).holds
    assert rows == {"denoised": 2 * min(steps, 4) * 8, "decoded": 2 * 4}


def test_where_the_lock_does_not_hold_a_smaller_batch_is_offered(
    painter: DiffusersBackend, model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request has a width that is tight; an unusual placement is no reason."""
    folder = model_folder("sd")
    recipe = recipes_for(painter, folder, lock_width=4)[0]
    LEAKS["denoiser: the last slot"](painter.load(recipe, PLACEMENT), monkeypatch)
    assert probed(painter, recipe).tested_width == 1
    assert _usual_width(painter, folder) == 4
    with one_thread():
        LEAKS["denoiser: the last slot"](painter.load(recipe, Placement()), monkeypatch)
        report = probed(painter, recipe, Placement())
    assert _usual_width(painter, folder) == report.tested_width == 1
    assert _usual_width(painter, model_folder("lcm")) == 4


def _usual_width(painter: DiffusersBackend, folder: Path) -> int:
    """The width of new pictures, when nobody asks for one."""
    request = Request(prompt="a fox", seeds=(1,))
    return Studio(str(folder), backend=painter).resolve(request)[0].lock_width


def test_what_never_repeats_is_told(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At width 1 what is left to check is that a picture repeats; width 0 says that it does not."""
    LEAKS["noise: the process's own"](painter.load(recipe, PLACEMENT), monkeypatch)
    assert probed(painter, recipe).tested_width == 0


def test_a_picture_of_nan_proves_nothing(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leaks into NaN is NaN: such a probe is refused."""

    def nothing(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        return (output[0] * torch.nan, *output[1:])

    on_output(painter.load(recipe, PLACEMENT).unet, monkeypatch, nothing)
    with pytest.raises(RunError, match="NaN"):
        probed(painter, recipe)


def test_guidance_on_and_off_are_tests_of_their_own(
    painter: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guidance decides how many rows there are: a leak without it is not covered by one with it."""

    def leak(_module: Any, _args: Any, _kwargs: Any, output: Any) -> Any:
        rows = output[0]
        return output if len(rows) > 4 else (rows + rows.mean(dim=0) * 1e-6, *output[1:])

    on_output(painter.load(recipe, PLACEMENT).unet, monkeypatch, leak)
    assert probed(painter, recipe).holds
    assert not probed(painter, recipe.replace(guidance_scale=1.0)).holds


def test_it_gives_way_between_two_calls_of_the_denoiser(
    painter: DiffusersBackend, recipe: Recipe
) -> None:
    """Somebody wants to paint: nothing is computed any more, and half a test is not remembered."""

    class Wish(SilentWatch):
        num_asked = 0

        @property
        def cancelled(self) -> bool:
            self.num_asked += 1
            return self.num_asked > 6

    watch = Wish()
    with pytest.raises(RunCancelled):
        painter.probe(recipe, PLACEMENT, watch)
    assert watch.num_asked == 7
    assert not probed(painter, recipe).remembered
