"""Sums in one fixed order, and the normalisations made of them.

The last half of the float64 terms is added onto the first, until one number is left: the order
follows from the number of terms alone. For means and variances, whose terms need no grid.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from seedgrid.portable.threads import cuts, spread

_TERMS: Final = 1 << 19  # Numbers summed at a time; whole rows of them


def folded(terms: torch.Tensor) -> torch.Tensor:
    """Sum the last dimension, n at least 1, of float64 (…, n), overwritten; never minus zero."""
    left = terms.shape[-1]
    while left > 1:
        half = left // 2
        terms[..., :half] += terms[..., left - half : left]
        left -= half
    return terms[..., 0] + 0.0


def moved_last(numbers: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Return a float64 copy with some dimensions flattened, in their order, into the last one."""
    own = sorted(dim % numbers.dim() for dim in dims)
    others = [dim for dim in range(numbers.dim()) if dim not in own]
    count = math.prod(numbers.shape[dim] for dim in own)
    ordered = numbers.permute(*others, *own)
    return ordered.reshape(*[numbers.shape[dim] for dim in others], count).to(
        torch.float64, copy=True, memory_format=torch.contiguous_format
    )


def moments(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and variance (divided by n) of float32 rows (m, n): float64, shapes (m,)."""
    count = float(rows.shape[1])
    terms = torch.empty(2, *rows.shape, dtype=torch.float64, device=rows.device)
    terms[0] = rows
    torch.mul(terms[0], terms[0], out=terms[1])
    mean, square = folded(terms) / count
    return mean, (square - mean * mean).clamp_min_(0.0)


def _moments_of(rows: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and 1 / sqrt(variance + eps) of each row, float64, some rows at a time."""
    pieces = cuts(len(rows), max(1, _TERMS // rows.shape[1]))
    means, variances = zip(*spread(lambda some: moments(rows[some]), pieces), strict=True)
    variance = torch.cat(variances) + eps
    return torch.cat(means), 1.0 / square_root(variance)


def square_root(x: torch.Tensor) -> torch.Tensor:
    """Return float64 square roots, rounded correctly, which not every build of torch does."""
    return torch.from_numpy(np.asarray(np.sqrt(x.cpu().numpy()))).to(x.device)


def group_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, groups: int, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise each sample's groups of channels: x * a + b, a and b from float64.

    `x` is float32, (n, c, …), `weight` and `bias` (c,), `groups` divides c, `eps` is added to the
    variance. Returns the result, means and inverse deviations: (n, c, …), (n, groups), (n, groups).
    """
    samples, channels = x.shape[:2]
    dense = x.contiguous()
    mean, inverse = _moments_of(dense.view(samples * groups, -1), eps)
    mean, inverse = mean.view(samples, groups), inverse.view(samples, groups)
    factor = inverse.repeat_interleave(channels // groups, 1)
    if weight is not None:
        factor = factor * weight.to(torch.float64)
    offset = -mean.repeat_interleave(channels // groups, 1) * factor
    if bias is not None:
        offset = offset + bias.to(torch.float64)
    result = scaled(dense.view(samples, channels, -1), factor, offset).view(x.shape)
    return result, mean.to(torch.float32), inverse.to(torch.float32)


def scaled(maps: torch.Tensor, factor: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Return maps * factor + offset, each rounded to float32; one of both a channel."""
    factors, offsets = factor.to(torch.float32)[..., None], offset.to(torch.float32)[..., None]
    result = torch.empty_like(maps)

    def scale(some: slice) -> None:
        torch.mul(maps[some], factors[some], out=result[some]).add_(offsets[some])

    spread(scale, cuts(len(maps), max(1, _TERMS // maps[0].numel())))
    return result


def layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise the last dimensions: ((x - mean) * inverse) * weight + bias in float32.

    Also returns means and inverse deviations, with dimensions of length 1.
    """
    rows = x.reshape(-1, math.prod(shape))
    mean, inverse = (part.to(torch.float32).unsqueeze(1) for part in _moments_of(rows, eps))
    result = (rows - mean).mul_(inverse)
    if weight is not None:
        result.mul_(weight.reshape(-1))
    if bias is not None:
        result.add_(bias.reshape(-1))
    outer = [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]
    return result.view(x.shape), mean.view(outer), inverse.view(outer)
