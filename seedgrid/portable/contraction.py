"""Matrix products and attention that give the same bits on every machine.

Both operands are rounded to grids (grids.py), their products are summed exactly in float64, and the
sum is rounded to float32 once; then the bias is added in float32. Exact sums do not depend on the
order, so libraries, blocks and threads change no bit. Every row of the left operand (a token) and
every output of the right one has its own grid, so no result depends on neighbours in the batch.

In `product`, of two activations, there are no weights to balance the channels. So each operand is
split into a coarse part and the finer rest, each on its own grid, and three exact products are
added. In attention and softmax e**(score - greatest score of the row) is rounded to a grid, then
summed exactly, and one division follows.
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
    PreparedWeights,
    anchor,
    fine_anchor,
    largest,
    narrow,
    prepare_weights,
    rounded,
)
from seedgrid.portable.threads import cuts, spread

_PIECE_BYTES: Final = 1 << 21  # Of float64 rows that a thread multiplies at once, to fit its cache
_MIN_PIECE_ROWS: Final = 64
_ATTENTION_ANCHOR: Final = 24.0  # Steps of 2**-19, for exponentials of at most 1
_SOFTMAX_ANCHOR: Final = 2.0  # Steps of 2**-22
_PIECE_SCORES: Final = 1 << 18  # Scores computed at a time, if a row of them is not longer


def exact_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply float64 matrices on grids: exactly up to `MAX_TERMS`, else in blocks, in order."""
    length = left.shape[-1]
    total = left[..., :MAX_TERMS] @ right[..., :MAX_TERMS, :]
    for start in range(MAX_TERMS, length, MAX_TERMS):
        block = slice(start, start + MAX_TERMS)
        total += left[..., block] @ right[..., block, :]
    return total


def on_grid(numbers: torch.Tensor, dim: int) -> torch.Tensor:
    """Round float32 numbers, with one grid for each line along a dimension; return float64."""
    return rounded(numbers, anchor(largest(numbers, dim))).to(torch.float64)


def on_two_grids(numbers: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Split float32 numbers: rounded as by `on_grid`, and the rest on a grid 2**19 times finer."""
    magnitudes = largest(numbers, dim)
    coarse = rounded(numbers, anchor(magnitudes)).to(torch.float64)
    rest = numbers.to(torch.float64).sub_(coarse)
    return coarse, rounded(rest, fine_anchor(magnitudes))


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply activations, (n, i, k) by (n, k, j), about as exactly as float64; return float32.

    Linear attention divides one such product by another, so terms that are small beside the largest
    of their row must not be lost.
    """
    shape = (*left.shape[:2], right.shape[2])
    result = torch.empty(shape, dtype=torch.float32, device=left.device)
    pair_bytes = 8 * left.shape[2] * (left.shape[1] + right.shape[2])

    def multiply(part: slice) -> None:
        left_coarse, left_fine = on_two_grids(left[part], -1)
        right_coarse, right_fine = on_two_grids(right[part], -2)
        mixed = exact_product(left_coarse, right_fine) + exact_product(left_fine, right_coarse)
        result[part] = (exact_product(left_coarse, right_coarse) + mixed).to(torch.float32)

    spread(multiply, cuts(len(left), max(1, _PIECE_BYTES // max(1, pair_bytes))))
    return result.add_(0.0)


def linear(
    inputs: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Return inputs @ weights.T + bias of float32 (…, inputs), (outputs, inputs), (outputs,)."""
    prepared = CACHE.get(weights, lambda: _prepare_rows(weights.detach()))
    rows = inputs.reshape(-1, inputs.shape[-1])
    result = torch.empty(len(rows), len(weights), dtype=torch.float32, device=rows.device)
    matrix = prepared.matrix[0, :, :, 0].to(torch.float64).t()

    def multiply(part: slice) -> None:
        numbers = on_grid(rows[part] * prepared.balance, -1)
        add_bias(result[part].copy_(exact_product(numbers, matrix)), bias)

    piece_rows = max(_MIN_PIECE_ROWS, _PIECE_BYTES // (8 * rows.shape[1]))
    spread(multiply, cuts(len(rows), piece_rows, _MIN_PIECE_ROWS))
    return result.view(*inputs.shape[:-1], len(weights))


def _prepare_rows(weights: torch.Tensor) -> PreparedWeights:
    prepared = prepare_weights(weights[None, :, :, None])
    return replace(prepared, matrix=narrow(prepared.matrix))


def add_bias(sums: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Add a bias that broadcasts, in place; negative zeros become positive."""
    return sums.add_(0.0 if bias is None else bias + 0.0)


def _exponentials(scores: torch.Tensor, grid_anchor: float) -> torch.Tensor:
    """Return e**(score - greatest of its row) on the grid of an anchor, as float64.

    `scores` are float32, (…, n), and are overwritten. Minus infinity gives 0, even as the greatest.
    """
    greatest = scores.amax(-1, keepdim=True)
    greatest = torch.where(greatest == -math.inf, 0.0, greatest)
    return rounded(activations.exp(scores.sub_(greatest)), grid_anchor).to(torch.float64)


def _divided(sums: torch.Tensor, divisors: torch.Tensor) -> torch.Tensor:
    """Divide float64 by float64 and round to float32; 0 where the divisor is 0."""
    return (sums / torch.where(divisors == 0, 1.0, divisors)).to(torch.float32).add_(0.0)


def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the softmax of float32 scores along a dimension."""
    last = scores.movedim(dim, -1).contiguous().clone()
    exponentials = _exponentials(last, _SOFTMAX_ANCHOR)
    return _divided(exponentials, exponentials.sum(-1, keepdim=True)).movedim(-1, dim)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Return scaled dot product attention of float32 tensors, (…, heads, length, width).

    `query` is (…, heads, length, depth), `key` (…, key heads, others, depth), `value` (…, key
    heads, others, width); heads are a multiple of key heads. The query is multiplied by `scale`
    first, 1 / sqrt(depth) by default. `mask` is boolean (true: attended to) or float32 (added to
    the scores) and broadcasts to (…, heads, length, others). With `is_causal` token i attends only
    to tokens up to i, and `mask` is not used.
    """
    if key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = (part.repeat_interleave(times, -3) for part in (key, value))
    length, others = query.shape[-2], key.shape[-2]
    scaled = query * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    left = on_grid(scaled, -1).reshape(-1, length, query.shape[-1])
    right = on_grid(key, -1).transpose(-1, -2).reshape(-1, key.shape[-1], others)
    values = on_grid(value, -2).reshape(-1, others, value.shape[-1])
    # A column of ones: the last sum is that of the exponentials, by which the others are divided.
    values = torch.nn.functional.pad(values, (0, 1), value=1.0)
    added_mask = _added_mask(mask, is_causal, query, others)
    result = torch.empty(*left.shape[:2], value.shape[-1], dtype=torch.float32, device=query.device)
    rows = min(length, max(1, _PIECE_SCORES // others))
    heads = max(1, _PIECE_SCORES // (rows * others)) if rows == length else 1

    def attend(piece: tuple[slice, slice]) -> None:
        scores = exact_product(left[piece], right[piece[0]]).to(torch.float32)
        if added_mask is not None:
            scores += added_mask[piece]
        sums = exact_product(_exponentials(scores, _ATTENTION_ANCHOR), values[piece[0]])
        result[piece] = _divided(sums[..., :-1], sums[..., -1:])

    spread(attend, list(pairs_of(cuts(len(left), heads), cuts(length, rows))))
    return result.view(*query.shape[:-1], value.shape[-1])


def _added_mask(
    mask: torch.Tensor | None, is_causal: bool, query: torch.Tensor, others: int
) -> torch.Tensor | None:
    """Return what is added to the scores, of shape (all heads, length, others), if anything."""
    length = query.shape[-2]
    if is_causal:
        mask = torch.ones(length, others, dtype=torch.bool, device=query.device).tril()
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -math.inf)
    whole = mask.to(torch.float32).expand(*query.shape[:-1], others)
    return whole.reshape(-1, length, others)
