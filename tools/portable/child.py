"""Compute portably in another process, under whatever limits its environment sets.

python -m tools.portable child [--only] MODEL…      prints a JSON object a line: name and hash
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import diffusers
import pipelines
import torch

from seedgrid.models.schedulers import TABLE, make_scheduler, min_steps
from seedgrid.portable import portable
from seedgrid.portable.selftest import GRID, check, digest, grid_digest, numbers
from tools.portable.golden import FAMILIES, SCHEDULERS

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
        **({"use_resolution_binning": False} if name in ("pixart", "pixart-sigma", "sana") else {}),
    }


def paint(
    pipeline: Any, name: str, seeds: tuple[int, ...], scheduler: str | None = None, **more: Any
) -> torch.Tensor:
    """Paint portably with a scheduler made anew: the pipeline's own kind, or one by its name."""
    pipeline.set_progress_bar_config(disable=True)
    kind, config = type(pipeline.scheduler), pipeline.scheduler.config
    with portable():
        own = make_scheduler(scheduler, config) if scheduler else kind.from_config(config)
        pipeline.scheduler = own
        images: torch.Tensor = pipeline(**arguments(name, seeds, **more)).images
    pipeline.scheduler = kind.from_config(config)
    return images


def psnr_db(plain: torch.Tensor, other: torch.Tensor) -> float:
    """Return how near a picture is to another, in whole steps of 1/255."""
    pixels = [(images * 255).round().double() for images in (plain, other)]
    error = ((pixels[0] - pixels[1]) ** 2).mean().item()
    return math.inf if error == 0 else 10 * math.log10(255**2 / error)


def family_digest(spec: str) -> str:
    """Paint two tiny pictures and return their hash.

    Args:
        spec: A small pipeline or `bundled`, alone or with a scheduler (`sdxl/Euler a`) and the
            first of two seeds, which are in the words as well (`sd-v/UniPC@77`).
    """
    path, _, seed = spec.partition("@")
    name, _, scheduler = path.partition("/")
    first = int(seed or 3)
    return digest(paint(pipeline_of(name), name, (first, first + 1), scheduler or None))


def pipeline_of(name: str) -> Any:
    """Return the bundled model, or a small pipeline by its name; it shows no progress."""
    pipeline = bundled() if name == "bundled" else pipelines.build(name)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def bundled() -> Any:
    """Load the bundled model."""
    pipeline = diffusers.DiffusionPipeline.from_pretrained(BUNDLED, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def walk(name: str) -> torch.Tensor:
    """Take some steps with a scheduler and return where they lead."""
    config = dict(pipelines.ddim_scheduler().config)
    if "flow" in TABLE[name].samplings:
        config = {"shift": 3.0}
    generators = [torch.Generator("cpu").manual_seed(7)]
    scheduler = make_scheduler(name, config)
    scheduler.set_timesteps(max(STEPS, min_steps(name, config)))
    sample = numbers(1, 4, 8, 8) * getattr(scheduler, "init_noise_sigma", 1.0)
    for timestep in scheduler.timesteps:
        given = sample
        if hasattr(scheduler, "scale_model_input"):
            given = scheduler.scale_model_input(sample, timestep)
        options: dict[str, Any] = {}
        if "generator" in inspect.signature(scheduler.step).parameters:
            options["generator"] = generators
        sample = scheduler.step(given * 0.3, timestep, sample, **options).prev_sample
    return sample


def scheduler_digest(name: str) -> str:
    """Return the hash of where a scheduler leads."""
    with portable():
        return digest(walk(name))


def basics() -> Iterator[tuple[str, str]]:
    """Compute the hashes of operations (those that are wrong), schedulers and a tiny grid."""
    for name in check():
        yield f"case {name}", "wrong"
    for name, entry in TABLE.items():
        if "trigflow" not in entry.samplings:  # Sana-Sprint's, which is painted as a pipeline.
            yield f"scheduler {name}", scheduler_digest(name)
    yield "grid", grid_digest(bundled())


def expected(models: list[str], *, has_basics: bool) -> dict[str, str]:
    """Return the golden hashes of what `main` computes; those that are not kept, as made here."""
    wanted = {f"scheduler {name}": value for name, value in SCHEDULERS.items()} | {"grid": GRID}
    families = {spec: FAMILIES.get(spec) or family_digest(spec) for spec in models}
    return (wanted if has_basics else {}) | families


def main(given: list[str]) -> None:
    """Print each hash as a line of JSON; what libraries print goes to standard error.

    Args:
        given: Small pipelines; with `--only` first, these alone.
    """
    out = sys.stdout
    models = [spec for spec in given if spec != "--only"]
    families = ((spec, family_digest(spec)) for spec in models)
    with contextlib.redirect_stdout(sys.stderr):
        for name, found in families if "--only" in given else chain(basics(), families):
            out.write(json.dumps({name: found}) + "\n")
            out.flush()
