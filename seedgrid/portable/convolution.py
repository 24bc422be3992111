"""Convolutions that give the same bits on every machine, on grids as in contraction.py.

A sample's channel groups and every output have their own grids. On large maps kernels of three by
three go Winograd's way, with 16 products in place of 36: a square of two by two results comes from
four by four inputs. Inputs and weights are transformed by sums of whole multiples of their steps,
which a bound on the weights keeps exact; where it does not hold, or for small or odd maps,
windows.py computes the same bits.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from seedgrid.portable.grids import CACHE, Ready, anchor, compact, largest, make_ready
from seedgrid.portable.threads import cuts, spread
from seedgrid.portable.windows import Maps, Tile, Windows, convolve, shifts, tiles

_MIN_PIECE_NUMBERS: Final = 1 << 16  # A thread looks for the largest of no fewer numbers than these
_MIN_CHANNELS: Final = 96  # With fewer channels or pixels, rows of windows are as fast or faster
_MIN_PIXELS: Final = 4096  # Of all samples together
_MIN_SQUARES: Final = 128  # In a tile: weights above the cache are read once for all of them

_EXACT: Final = 2.0**53
_INPUT_BOUND: Final = 2.0**21  # four numbers of at most 2**19 steps
_WEIGHT_TRANSFORM: Final = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
_SAME: Final = Windows(kernel=(3, 3), padding=(1, 1))


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
    squares = groups == 1 and has_squares(inputs, windows)
    kernel = CACHE.get(weights, lambda: _make_kernel(weights.detach(), groups, squares), squares)
    maps, matrix = _on_grids(inputs.contiguous(), kernel.balance), _widened(kernel.matrix)
    if kernel.is_transformed:
        return _in_squares(maps, matrix, bias)
    return convolve(maps, matrix, bias, windows)


def _make_kernel(weights: torch.Tensor, groups: int, squares: bool) -> Ready:
    """Make weights ready for unbalanced inputs; for Winograd's squares if these are exact."""
    ready = make_ready(weights.reshape(groups, len(weights) // groups, weights.shape[1], -1))
    transformed = transformed_weights(ready) if squares else None
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


def _on_grids(inputs: torch.Tensor, balance: torch.Tensor) -> Maps:
    """Give each channel group of a sample one grid, from the largest balanced magnitude in it."""
    groups, depth = balance.shape
    channels = inputs.view(len(inputs), groups, depth, -1)
    contribution = balance.view(1, groups, depth, 1)
    samples = cuts(len(inputs), len(inputs), -(-_MIN_PIECE_NUMBERS // inputs[0].numel()))
    loudest = torch.cat(spread(lambda some: largest(channels[some], 3), samples))
    anchors = anchor(largest(loudest * contribution, 2)) / contribution
    return Maps(numbers=inputs, anchors=anchors.view(len(inputs), -1, 1, 1))


def transformed_weights(ready: Ready) -> torch.Tensor | None:
    """Transform weights (one group, nine taps), if that is proven exact, else None.

    Returns float64, (16, inputs, outputs), divided by the balance as `ready` is.
    """
    _, outputs, depth, _ = ready.matrix.shape
    transform = torch.tensor(_WEIGHT_TRANSFORM, dtype=torch.float64, device=ready.matrix.device)
    taps = ready.matrix.view(outputs, depth, 3, 3)
    # Every product is by 0, 1 or a half, and the sums are of few bits: exact, in any order.
    whole = torch.einsum("ik,ockl,jl->ijco", transform, taps, transform)
    whole = whole.reshape(16, depth, outputs)
    quarter_steps = whole.abs().sum((0, 1)) / (ready.steps[0] / 4)
    return whole if bool((quarter_steps * _INPUT_BOUND < _EXACT).all()) else None


def has_squares(inputs: torch.Tensor, windows: Windows) -> bool:
    """Tell whether Winograd's squares are the faster way for maps (n, c, h, w) of one group."""
    samples, channels, height, width = inputs.shape
    is_large = channels >= _MIN_CHANNELS and samples * height * width >= _MIN_PIXELS
    return is_large and windows == _SAME and height % 2 == width % 2 == 0


def _in_squares(maps: Maps, weights: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Convolve maps of even size, with a border of zeros, by transformed weights, as `convolve`.

    Channels are last in intermediate tensors, so memory is read in long rows.
    """
    samples, depth, height, width = maps.numbers.shape
    outputs, shift = weights.shape[2], shifts(bias)
    result = torch.empty((samples, outputs, height, width), device=maps.numbers.device)
    shape = torch.Size((samples, outputs, height // 2, width // 2))
    square_bytes = 8 * 16 * depth

    def fill(tile: Tile) -> None:
        some, rows = tile
        top, bottom = 2 * rows.start, 2 * rows.stop
        part = maps.part(some, top, bottom - top + 2, _SAME.padding)
        squares = _transformed(part)
        sums = _products(squares.view(16, -1, depth), weights).view(*squares.shape[:-1], outputs)
        whole = result[some, :, top:bottom]
        place = whole.permute(0, 2, 3, 1)
        for down, line in enumerate(_combined(sums)):
            for across, values in enumerate(_combined(line)):
                place[:, down::2, across::2] = values
        whole.add_(shift)

    spread(fill, tiles(shape, square_bytes * width // 2, square_bytes * _MIN_SQUARES))
    return result


def _products(squares: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Multiply 16 pairs of matrices, divided between the threads."""
    sums = squares.new_empty(16, squares.shape[1], weights.shape[2])
    spread(lambda some: torch.bmm(squares[some], weights[some], out=sums[some]), cuts(16, 16))
    return sums


def _transformed(part: torch.Tensor) -> torch.Tensor:
    """Return float64 (4, 4, n, rows, columns, c) of float32 (n, c, height, width)."""
    moved = part.permute(0, 2, 3, 1)
    whole = moved.to(torch.float64, memory_format=torch.contiguous_format)
    samples, height, width, depth = whole.shape
    rows, columns = height // 2 - 1, width // 2 - 1
    lines = whole.new_empty(4, samples, rows, width, depth)
    _write_differences(whole, 1, lines)
    squares = whole.new_empty(4, 4, samples, rows, columns, depth)
    _write_differences(lines, 3, squares.transpose(0, 1))
    return squares


def _write_differences(x: torch.Tensor, dim: int, places: torch.Tensor) -> None:
    """Combine every second number and its three followers along a dimension, in four ways."""
    count = x.shape[dim] // 2 - 1
    first, second, third, fourth = (
        x.narrow(dim, start, 2 * count - 1)[(slice(None),) * dim + (slice(None, None, 2),)]
        for start in range(4)
    )
    torch.sub(first, third, out=places[0])
    torch.add(second, third, out=places[1])
    torch.sub(third, second, out=places[2])
    torch.sub(second, fourth, out=places[3])


def _combined(sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Combine four numbers to two along the first dimension; overwrites them."""
    first, second, third, fourth = sums
    return first.add_(second).add_(third), second.sub_(third).sub_(fourth)
