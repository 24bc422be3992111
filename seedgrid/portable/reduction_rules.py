"""Rules of sums, means, running sums and evenly spaced numbers."""

import math
from typing import Any

import numpy as np
import torch

from seedgrid.portable.rules import RULES, Rule, refusal, rule
from seedgrid.portable.sums import folded, moved_last, square_root


def _dims(x: torch.Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [d % x.dim() for d in (dim if isinstance(dim, list | tuple) else [dim])]


def _kept(x: torch.Tensor, value: torch.Tensor, dims: list[int], keepdim: bool) -> torch.Tensor:
    """Give a reduced tensor its dimensions of length 1 back, if `keepdim`."""
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
    return _kept(x, value, dims, keepdim).to(dtype or x.dtype)


@rule("sum")
def _sum(
    x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> torch.Tensor:
    dims = _dims(x, dim)
    if not x.is_floating_point():
        return torch.sum(x, dims, keepdim, dtype=dtype)
    return _kept(x, folded(moved_last(x, dims)), dims, keepdim).to(dtype or x.dtype)


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
    spared = (1 if unbiased else 0) if correction is None else correction
    return _kept(x, folded(terms.mul_(terms)) / float(count - spared), dims, keepdim)


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
    return _kept(x, value, dims, keepdim).to(dtype or x.dtype)


def _running(multiply: bool) -> Rule:
    """Make the rule of a running sum or product: in order, in float64, rounded at the end."""

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
