"""Parity: pictures are those of a plain diffusers call of the same width, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
from painting import PLACEMENT, check_bundle_reproduced, paint, plain_call, recipes_for
from pictures import FAMILIES
from sweeping import rest_swept

from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.export.bundle import write_bundle
from seedgrid.studio import Studio

# Their tables of aspect ratios have no row for models this small.
EXTRA: dict[str, dict[str, Any]] = {
    name: {"use_resolution_binning": False} for name in ("pixart", "pixart-sigma", "sana")
}

# Written by hand from diffusers' own table of names, not from SeedGrid's.
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "DDIM": lambda c: diffusers.DDIMScheduler.from_config(c),
    "DDPM": lambda c: diffusers.DDPMScheduler.from_config(c),
    "PNDM": lambda c: diffusers.PNDMScheduler.from_config(c),
    "Euler": lambda c: diffusers.EulerDiscreteScheduler.from_config(c),
    "Euler a": lambda c: diffusers.EulerAncestralDiscreteScheduler.from_config(c),
    "Heun": lambda c: diffusers.HeunDiscreteScheduler.from_config(c),
    "DPM2": lambda c: diffusers.KDPM2DiscreteScheduler.from_config(c),
    "DPM2 a": lambda c: diffusers.KDPM2AncestralDiscreteScheduler.from_config(c),
    "DPM++ 2M": lambda c: diffusers.DPMSolverMultistepScheduler.from_config(c),
    "DPM++ 2M Karras": lambda c: diffusers.DPMSolverMultistepScheduler.from_config(
        c, use_karras_sigmas=True
    ),
    "DPM++ 2M SDE": lambda c: diffusers.DPMSolverMultistepScheduler.from_config(
        c, algorithm_type="sde-dpmsolver++"
    ),
    "DPM++ 2M SDE Karras": lambda c: diffusers.DPMSolverMultistepScheduler.from_config(
        c, algorithm_type="sde-dpmsolver++", use_karras_sigmas=True
    ),
    "DPM++ SDE": lambda c: diffusers.DPMSolverSinglestepScheduler.from_config(
        c, algorithm_type="sde-dpmsolver++", lower_order_final=True
    ),
    "DPM++ SDE Karras": lambda c: diffusers.DPMSolverSinglestepScheduler.from_config(
        c, algorithm_type="sde-dpmsolver++", use_karras_sigmas=True, lower_order_final=True
    ),
    "DEIS": lambda c: diffusers.DEISMultistepScheduler.from_config(c),
    "UniPC": lambda c: diffusers.UniPCMultistepScheduler.from_config(c),
    "LCM": lambda c: diffusers.LCMScheduler.from_config(c),
}

USUAL = ("DDIM", "Euler a", "Heun", "DPM++ 2M SDE Karras", "DPM++ SDE", "UniPC")


@pytest.mark.parametrize(
    ("name", "dtype"),
    rest_swept(
        product((*FAMILIES, "sd-v"), ("float32", "bfloat16")),
        [
            *product((*FAMILIES, "sd-v"), ("float32",)),
            *product(("sd", "flux", "ddpm"), ("bfloat16",)),
        ],
    ),
)
def test_a_grid_equals_the_plain_call(
    painter: DiffusersBackend, folder: Path, name: str, dtype: str
) -> None:
    """Four seeds in one batch give the pictures of `pipe(prompts, generator=[…])`."""
    recipes = recipes_for(painter, folder, dtype=dtype)
    expected = plain_call(folder, recipes, **EXTRA.get(name, {}))
    np.testing.assert_array_equal(paint(painter, recipes), expected)


@pytest.mark.sweep
def test_stable_diffusion_3_paints_without_its_t5(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """As diffusers does when it is told so; in the exported program too, and from a picture.

    Many keep it so, since T5 is more than half of it; diffusers itself saves such a folder, and
    does not load it again by itself.
    """
    folder = tmp_path / "slim"
    without = {"text_encoder_3": None, "tokenizer_3": None}
    whole = diffusers.DiffusionPipeline.from_pretrained(model_folder("sd3"), **without)
    whole.save_pretrained(folder)
    small: dict[str, Any] = {"width": 64, "height": 64, "num_inference_steps": 3}
    with Studio(str(folder), tmp_path / "library", placement=PLACEMENT) as studio:
        grid = studio.grid("a fox", **small)
        begun = studio.grid("a fox", "5", start=grid[0].path, strength=0.7, **small)
        recipes = [each.recipe for each in grid]
        plain = plain_call(folder, recipes, loading=without)
        for ours, theirs in zip(grid, plain, strict=True):
            np.testing.assert_array_equal(np.asarray(ours.image), theirs)
        write_bundle([*grid, *begun], tmp_path / "art.zip", model=folder)
    check_bundle_reproduced(tmp_path / "art.zip")


@pytest.mark.parametrize("name", rest_swept(["sd", "sdxl", "sd3", "pixart"], ["sd", "sd3"]))
def test_negative_prompts_equal_the_plain_call(
    painter: DiffusersBackend, folder: Path, name: str
) -> None:
    """A negative prompt reaches the picture as it does in diffusers."""
    recipes = recipes_for(painter, folder, negative_prompt="blurry, low quality")
    expected = plain_call(folder, recipes, **EXTRA.get(name, {}))
    np.testing.assert_array_equal(paint(painter, recipes), expected)


@pytest.mark.parametrize("scheduler", rest_swept(SCHEDULERS, USUAL))
def test_every_scheduler_equals_the_plain_call(
    painter: DiffusersBackend, sd: Path, scheduler: str
) -> None:
    """The name of a scheduler means what it means in diffusers' documentation."""
    recipes = recipes_for(painter, sd, scheduler=scheduler, num_inference_steps=5)
    expected = plain_call(sd, recipes, scheduler=SCHEDULERS[scheduler])
    np.testing.assert_array_equal(paint(painter, recipes), expected)


def test_the_table_of_names_is_covered(painter: DiffusersBackend, sd: Path) -> None:
    """No scheduler is on offer for Stable Diffusion that the test above does not check."""
    assert set(painter.card(str(sd)).schedulers) == set(SCHEDULERS)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Flow DPM++ 2M", diffusers.DPMSolverMultistepScheduler),
        ("Flow UniPC", diffusers.UniPCMultistepScheduler),
    ],
)
@pytest.mark.parametrize("model", rest_swept(["sd3", "flux", "sana"], ["sd3"]))
def test_flow_schedulers_equal_the_plain_call(
    painter: DiffusersBackend, model_folder: Callable[[str], Path], model: str, name: str, make: Any
) -> None:
    """A flow's other solvers are set as diffusers' documentation sets them."""
    folder = model_folder(model)
    recipes = recipes_for(painter, folder, scheduler=name, num_inference_steps=5)

    def scheduler(config: Any) -> Any:
        return make.from_config(
            config,
            prediction_type="flow_prediction",
            use_flow_sigmas=True,
            flow_shift=config["shift"],
        )

    expected = plain_call(folder, recipes, scheduler=scheduler, **EXTRA.get(model, {}))
    np.testing.assert_array_equal(paint(painter, recipes), expected)


def test_ddim_on_a_ddpm_model_equals_the_guides_pipeline(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """The guide runs a DDPM checkpoint through `DDIMPipeline`: scheduler DDIM does the same."""
    folder = model_folder("ddpm")
    recipes = recipes_for(painter, folder, scheduler="DDIM", num_inference_steps=2)
    expected = plain_call(folder, recipes, scheduler=diffusers.DDIMScheduler.from_config)
    np.testing.assert_array_equal(paint(painter, recipes), expected)
