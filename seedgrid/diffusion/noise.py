"""The only place where generators for painting are made: a fresh one on the CPU for each picture.

Drawing changes a generator's state, so every call of a pipeline needs new ones. One generator for a
whole batch, or `[g] * 4`, ties only the first picture to its seed; a list of separate generators
ties each picture to its own seed, wherever it is in the batch. With CPU generators diffusers draws
the noise on the CPU and moves it to the device, so a seed means the same noise on every device. GPU
generators are not offered.

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
    """Make one new CPU generator for each seed, 0 … 2**32 - 1, for one call of a pipeline.

    Raises what `check_seed` raises.
    Source: https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    return [torch.Generator("cpu").manual_seed(check_seed(seed)) for seed in seeds]


@contextmanager
def mixed_noise(pipeline: Any, cells: Sequence[Recipe], watch: Watch) -> Iterator[None]:
    """In a pipeline's call, mix other seeds' noise into that which `prepare_latents` returns.

    The pipeline's own `prepare_latents` also draws the other seeds' noise, so its shape, scale and
    packing fit. Later draws use the picture's own seed. Raises `noise_mix_unsupported` if the
    pipeline draws its noise elsewhere. The call raises RunCancelled if `watch.cancelled`.
    """
    if not any(cell.noise_mix for cell in cells):
        yield
        return
    original = getattr(pipeline, "prepare_latents", None)
    if original is None or "generator" not in inspect.signature(original).parameters:
        raise InputError("noise_mix_unsupported", field="noise_mix")

    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        noise = original(*args, **kwargs)
        arguments = inspect.signature(original).bind(*args, **kwargs)
        # The first share of each cell, then the second, and so on; None where a cell has fewer
        for shares in zip_longest(*(cell.noise_mix for cell in cells)):
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            seeds = [share.seed if share else 0 for share in shares]
            arguments.arguments["generator"] = fresh_generators(seeds)
            other = original(*arguments.args, **arguments.kwargs)
            noise = _mix_rows(noise, other, [share.weight if share else 0.0 for share in shares])
        return noise

    with replaced(pipeline, "prepare_latents", prepare_latents):
        yield


def mix_noise(start: torch.Tensor, end: torch.Tensor, weight: float) -> torch.Tensor:
    """Interpolate between two noise tensors of one shape along a great circle ("slerp").

    Unlike linear interpolation this keeps the standard deviation. `weight` is 0 for `start`, 1 for
    `end`; both may be scaled or packed, in the same way.

    Source: Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985.
    """
    a, b = start.cpu().double(), end.cpu().double()  # Apple's graphics chips have no float64.
    cosine = (a.flatten() @ b.flatten() / (a.norm() * b.norm())).clamp(-1, 1)
    angle = torch.arccos(cosine)
    if angle < 1e-4:  # The same seed twice: the formula below would divide by zero.
        return start
    mixed = (torch.sin((1 - weight) * angle) * a + torch.sin(weight * angle) * b) / angle.sin()
    return mixed.to(start.dtype).to(start.device)


def _mix_rows(noise: Any, other: Any, weights: Sequence[float]) -> Any:
    """Mix each row of a batch by its own weight; Flux's position ids are returned unchanged."""
    if isinstance(noise, tuple):
        return (_mix_rows(noise[0], other[0], weights), *noise[1:])
    mixed = torch.empty_like(noise)  # Keeps the memory layout: torch chooses kernels by it
    for row, weight in enumerate(weights):
        mixed[row] = mix_noise(noise[row], other[row], weight) if weight else noise[row]
    return mixed
