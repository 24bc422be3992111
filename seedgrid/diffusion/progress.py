"""Follow a pipeline's call: each step by its scheduler, each tile that is decoded; cancel it there.

Not all families offer a callback, but all call `scheduler.step` once for each of
`scheduler.timesteps`; every call has a scheduler of its own, whose `step` is replaced. Decoding a
large final in tiles takes as long as many steps, so tiles are reported, too.
"""

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.libraries import replaced
from seedgrid.diffusion.pipeline_cache import Loaded
from seedgrid.diffusion.way import Steering
from seedgrid.portable import native


def follow(
    scheduler: Any,
    recipe: Recipe,
    loaded: Loaded,
    watch: Watch,
    steering: Steering,
    *,
    num_pictures: int,
) -> None:
    """Report the steps of one call's scheduler to `watch`, and steer it.

    Only the first `num_pictures` rows are pictures. Out of the pipeline's call come RunCancelled,
    at the first step after `watch.cancelled`, and Halted, when all that `steering` records is done.
    """
    original = scheduler.step
    steering.order = scheduler.order
    number = 0

    # diffusers reads in the signature whether a scheduler takes generators: wraps keeps it.
    @functools.wraps(original)
    def step(
        model_output: torch.Tensor, timestep: Any, sample: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        nonlocal number
        model_output = steering.given(model_output)
        result = steering.result(original(model_output, timestep, sample, *args, **kwargs))
        number += 1
        total = max(number, _num_steps(scheduler, recipe, loaded))
        time = float(torch.as_tensor(timestep).flatten()[0])

        def previews() -> tuple[Pixels, ...]:
            # Previews are no part of portable pictures: torch's own arithmetic is quicker.
            with native() if recipe.is_portable else nullcontext():
                pictures = loaded.preview(scheduler, recipe, model_output, sample, time)
            return pictures[:num_pictures]

        watch.step(number, total, previews)
        if watch.cancelled:
            raise RunCancelled("run_cancelled")
        return result

    scheduler.step = step


def _num_steps(scheduler: Any, recipe: Recipe, loaded: Loaded) -> int:
    """Return how many steps there will be: from a start most models run only the last ones."""
    total = len(scheduler.timesteps)
    if not recipe.start or not loaded.files.family.strength_shortens:
        return total
    run = int(recipe.num_inference_steps * recipe.strength)
    return max(1, round(total * run / recipe.num_inference_steps))


@contextmanager
def reported_tiles(pipeline: Any, watch: Watch) -> Iterator[None]:
    """Report each tile that a pipeline's VAE decodes to `watch`, if their number is known.

    RunCancelled comes out of the pipeline's call at the first tile after `watch.cancelled`.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None or not getattr(vae, "use_tiling", False):
        yield
        return
    original = vae.tiled_decode

    def tiled_decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        total, number = _num_tiles(vae, latents), 0

        def before(*_: Any) -> None:
            nonlocal number
            number += 1
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            if number <= total:
                watch.tile(number, total)

        listening = vae.decoder.register_forward_pre_hook(before)
        try:
            return original(latents, *args, **kwargs)
        finally:
            listening.remove()

    with replaced(vae, "tiled_decode", tiled_decode):
        yield


def _num_tiles(vae: Any, latents: torch.Tensor) -> int:
    """Return the number of tiles, as AutoencoderKL.tiled_decode; 0 where the VAE is different."""
    size = getattr(vae, "tile_latent_min_size", None)
    overlap = getattr(vae, "tile_overlap_factor", None)
    if size is None or overlap is None:
        return 0
    stride = int(size * (1 - overlap))
    height, width = latents.shape[-2:]
    return math.ceil(height / stride) * math.ceil(width / stride)
