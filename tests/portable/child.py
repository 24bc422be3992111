"""Compute portably in another process, under whatever limits its environment sets.

python -m tests.portable child MODEL…      prints one JSON object: names and hashes
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import diffusers
import pipelines
import torch

from seedgrid.core.errors import RunError
from seedgrid.diffusion.portable import portable
from seedgrid.diffusion.portable.cases import numbers
from seedgrid.diffusion.portable.golden import FAMILIES, GRID, SCHEDULERS
from seedgrid.diffusion.portable.selftest import check, digest, grid_digest
from seedgrid.models.schedulers import TABLE, make_scheduler, min_steps

BUNDLED = Path(__file__).parent.parent.parent / "assets" / "model"
STEPS = 4


def arguments(name: str, seeds: tuple[int, ...], size: int = 64, steps: int = 2) -> dict[str, Any]:
    """Return what a small pipeline is called with."""
    given: dict[str, Any] = {
        "generator": [torch.Generator("cpu").manual_seed(seed) for seed in seeds],
        "num_inference_steps": steps,
        "output_type": "pt",
    }
    if name in ("ddpm", "ddim", "ddpm-cifar10"):
        return given | {"batch_size": len(seeds)}
    return given | {
        "prompt": [f"fox {seed}" for seed in seeds],
        "width": size,
        "height": size,
        **({"use_resolution_binning": False} if name in ("pixart", "sana") else {}),
    }


def paint(pipeline: Any, name: str, seeds: tuple[int, ...], **more: Any) -> torch.Tensor:
    """Paint portably with a scheduler made anew."""
    pipeline.set_progress_bar_config(disable=True)
    with portable():
        pipeline.scheduler = type(pipeline.scheduler).from_config(pipeline.scheduler.config)
        images: torch.Tensor = pipeline(**arguments(name, seeds, **more)).images
    return images


def bundled() -> Any:
    """Load the bundled model."""
    pipeline = diffusers.DiffusionPipeline.from_pretrained(BUNDLED, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def scheduler_digest(name: str) -> str:
    """Take some steps with a scheduler and return the hash of where they lead, or the refusal."""
    config = dict(pipelines.ddim_scheduler().config)
    if "flow" in TABLE[name].samplings:
        config = {"shift": 3.0}
    generators = [torch.Generator("cpu").manual_seed(7)]
    sample = numbers(1, 4, 8, 8)
    try:
        with portable():
            scheduler = make_scheduler(name, config)
            scheduler.set_timesteps(max(STEPS, min_steps(name, config)))
            sample = sample * getattr(scheduler, "init_noise_sigma", 1.0)
            for timestep in scheduler.timesteps:
                given = sample
                if hasattr(scheduler, "scale_model_input"):
                    given = scheduler.scale_model_input(sample, timestep)
                options: dict[str, Any] = {}
                if "generator" in inspect.signature(scheduler.step).parameters:
                    options["generator"] = generators
                sample = scheduler.step(given * 0.3, timestep, sample, **options).prev_sample
    except RunError as error:
        return f"refused {error.data['value']}"
    return digest(sample)


def everything(models: list[str]) -> dict[str, str]:
    """Return all hashes by name."""
    found = {f"case {name}": "wrong" for name in check()}
    found |= {f"scheduler {name}": scheduler_digest(name) for name in TABLE}
    found["grid"] = grid_digest(bundled())
    for name in models:
        found[name] = digest(paint(pipelines.build(name), name, (3, 4)))
    return found


def expected(models: list[str]) -> dict[str, str]:
    """Return the golden hashes of `everything`."""
    wanted = {f"scheduler {name}": value for name, value in SCHEDULERS.items()}
    return wanted | {"grid": GRID} | {name: FAMILIES[name] for name in models}


def main(models: list[str]) -> None:
    """Print all hashes as one line of JSON; what libraries print goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        found = everything(models)
    sys.stdout.write(json.dumps(found) + "\n")
