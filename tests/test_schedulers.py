"""Schedulers by name: every name makes a working scheduler, and a new one each time."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from modern_pipelines import MODERN
from sweeping import rest_swept

from seedgrid.models.families import family_of
from seedgrid.models.schedulers import TABLE, make_scheduler, min_steps, own_name
from tools import prove

BUNDLED = Path(__file__).parents[1] / "assets" / "model" / "scheduler" / "scheduler_config.json"
CONFIGS: dict[str, dict[str, Any]] = {
    "bundled": json.loads(BUNDLED.read_text(encoding="utf-8")),
    "sdxl": {
        "beta_start": 0.00085,
        "beta_end": 0.012,
        "beta_schedule": "scaled_linear",
        "steps_offset": 1,
        "timestep_spacing": "leading",
    },
    "flow": {"shift": 3.0},
    "dynamic flow": {"shift": 3.0, "use_dynamic_shifting": True},
}
SD = family_of("StableDiffusionPipeline")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"_class_name": "PNDMScheduler", "skip_prk_steps": True}, "PNDM"),
        ({"_class_name": "DPMSolverMultistepScheduler"}, "DPM++ 2M"),
        (
            {"_class_name": "DPMSolverMultistepScheduler", "use_karras_sigmas": True},
            "DPM++ 2M Karras",
        ),
        (
            {"_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "sde-dpmsolver++"},
            "DPM++ 2M SDE",
        ),
        ({"_class_name": "EulerAncestralDiscreteScheduler"}, "Euler a"),
        ({"_class_name": "DPMSolverSDEScheduler"}, "DDIM"),
        ({}, "DDIM"),
    ],
)
def test_a_models_own_scheduler_is_recognised(config: dict[str, Any], name: str) -> None:
    """The one it was published with, or the plainest that fits if that is not on offer."""
    assert own_name(SD, config) == name


def test_the_table_in_the_docs_is_of_this_table() -> None:
    """A scheduler that is added must be proven too: `python -m tools.prove` writes the page."""
    page = (Path(__file__).parents[1] / "docs" / "schedulers.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.split("\n") if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == list(TABLE)
    assert rows[0][1:] == list(prove.FAMILIES.values())
    assert set(MODERN) <= set(prove.FAMILIES)
    hidream = rows[0].index("HiDream")  # Its width is 1 (families.py).
    others = {
        cell for row in rows[1:] for place, cell in enumerate(row) if place not in (0, hidream)
    }
    assert others == {"4", "·"}
    assert {row[hidream] for row in rows[1:]} == {"1", "·"}


def run_schedule(name: str, config: dict[str, Any], num_steps: int) -> torch.Tensor:
    """Run all steps of a schedule over a tiny latent, as a pipeline's loop does."""
    scheduler = make_scheduler(name, config)
    scheduler.set_timesteps(num_steps, **({"mu": 0.8} if "use_dynamic_shifting" in config else {}))
    generator = torch.Generator("cpu").manual_seed(0)
    latents = torch.randn(1, 4, 2, 2, generator=generator)
    takes_generator = "generator" in inspect.signature(scheduler.step).parameters
    drawing = {"generator": [generator]} if takes_generator else {}
    for timestep in scheduler.timesteps:
        scaled = latents
        if hasattr(scheduler, "scale_model_input"):
            scaled = scheduler.scale_model_input(latents, timestep)
        latents = scheduler.step(scaled.tanh(), timestep, latents, **drawing).prev_sample
    return latents


@pytest.mark.parametrize("numbers", rest_swept(["some", "all"], ["some"]))
@pytest.mark.parametrize("config", rest_swept(CONFIGS, ["bundled", "dynamic flow"]))
def test_every_scheduler_paints_at_every_number_of_steps(config: str, numbers: str) -> None:
    """From 1 to 60, but for what is refused beforehand with the fewest that it takes.

    "DPM++ 2M Karras" with the bundled model ended in an index out of bounds from 21 steps on.
    """
    is_flow = "flow" in config
    steps = range(1, 61) if numbers == "all" else (1, 2, 3, 5, 20, 25, 28, 30)
    kinds = {"flow"} if is_flow else {"noise", "unscaled", "implicit"}
    fitting = [name for name, entry in TABLE.items() if kinds & set(entry.samplings)]
    assert fitting
    for name in fitting:
        fewest, most = min_steps(name, CONFIGS[config]), TABLE[name].max_steps or 60
        for number in steps:
            if fewest <= number <= most:
                found = run_schedule(name, CONFIGS[config], number)
                assert found.isfinite().all(), (name, number)
