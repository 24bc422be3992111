"""Attention and softmax with one possible answer.

Each score becomes e**(score - greatest of its row) on one grid; the sum of these and their products
with the values are exact, and one division follows.
"""

import math
from itertools import product
from typing import Final

import torch

from seedgrid.portable import activations
from seedgrid.portable.contraction import exact_product, on_grid
from seedgrid.portable.grids import rounded
from seedgrid.portable.threads import cuts, spread

_SHARE_ANCHOR: Final = 24.0  # steps of 2**-19 for shares of attention, which are at most 1
_SOFTMAX_ANCHOR: Final = 2.0  # steps of 2**-22
_SCORES: Final = 1 << 18  # Scores computed at a time, if a row of them is not longer


def shares(scores: torch.Tensor, step_anchor: float) -> torch.Tensor:
    """Return e**(score - greatest of its row) on a grid, float64, of float32 (…, n), overwritten.

    `step_anchor` is of `grids.anchor`; minus infinity has no share.
    """
    greatest = scores.amax(-1, keepdim=True)
    greatest = torch.where(greatest == -math.inf, 0.0, greatest)
    grown = activations.exp(scores.sub_(greatest))
    return rounded(grown, step_anchor).to(torch.float64)


def _divided(parts: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Divide float64 by float64 and round to float32; rows without any share give zeros."""
    return (parts / torch.where(total == 0, 1.0, total)).to(torch.float32).add_(0.0)


def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the softmax of float32 scores along a dimension."""
    last = scores.movedim(dim, -1).contiguous().clone()
    parts = shares(last, _SOFTMAX_ANCHOR)
    return _divided(parts, parts.sum(-1, keepdim=True)).movedim(-1, dim)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Return scaled dot product attention; all numbers are float32.

    `query` (…, heads, length, depth) is multiplied with `scale`, 1 / sqrt(depth) by default, first;
    `key` is (…, key heads, others, depth), `value` (…, key heads, others, width), heads a multiple
    of key heads. `mask` is boolean (true takes part) or float32 (added) and expands to (…, heads,
    length, others). With `is_causal` place i sees only places up to i.
    """
    if key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = (part.repeat_interleave(times, -3) for part in (key, value))
    length, others = query.shape[-2], key.shape[-2]
    scaled = query * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    left = on_grid(scaled, -1).reshape(-1, length, query.shape[-1])
    right = on_grid(key, -1).transpose(-1, -2).reshape(-1, key.shape[-1], others)
    values = on_grid(value, -2).reshape(-1, others, value.shape[-1])
    values = torch.nn.functional.pad(values, (0, 1), value=1.0)  # the last sum is that of shares
    added = _added(mask, is_causal, query, others)
    result = torch.empty(*left.shape[:2], value.shape[-1], dtype=torch.float32, device=query.device)
    rows = min(length, max(1, _SCORES // others))
    heads = max(1, _SCORES // (rows * others)) if rows == length else 1

    def attend(place: tuple[slice, slice]) -> None:
        scores = exact_product(left[place], right[place[0]]).to(torch.float32)
        if added is not None:
            scores += added[place]
        parts = shares(scores, _SHARE_ANCHOR)
        sums = exact_product(parts, values[place[0]])
        result[place] = _divided(sums[..., :-1], sums[..., -1:])

    spread(attend, list(product(cuts(len(left), heads), cuts(length, rows))))
    return result.view(*query.shape[:-1], value.shape[-1])


def _added(
    mask: torch.Tensor | None, is_causal: bool, query: torch.Tensor, others: int
) -> torch.Tensor | None:
    """Return the mask that is added to the scores, shape (all heads, length, others), or None."""
    length = query.shape[-2]
    if is_causal:
        mask = torch.ones(length, others, dtype=torch.bool, device=query.device).tril()
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -math.inf)
    whole = mask.to(torch.float32).expand(*query.shape[:-1], others)
    return whole.reshape(-1, length, others)
