"""Matrix products and convolutions that give the same bits on every machine.

Both operands are rounded to grids (grids.py), their products are summed exactly in float64, and the
sum is rounded to float32 once; then the bias is added in float32. Exact sums have no order, so the
way of computing them (library, blocks, tiles, threads) changes no bit. Every row of the left
operand (a token; a sample, in a convolution) and every output of the right one has its own grid, so
a result never depends on its neighbours in the batch.

If both operands are activations, no weights balance them. Each is split into a coarse part and a
finer rest, on a grid of its own, and three exact products are added.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from seedgrid.portable import winograd
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
from seedgrid.portable.windows import Maps, Windows, convolve

_PIECE_BYTES: Final = 1 << 21  # Float64 rows that a thread multiplies at a time: its cache
_MIN_PIECE_ROWS: Final = 64
_MIN_PIECE_NUMBERS: Final = 1 << 16  # A thread looks for the largest of no fewer numbers than these


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


def convolution(
    inputs: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Convolve float32 feature maps (n, c, h, w); return (n, outputs, …).

    `weights` are (outputs, c / groups, kernel height, kernel width), `bias` (outputs,). `stride`,
    `padding` (zeros on either side) and `dilation` are vertical, horizontal; channels and outputs
    fall into `groups` separate convolutions.
    """
    windows = Windows(
        kernel=(weights.shape[2], weights.shape[3]),
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        dilation=(dilation[0], dilation[1]),
    )
    use_winograd = groups == 1 and winograd.serves(inputs, windows)
    kernel = CACHE.get(
        weights, lambda: _make_kernel(weights.detach(), groups, use_winograd), form=use_winograd
    )
    maps = _on_grids(inputs.contiguous(), kernel.balance)
    matrix = _widened(kernel.matrix)
    if kernel.is_transformed:
        return winograd.convolve(maps, matrix, bias)
    return convolve(maps, matrix, bias, windows)


def _make_kernel(weights: torch.Tensor, groups: int, use_winograd: bool) -> Ready:
    """Make weights ready for unbalanced inputs; by Winograd's way if it is allowed and exact."""
    ready = make_ready(_grouped(weights, groups))
    transformed = winograd.transformed_weights(ready) if use_winograd else None
    if transformed is None:
        return replace(ready, matrix=compact(ready.matrix * ready.balance[:, None, :, None]))
    matrix = compact(transformed * ready.balance[0, :, None])
    return replace(ready, matrix=matrix, is_transformed=True)


def _widened(matrices: torch.Tensor) -> torch.Tensor:
    if matrices.dtype == torch.float64:
        return matrices
    wide = torch.empty(matrices.shape, dtype=torch.float64, device=matrices.device)
    spread(lambda some: wide[some].copy_(matrices[some]), cuts(len(wide), len(wide)))
    return wide


def _grouped(weights: torch.Tensor, groups: int) -> torch.Tensor:
    return weights.reshape(groups, len(weights) // groups, weights.shape[1], -1)


def _on_grids(inputs: torch.Tensor, balance: torch.Tensor) -> Maps:
    """Give each channel group of a sample one grid, from the largest balanced magnitude in it."""
    groups, depth = balance.shape
    channels = inputs.view(len(inputs), groups, depth, -1)
    contribution = balance.view(1, groups, depth, 1)
    samples = cuts(len(inputs), len(inputs), -(-_MIN_PIECE_NUMBERS // inputs[0].numel()))
    loudest = torch.cat(spread(lambda some: largest(channels[some], 3), samples))
    anchors = anchor(largest(loudest * contribution, 2)) / contribution
    return Maps(numbers=inputs, anchors=anchors.view(len(inputs), -1, 1, 1))
