"""Sums in one fixed order: the last half is added onto the first, until one number is left.

Terms are float64, each addition is one IEEE addition, and the order follows from the number of
terms alone. Used for means and variances, whose terms need not lie on a grid.
"""

import math
from collections.abc import Sequence

import torch


def folded(terms: torch.Tensor) -> torch.Tensor:
    """Sum the last dimension.

    Args:
        terms: float64, shape (…, n), n at least 1; overwritten.

    Returns:
        Shape (…), never a negative zero.
    """
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
    """Return mean and variance (divided by n) of each row, float64, shapes (m,).

    Args:
        rows: float32, shape (m, n).
    """
    count = float(rows.shape[1])
    terms = torch.empty(2, *rows.shape, dtype=torch.float64, device=rows.device)
    terms[0] = rows
    torch.mul(terms[0], terms[0], out=terms[1])
    mean, square = folded(terms) / count
    return mean, (square - mean * mean).clamp_min_(0.0)
