"""The only place where SeedGrid's randomness is made: one fresh CPU generator for each picture.

Drawing changes a generator, so every call of a pipeline needs new ones. One generator for a whole
batch, or `[g] * 4`, ties only the first picture to its seed; a list of separate ones ties each
picture to its own, in every slot. With CPU generators diffusers draws on the CPU and moves the
noise, so a seed means the same noise on every device; GPU generators are offered nowhere.

    >>> [generator.initial_seed() for generator in fresh_generators((7, 7))]
    [7, 7]
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import torch

from seedgrid.core.checks import check_seed
from seedgrid.core.errors import InputError, RunCancelled
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.libraries import replaced


def fresh_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    """Make one new CPU generator for each seed, 0 … 2**32 - 1, for one call; raise as `check_seed`.

    Source: https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    return [torch.Generator("cpu").manual_seed(check_seed(seed)) for seed in seeds]


@contextmanager
def mixed_noise(pipeline: Any, cells: Sequence[Recipe], watch: Watch) -> Iterator[None]:
    """Mix other seeds' noise into the first noise, where the pipeline draws it.

    The pipeline's own `prepare_latents` draws the other noise as well, so shape, scale and packing
    are right, and later draws are those of the picture's seed. Raises `noise_mix_unsupported` if
    this diffusers draws its noise another way; RunCancelled out of the pipeline's call.
    """
    if not any(cell.noise_mix for cell in cells):
        yield
        return
    original = getattr(pipeline, "prepare_latents", None)
    if original is None or "generator" not in inspect.signature(original).parameters:
        raise InputError("noise_mix_unsupported", field="noise_mix")

    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        drawn = original(*args, **kwargs)
        arguments = inspect.signature(original).bind(*args, **kwargs)
        # The first share of every cell, then the second: None where a cell has no more
        for shares in zip_longest(*(cell.noise_mix for cell in cells)):
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            seeds = [share.seed if share else 0 for share in shares]
            arguments.arguments["generator"] = fresh_generators(seeds)
            other = original(*arguments.args, **arguments.kwargs)
            drawn = _mix_rows(drawn, other, [share.weight if share else 0.0 for share in shares])
        return drawn

    with replaced(pipeline, "prepare_latents", prepare_latents):
        yield


def mix_noise(start: torch.Tensor, end: torch.Tensor, weight: float) -> torch.Tensor:
    """Go from one noise to another along the great circle, which keeps its strength.

    `weight` is 0 for `start`, 1 for `end`, of equal shapes; both may be scaled or packed alike.

    Source: Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985.
    """
    a, b = start.double(), end.double()
    cosine = (a.flatten() @ b.flatten() / (a.norm() * b.norm())).clamp(-1, 1)
    angle = torch.arccos(cosine)
    if angle < 1e-4:  # The same seed twice: the formula below would divide by zero.
        return start
    mixed = (torch.sin((1 - weight) * angle) * a + torch.sin(weight * angle) * b) / angle.sin()
    return mixed.to(start.dtype)


def _mix_rows(drawn: Any, other: Any, weights: Sequence[float]) -> Any:
    """Mix each row of a batch by its own weight; Flux also returns position ids, left alone."""
    if isinstance(drawn, tuple):
        return (_mix_rows(drawn[0], other[0], weights), *drawn[1:])
    mixed = torch.empty_like(drawn)  # The same memory layout, and so the same kernels.
    for row, weight in enumerate(weights):
        mixed[row] = mix_noise(drawn[row], other[row], weight) if weight else drawn[row]
    return mixed
