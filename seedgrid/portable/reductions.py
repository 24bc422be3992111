"""Sums in one fixed order, and the rules of means, norms, running sums and evenly spaced numbers.

The last half of the float64 terms is added onto the first half, until one number is left, so the
order follows from the number of terms alone. As the order is fixed, terms need not be rounded to
grids (grids.py) first.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from seedgrid.portable.rules import RULES, Rule, refusal, rule
from seedgrid.portable.threads import cuts, spread

_PIECE: Final = 1 << 19  # Numbers summed at a time, in whole rows


def folded(terms: torch.Tensor) -> torch.Tensor:
    """Return float64 sums (never -0) over the last, non-empty dimension; overwrites `terms`."""
    count = terms.shape[-1]
    while count > 1:
        half = count // 2
        terms[..., :half] += terms[..., count - half : count]
        count -= half
    return terms[..., 0] + 0.0


def moved_last(numbers: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Return a float64 copy with the dimensions `dims`, in ascending order, flattened into one."""
    dims = sorted(dim % numbers.dim() for dim in dims)
    others = [dim for dim in range(numbers.dim()) if dim not in dims]
    ordered = numbers.permute(*others, *dims)
    shape = *(numbers.shape[dim] for dim in others), math.prod(numbers.shape[dim] for dim in dims)
    return ordered.reshape(shape).to(
        torch.float64, copy=True, memory_format=torch.contiguous_format
    )


def _moments(rows: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and 1 / sqrt(variance + eps) of float32 rows (m, n): float64, (m,)."""

    def compute(part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        terms = torch.empty(2, *rows[part].shape, dtype=torch.float64, device=rows.device)
        terms[0] = rows[part]
        torch.mul(terms[0], terms[0], out=terms[1])
        mean, mean_square = folded(terms) / float(rows.shape[1])
        return mean, (mean_square - mean * mean).clamp_min_(0.0)

    pieces = cuts(len(rows), max(1, _PIECE // rows.shape[1]))
    means, variances = zip(*spread(compute, pieces), strict=True)
    return torch.cat(means), 1.0 / square_root(torch.cat(variances) + eps)


def square_root(x: torch.Tensor) -> torch.Tensor:
    """Return float64 square roots, by NumPy: not every build of torch rounds them correctly."""
    return torch.from_numpy(np.asarray(np.sqrt(x.cpu().numpy()))).to(x.device)


@rule("native_group_norm")
def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    samples: int,
    channels: int,
    _pixels: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x * factor + offset; factor and offset are computed in float64, then rounded.

    Also returns the means and inverse standard deviations, (samples, groups).
    """
    x = x.contiguous()
    moments = _moments(x.view(samples * groups, -1), eps)
    mean, inverse = (moment.view(samples, groups) for moment in moments)
    factor = inverse.repeat_interleave(channels // groups, 1)
    if weight is not None:
        factor = factor * weight.to(torch.float64)
    offset = -mean.repeat_interleave(channels // groups, 1) * factor
    if bias is not None:
        offset = offset + bias.to(torch.float64)
    factors, offsets = factor.to(torch.float32)[..., None], offset.to(torch.float32)[..., None]
    maps = x.view(samples, channels, -1)
    result = torch.empty_like(maps)

    def scale(part: slice) -> None:
        torch.mul(maps[part], factors[part], out=result[part]).add_(offsets[part])

    spread(scale, cuts(samples, max(1, _PIECE // maps[0].numel())))
    return result.view(x.shape), mean.to(torch.float32), inverse.to(torch.float32)


@rule("native_layer_norm")
def _layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ((x - mean) * inverse) * weight + bias over the last dimensions, in float32.

    Also returns the means and inverse standard deviations, with dimensions of length 1.
    """
    rows = x.reshape(-1, math.prod(shape))
    mean, inverse = (part.to(torch.float32).unsqueeze(1) for part in _moments(rows, eps))
    result = (rows - mean).mul_(inverse)
    if weight is not None:
        result.mul_(weight.reshape(-1))
    if bias is not None:
        result.add_(bias.reshape(-1))
    outer = [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]
    return result.view(x.shape), mean.view(outer), inverse.view(outer)


def _dims(x: torch.Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [d % x.dim() for d in (dim if isinstance(dim, list | tuple) else [dim])]


def _reshaped(x: torch.Tensor, value: torch.Tensor, dims: list[int], keepdim: bool) -> torch.Tensor:
    """Reshape a reduction of x over `dims`: with `keepdim` these dimensions have length 1."""
    if not keepdim:
        return value
    return value.reshape([1 if i in dims else n for i, n in enumerate(x.shape)])


@rule("mean")
def _mean(
    x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> torch.Tensor:
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    value = folded(moved_last(x, dims)) / float(count)
    return _reshaped(x, value, dims, keepdim).to(dtype or x.dtype)


@rule("sum")
def _sum(
    x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> torch.Tensor:
    dims = _dims(x, dim)
    if not x.is_floating_point():
        return torch.sum(x, dims, keepdim, dtype=dtype)
    return _reshaped(x, folded(moved_last(x, dims)), dims, keepdim).to(dtype or x.dtype)


def _variance(
    x: torch.Tensor,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> torch.Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    dims = _dims(x, dim)
    terms = moved_last(x, dims)
    count = terms.shape[-1]
    terms = terms - (folded(terms.clone()) / float(count)).unsqueeze(-1)
    correction = int(unbiased) if correction is None else correction
    return _reshaped(x, folded(terms.mul_(terms)) / float(count - correction), dims, keepdim)


@rule("var")
def _var(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    return _variance(x, *args, **options).to(x.dtype)


@rule("std")
def _std(x: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    return square_root(_variance(x, *args, **options)).to(x.dtype)


@rule("linalg_vector_norm")
def _vector_norm(
    x: torch.Tensor,
    ord: float = 2,  # noqa: A002 - torch's name
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> torch.Tensor:
    if ord != 2:
        raise refusal(f"linalg_vector_norm ord={ord}")
    dims = _dims(x, dim)
    terms = moved_last(x, dims)
    value = square_root(folded(terms.mul_(terms)))
    return _reshaped(x, value, dims, keepdim).to(dtype or x.dtype)


def _running(multiply: bool) -> Rule:
    """Return the rule of running sums or products: in order, in float64, rounded at the end."""

    def compute(x: torch.Tensor, dim: int, *, dtype: Any = None) -> torch.Tensor:
        if not x.is_floating_point():
            return (torch.cumprod if multiply else torch.cumsum)(x, dim, dtype=dtype)
        values = x.to(torch.float64).movedim(dim, 0).cpu().numpy()
        operation = np.multiply if multiply else np.add
        total = torch.from_numpy(operation.accumulate(values, axis=0))
        return total.movedim(0, dim).contiguous().to(dtype or x.dtype).to(x.device)

    return compute


RULES["cumsum"] = _running(False)
RULES["cumprod"] = _running(True)


@rule("linspace")
def _linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, **_: Any
) -> torch.Tensor:
    values = np.arange(steps) * ((end - start) / max(steps - 1, 1)) + start
    if steps > 1:
        values[-1] = end
    return torch.from_numpy(values).to(dtype or torch.get_default_dtype()).to(device)


@rule("arange")
def _arange(*limits: Any, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    if all(isinstance(limit, int) for limit in limits):
        return torch.arange(*limits, dtype=dtype, device=device)
    first, last, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    values = np.arange(math.ceil((last - first) / step)) * float(step) + float(first)
    return torch.from_numpy(values).to(dtype or torch.get_default_dtype()).to(device)
