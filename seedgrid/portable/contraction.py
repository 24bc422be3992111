"""Matrix products and attention that give the same bits on every machine.

Both operands are rounded to grids (grids.py), their products are summed exactly in float64, and the
sum is rounded to float32 once; then the bias is added in float32. Exact sums have no order, so the
way of computing them (library, blocks, threads) changes no bit. Every row of the left operand (a
token) and every output of the right one has its own grid, so a result never depends on its
neighbours in the batch.

If both operands are activations, no weights balance them. Each is split into a coarse part and a
finer rest, on a grid of its own, and three exact products are added. In attention and softmax each
score becomes e**(score - greatest of its row) on one grid, and one division follows.
"""

import math
from dataclasses import replace
from itertools import product as pairs_of
from typing import Final

import torch

from seedgrid.portable import activations
from seedgrid.portable.grids import (
    CACHE,
    MAX_TERMS,
    Ready,
    anchor,
    compact,
    fine_anchor,
    largest,
    make_ready,
    rounded,
)
from seedgrid.portable.threads import cuts, spread

_PIECE_BYTES: Final = 1 << 21  # Float64 rows that a thread multiplies at a time: its cache
_MIN_PIECE_ROWS: Final = 64
_SHARE_ANCHOR: Final = 24.0  # steps of 2**-19 for shares of attention, which are at most 1
_SOFTMAX_ANCHOR: Final = 2.0  # steps of 2**-22
_SCORES: Final = 1 << 18  # Scores computed at a time, if a row of them is not longer


def exact_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply matrices on grids, float64: exact up to `MAX_TERMS`, else blocks added in order."""
    length = left.shape[-1]
    total = left[..., :MAX_TERMS] @ right[..., :MAX_TERMS, :]
    for start in range(MAX_TERMS, length, MAX_TERMS):
        block = slice(start, start + MAX_TERMS)
        total += left[..., block] @ right[..., block, :]
    return total


def on_grid(numbers: torch.Tensor, dim: int) -> torch.Tensor:
    """Round float32 numbers to one grid for each line along a dimension; float64."""
    return rounded(numbers, anchor(largest(numbers, dim))).to(torch.float64)


def on_two_grids(numbers: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Round float32 as `on_grid`, the rest (up to 2**18 steps) to a grid 2**19 times as fine."""
    magnitudes = largest(numbers, dim)
    coarse = rounded(numbers, anchor(magnitudes)).to(torch.float64)
    rest = numbers.to(torch.float64).sub_(coarse)
    return coarse, rounded(rest, fine_anchor(magnitudes))


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply computed matrices, (n, i, k) by (n, k, j), at about double precision.

    No weights balance the inner dimension, and linear attention divides by one of the results, so
    terms that are small beside the largest must not be lost.
    """
    shape = (*left.shape[:2], right.shape[2])
    result = torch.empty(shape, dtype=torch.float32, device=left.device)
    pair_bytes = 8 * left.shape[2] * (left.shape[1] + right.shape[2])

    def multiply(some: slice) -> None:
        coarse, fine = on_two_grids(left[some], -1)
        across, fine_across = on_two_grids(right[some], -2)
        mixed = exact_product(coarse, fine_across) + exact_product(fine, across)
        result[some] = (exact_product(coarse, across) + mixed).to(torch.float32)

    spread(multiply, cuts(len(left), max(1, _PIECE_BYTES // max(1, pair_bytes))))
    return result.add_(0.0)


def linear(
    inputs: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Return inputs @ weights.T + bias; float32, (…, inputs), (outputs, inputs), (outputs,)."""
    ready = CACHE.get(weights, lambda: _make_rows(weights.detach()))
    rows = inputs.reshape(-1, inputs.shape[-1])
    result = torch.empty(len(rows), len(weights), dtype=torch.float32, device=rows.device)
    weights_t = ready.matrix[0, :, :, 0].to(torch.float64).t()

    def multiply(part: slice) -> None:
        numbers = on_grid(rows[part] * ready.balance, -1)
        add_bias(result[part].copy_(exact_product(numbers, weights_t)), bias)

    spread(
        multiply,
        cuts(len(rows), max(_MIN_PIECE_ROWS, _PIECE_BYTES // (8 * rows.shape[1])), _MIN_PIECE_ROWS),
    )
    return result.view(*inputs.shape[:-1], len(weights))


def _make_rows(weights: torch.Tensor) -> Ready:
    ready = make_ready(weights[None, :, :, None])
    return replace(ready, matrix=compact(ready.matrix))


def add_bias(sums: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Add a bias in place; every zero becomes a positive zero."""
    return sums.add_(0.0 if bias is None else bias + 0.0)


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

    spread(attend, list(pairs_of(cuts(len(left), heads), cuts(length, rows))))
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
