"""Mix the noise of several seeds inside a pipeline's call. Knows nothing of how it is called.

with mixed_noise(pipeline, cells, watch):
    pipeline(...)
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import torch

from seedgrid.core.errors import InputError, RunCancelled
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.generators import fresh_generators
from seedgrid.diffusion.patch import replaced


@contextmanager
def mixed_noise(pipeline: Any, cells: Sequence[Recipe], watch: Watch) -> Iterator[None]:
    """Mix other seeds' noise into the first noise, just where the pipeline draws it.

    The pipeline's own `prepare_latents` draws the other noise as well, from fresh generators, so
    shape, scale and packing are always right, and later draws are those of the picture's seed.

    Raises:
        InputError: `noise_mix_unsupported`: this release of diffusers draws its noise another way.
        RunCancelled: Out of the pipeline's call, at the first share after the wish.
    """
    if not any(cell.noise_mix for cell in cells):
        yield
        return
    original = getattr(pipeline, "prepare_latents", None)
    if original is None or "generator" not in inspect.signature(original).parameters:
        raise InputError("noise_mix_unsupported", field="noise_mix")

    def prepare_latents(*args: Any, **kwargs: Any) -> Any:
        drawn = original(*args, **kwargs)
        given = inspect.signature(original).bind(*args, **kwargs)
        # Of every cell its first share, then its second: None where a cell has no more.
        for shares in zip_longest(*(cell.noise_mix for cell in cells)):
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            seeds = [share.seed if share else 0 for share in shares]
            given.arguments["generator"] = fresh_generators(seeds)
            other = original(*given.args, **given.kwargs)
            drawn = _mix_rows(drawn, other, [share.weight if share else 0.0 for share in shares])
        return drawn

    with replaced(pipeline, "prepare_latents", prepare_latents):
        yield


def mix_noise(start: torch.Tensor, end: torch.Tensor, weight: float) -> torch.Tensor:
    """Go from one noise towards another along the great circle, which keeps its strength.

    Args:
        start: Of any shape; scaling and reordering both inputs alike scales and reorders the
            result, so scheduler-scaled and packed latents may be given.
        end: Of the same shape.
        weight: 0 is `start`, 1 is `end`.

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
    mixed = torch.empty_like(drawn)  # Laid out in memory as it was: that decides which kernels run.
    for place, weight in enumerate(weights):
        mine = drawn[place]
        mixed[place] = mix_noise(mine, other[place], weight) if weight else mine
    return mixed
