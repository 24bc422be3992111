"""Convolutions that give the same bits on every machine, on grids as in contraction.py.

Each channel group of each sample, and each output channel's weights, have a grid of their own. On
large maps most 3x3 kernels are computed by Winograd's algorithm, with 16 products instead of 36: a
square of 2x2 results is computed from 4x4 inputs. It transforms inputs and weights by additions,
which are exact if the weights are below a bound. In all other cases windows.py computes the
same bits.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from seedgrid.portable.contraction import add_bias
from seedgrid.portable.grids import CACHE, PreparedWeights, anchor, largest, narrow, prepare_weights
from seedgrid.portable.threads import cuts, spread
from seedgrid.portable.windows import Maps, Tile, Windows, convolve, tiles

_MIN_PIECE_NUMBERS: Final = 1 << 16  # Fewer are not worth a thread of their own
_MIN_CHANNELS: Final = 96  # With fewer channels or pixels, windows.py is as fast or faster
_MIN_PIXELS: Final = 4096  # Of all samples together
_MIN_SQUARES: Final = 128  # In a tile, so that weights larger than the cache are read less often

_EXACT: Final = 2.0**53
_INPUT_BOUND: Final = 2.0**21  # In steps: the sum of four numbers of at most 2**19
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
    `padding` (zeros on either side) and `dilation` are pairs: vertical, horizontal.
    """
    windows = Windows(
        kernel=(weights.shape[2], weights.shape[3]),
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        dilation=(dilation[0], dilation[1]),
    )
    winograd = groups == 1 and suits_winograd(inputs, windows)
    kernel = CACHE.get(
        weights, lambda: prepare_kernel(weights.detach(), groups, winograd), winograd
    )
    maps, matrix = _on_grids(inputs.contiguous(), kernel.balance), kernel.matrix.to(torch.float64)
    bias = None if bias is None else bias.view(-1, 1, 1)
    if kernel.is_transformed:
        return _winograd(maps, matrix, bias)
    return convolve(maps, matrix, bias, windows)


def prepare_kernel(weights: torch.Tensor, groups: int, winograd: bool) -> PreparedWeights:
    """Prepare weights for inputs that are not balanced; `winograd` transforms them if exact."""
    grouped = weights.reshape(groups, len(weights) // groups, weights.shape[1], -1)
    prepared = prepare_weights(grouped)
    transformed = transformed_weights(prepared) if winograd else None
    if transformed is None:
        matrix = narrow(prepared.matrix * prepared.balance[:, None, :, None])
        return replace(prepared, matrix=matrix)
    matrix = narrow(transformed * prepared.balance[0, :, None])
    return replace(prepared, matrix=matrix, is_transformed=True)


def _on_grids(inputs: torch.Tensor, balance: torch.Tensor) -> Maps:
    """Give each channel group of a sample one grid, from its largest balanced magnitude."""
    groups, depth = balance.shape
    channels = inputs.view(len(inputs), groups, depth, -1)
    balances = balance.view(1, groups, depth, 1)
    samples = cuts(len(inputs), len(inputs), -(-_MIN_PIECE_NUMBERS // inputs[0].numel()))
    magnitudes = torch.cat(spread(lambda part: largest(channels[part], 3), samples))
    anchors = anchor(largest(magnitudes * balances, 2)) / balances
    return Maps(numbers=inputs, anchors=anchors.view(len(inputs), -1, 1, 1))


def transformed_weights(prepared: PreparedWeights) -> torch.Tensor | None:
    """Transform 3x3 weights of one group for Winograd's algorithm; None if that may be inexact.

    Returns float64, (16, inputs, outputs), divided by the balance like `prepared`.
    """
    _, outputs, depth, _ = prepared.matrix.shape
    transform = torch.tensor(_WEIGHT_TRANSFORM, dtype=torch.float64, device=prepared.matrix.device)
    taps = prepared.matrix.view(outputs, depth, 3, 3)
    # All products are by 0, 1 or ±1/2, and the sums need few bits, so they are exact in any order.
    transformed = torch.einsum("ik,ockl,jl->ijco", transform, taps, transform)
    transformed = transformed.reshape(16, depth, outputs)
    quarter_steps = transformed.abs().sum((0, 1)) / (prepared.steps[0] / 4)
    return transformed if bool((quarter_steps * _INPUT_BOUND < _EXACT).all()) else None


def suits_winograd(inputs: torch.Tensor, windows: Windows) -> bool:
    """Tell whether Winograd's algorithm fits maps (n, c, h, w) of one group and is faster."""
    samples, channels, height, width = inputs.shape
    is_large = channels >= _MIN_CHANNELS and samples * height * width >= _MIN_PIXELS
    return is_large and windows == _SAME and height % 2 == width % 2 == 0


def _winograd(maps: Maps, weights: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Convolve maps of even size, with a border of zeros, by transformed weights, as `convolve`.

    Channels are last in intermediate tensors, so memory is read in long rows.
    """
    samples, depth, height, width = maps.numbers.shape
    outputs = weights.shape[2]
    result = torch.empty((samples, outputs, height, width), device=maps.numbers.device)
    squares_shape = torch.Size((samples, outputs, height // 2, width // 2))
    square_bytes = 8 * 16 * depth

    def fill(tile: Tile) -> None:
        part, rows = tile
        top, bottom = 2 * rows.start, 2 * rows.stop
        squares = _transformed(maps.part(part, top, bottom - top + 2, _SAME.padding))
        sums = torch.bmm(squares.view(16, -1, depth), weights).view(*squares.shape[:-1], outputs)
        target = result[part, :, top:bottom]
        channels_last = target.permute(0, 2, 3, 1)
        for row, pair in enumerate(_combined(sums)):
            for column, values in enumerate(_combined(pair)):
                channels_last[:, row::2, column::2] = values
        add_bias(target, bias)

    spread(fill, tiles(squares_shape, square_bytes * width // 2, square_bytes * _MIN_SQUARES))
    return result


def _transformed(maps: torch.Tensor) -> torch.Tensor:
    """Transform the 4x4 squares of maps (n, c, h, w): float64 (4, 4, n, rows, columns, c)."""
    channels_last = maps.permute(0, 2, 3, 1)
    wide = channels_last.to(torch.float64, memory_format=torch.contiguous_format)
    samples, height, width, depth = wide.shape
    rows, columns = height // 2 - 1, width // 2 - 1
    vertical = wide.new_empty(4, samples, rows, width, depth)
    _write_differences(wide, 1, vertical)
    squares = wide.new_empty(4, 4, samples, rows, columns, depth)
    _write_differences(vertical, 3, squares.transpose(0, 1))
    return squares


def _write_differences(x: torch.Tensor, dim: int, result: torch.Tensor) -> None:
    """Write four sums or differences of the slices at each even index and the next three."""
    count = x.shape[dim] // 2 - 1
    first, second, third, fourth = (
        x.narrow(dim, start, 2 * count - 1)[(slice(None),) * dim + (slice(None, None, 2),)]
        for start in range(4)
    )
    torch.sub(first, third, out=result[0])
    torch.add(second, third, out=result[1])
    torch.sub(third, second, out=result[2])
    torch.sub(second, fourth, out=result[3])


def _combined(sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Combine four tensors, along the first dimension, to two; overwrites them."""
    first, second, third, fourth = sums
    return first.add_(second).add_(third), second.sub_(third).sub_(fourth)
