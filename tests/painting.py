"""What the tests of real pipelines share: a silent watch, recipes, and the plain diffusers call."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
from command import run_python
from watches import SilentWatch

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.picture import Entry, Pixels, pixels_sha256
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.export.script import script
from seedgrid.verify.claim import Claim

# Two threads on two busy cores wait for each other most of the time.
PLACEMENT = Placement(threads=1)


def recipes_for(
    backend: DiffusersBackend,
    folder: Path,
    prompts: Sequence[str] = ("a red fox", "a blue fox, artsy", "fox", "two foxes at night"),
    **changes: Any,
) -> tuple[Recipe, ...]:
    """Make one small recipe a prompt, on the seeds from 0."""
    card = backend.card(str(folder))
    request = Request(
        prompt=prompts[0],
        seeds=tuple(range(len(prompts))),
        **({"num_inference_steps": 3, **_small(card)} | changes),
    )
    recipes = resolve(request, card)
    if not card.has_prompt:
        return recipes
    return tuple(
        recipe.replace(prompt=prompt) for recipe, prompt in zip(recipes, prompts, strict=True)
    )


def _small(card: ModelCard) -> dict[str, int]:
    if card.fixed_size:
        return {}
    return {"width": min(card.width, 64), "height": min(card.height, 64)}


def paint(
    backend: DiffusersBackend, recipes: Sequence[Recipe], placement: Placement = PLACEMENT
) -> tuple[Pixels, ...]:
    """Paint a batch with SeedGrid and nobody watching; the first picture that is none is raised."""
    pictures = []
    backend.prepare(recipes[0], placement)
    for outcome in backend.paint(recipes, placement, SilentWatch()):
        if isinstance(outcome, RunError):
            raise outcome
        pictures.append(outcome)
    return tuple(pictures)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, as `PLACEMENT` does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def plain_call(
    folder: Path,
    recipes: Sequence[Recipe],
    *,
    scheduler: Any = None,
    loading: Mapping[str, Any] | None = None,
    **extra: Any,
) -> tuple[Pixels, ...]:
    """Make the four pictures as the guide does it, with diffusers alone.

    Args:
        folder: Of the model.
        recipes: What to paint; only words, seeds and numbers are read.
        scheduler: Makes the pipeline's scheduler from its configuration; its own by default.
        loading: More of what the pipeline is loaded with.
        extra: More arguments of the pipeline's call.
    """
    dtype = getattr(torch, recipes[0].dtype)
    pipeline = diffusers.DiffusionPipeline.from_pretrained(folder, dtype=dtype, **(loading or {}))
    pipeline.set_progress_bar_config(disable=True)
    if scheduler is not None:
        pipeline.scheduler = scheduler(pipeline.scheduler.config)
    first = recipes[0]
    arguments: dict[str, Any] = {"num_inference_steps": first.num_inference_steps, **extra}
    if first.prompt:
        arguments["prompt"] = [recipe.prompt for recipe in recipes]
        arguments |= {"width": first.width, "height": first.height}
        arguments["guidance_scale"] = first.guidance_scale
    else:
        arguments["batch_size"] = len(recipes)
    if first.negative_prompt:
        arguments["negative_prompt"] = [recipe.negative_prompt for recipe in recipes]
    generators = [torch.Generator("cpu").manual_seed(recipe.seed) for recipe in recipes]
    with one_thread():
        if recipes[0].dtype == "bfloat16":  # DDPM and DDIM cannot turn it into PIL images.
            images = pipeline(**arguments, generator=generators, output_type="pt").images
            return tuple(
                (image.permute(1, 2, 0).float().numpy() * 255).round().astype(np.uint8)
                for image in images
            )
        images = pipeline(**arguments, generator=generators).images
    return tuple(np.asarray(image.convert("RGB")) for image in images)


def claim_of(name: str, pixels: Pixels, recipe: Recipe, passport: Passport) -> Claim:
    """Claim that a recipe made these pixels under a passport."""
    return Claim(
        name=name,
        pixels=pixels,
        pixels_sha256=pixels_sha256(pixels),
        recipe=recipe,
        passport=passport,
    )


def claims_of(*entries: Entry) -> list[Claim]:
    """Claim of pictures what they say of themselves."""
    return [
        claim_of(each.id, np.asarray(each.image), each.recipe, each.passport) for each in entries
    ]


def check_reproduced(
    program: Path, *words: str | Path, env: Mapping[str, str] | None = None
) -> None:
    """Run an exported program in a new process: all its pictures must come out identical."""
    done = run_python(program, *words, cwd=program.parent, env=env)
    assert done.stdout.endswith("all identical\n"), done.stdout + done.stderr


def check_script_reproduced(
    entries: Sequence[Entry], folder: Path, model: Path, env: Mapping[str, str] | None = None
) -> None:
    """Write the program of pictures into a folder and check that it repeats them."""
    (folder / "reproduce.py").write_text(script(entries), encoding="utf-8")
    check_reproduced(folder / "reproduce.py", "--model", model, env=env)


def check_bundle_reproduced(bundle: Path) -> list[str]:
    """Unpack a bundle beside itself, check that its program repeats it, and name its members."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(bundle.with_suffix(""))
        names = archive.namelist()
    check_reproduced(bundle.with_suffix("") / "reproduce.py")
    return names
