"""Exact convolutions of numbers on grids, as matrix products over windows ("im2col"), in tiles.

The weights are multiplied by a float64 matrix whose columns are the windows of a tile. With a
vertical stride of 1, and at most `MAX_TERMS` terms, the columns hold only one row of a window; each
row of the kernel is multiplied by them, shifted by a row. For a 3x3 kernel a third as many numbers
are written. This choice and the size of the tiles change only the speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import torch

from seedgrid.portable.contraction import add_bias, exact_product
from seedgrid.portable.grids import MAX_TERMS
from seedgrid.portable.threads import cuts, spread

_TILE_BYTES: Final = 1 << 21  # Of a tile's windows, which should stay in the cache until multiplied

Tile = tuple[slice, slice]  # A range of a result's samples, and one of their rows


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The geometry of a convolution; each pair is vertical, horizontal."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of the result."""
        return (self._output_length(height, 0), self._output_length(width, 1))

    def _output_length(self, length: int, axis: int) -> int:
        reach = self.dilation[axis] * (self.kernel[axis] - 1)
        return (length + 2 * self.padding[axis] - reach - 1) // self.stride[axis] + 1


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Feature maps, with the grids to which their parts are rounded when they are used."""

    numbers: torch.Tensor  # float32, shape (n, c, h, w), contiguous
    anchors: torch.Tensor  # Of their grids, shape (n, c, 1, 1)

    def channels(self, part: slice) -> Maps:
        """Return a range of the channels."""
        return Maps(numbers=self.numbers[:, part], anchors=self.anchors[:, part])

    def part(self, samples: slice, top: int, rows: int, padding: tuple[int, int]) -> torch.Tensor:
        """Return rounded rows of samples: float32, (samples, c, rows, w + 2 * padding[1]).

        `padding` is the width of the border of zeros, above and below, left and right; `top` is the
        first row, counted from the border's top.
        """
        vertical, horizontal = padding
        numbers, anchors = self.numbers[samples], self.anchors[samples]
        count, depth, height, width = numbers.shape
        part = numbers.new_zeros(count, depth, rows, width + 2 * horizontal)
        first, last = max(top - vertical, 0), min(top - vertical + rows, height)
        start, end = first + vertical - top, last + vertical - top
        inner = part[:, :, start:end, horizontal : horizontal + width]
        torch.add(numbers[:, :, first:last], anchors, out=inner).sub_(anchors)
        return part


def tiles(shape: torch.Size, bytes_a_row: int, least_bytes: int = 0) -> list[Tile]:
    """Cut a result (n, outputs, height, width) into tiles of about `_TILE_BYTES`.

    If `least_bytes` is more, it is used instead. A sample's row takes `bytes_a_row` while computed.
    """
    samples, _, height, _ = shape
    tile_bytes = max(_TILE_BYTES, least_bytes)
    rows = min(height, max(1, tile_bytes // bytes_a_row))
    tile_samples = max(1, tile_bytes // (bytes_a_row * rows)) if rows == height else 1
    return list(
        product(
            cuts(samples, tile_samples, -(-least_bytes // (bytes_a_row * height))),
            cuts(height, rows, -(-least_bytes // bytes_a_row)),
        )
    )


def convolve(
    maps: Maps, matrix: torch.Tensor, bias: torch.Tensor | None, windows: Windows
) -> torch.Tensor:
    """Convolve exactly, round once, add the bias; return float32, (n, groups * outputs, …).

    `maps` are (n, c, h, w), `matrix` float64 on grids, (groups, outputs, c / groups, taps), `bias`
    float32, (groups * outputs, 1, 1).
    """
    groups, outputs, depth, _ = matrix.shape
    samples, _, *size = maps.numbers.shape
    shape = (samples, groups * outputs, *windows.output(*size))
    result = torch.empty(shape, dtype=torch.float32, device=maps.numbers.device)
    fits_one_sum = matrix[0, 0].numel() <= MAX_TERMS
    fill = _fill_by_rows if windows.stride[0] == 1 and fits_one_sum else _fill_by_windows
    for group in range(groups):
        inputs = maps.channels(slice(group * depth, (group + 1) * depth))
        channels = slice(group * outputs, (group + 1) * outputs)
        fill(inputs, matrix[group], windows, result[:, channels])
    return add_bias(result, bias)


def _views(part: torch.Tensor, windows: Windows, height: int, width: int) -> torch.Tensor:
    """View part of a map as windows (n, depth, kernel height and width, height, width)."""
    sample, channel, row, column = part.stride()
    (down, across), (row_step, column_step) = windows.dilation, windows.stride
    strides = sample, channel, row * down, column * across, row * row_step, column * column_step
    return part.as_strided((*part.shape[:2], *windows.kernel, height, width), strides)


def _fill_by_windows(
    maps: Maps, matrix: torch.Tensor, windows: Windows, result: torch.Tensor
) -> None:
    """Fill a result with products of the weights and whole windows, for sums of any length."""
    flat = matrix.reshape(len(matrix), -1)
    terms, width = flat.shape[1], result.shape[3]
    reach = windows.dilation[0] * (windows.kernel[0] - 1) + 1

    def fill(tile: Tile) -> None:
        samples, rows = tile
        num_rows, stride = rows.stop - rows.start, windows.stride[0]
        input_rows = (num_rows - 1) * stride + reach
        part = maps.part(samples, rows.start * stride, input_rows, windows.padding)
        views = _views(part, windows, num_rows, width).movedim(0, 3)
        columns = views.to(torch.float64, memory_format=torch.contiguous_format).view(terms, -1)
        sums = exact_product(flat, columns).view(len(matrix), -1, num_rows, width)
        result[samples, :, rows] = sums.movedim(1, 0)

    spread(fill, tiles(result.shape, 8 * terms * width))


def _fill_by_rows(maps: Maps, matrix: torch.Tensor, windows: Windows, result: torch.Tensor) -> None:
    """Fill a result with sums of products, one product for each row of the kernel."""
    kernel_height, kernel_width = windows.kernel
    depth, width = matrix.shape[1], result.shape[3]
    # (kernel rows, outputs, depth * kernel columns), each kernel row contiguous
    kernel_rows = matrix.view(len(matrix), depth, kernel_height, kernel_width).permute(2, 0, 1, 3)
    kernel_rows = kernel_rows.reshape(kernel_height, len(matrix), -1)
    reach = windows.dilation[0] * (kernel_height - 1)
    row_windows = replace(windows, kernel=(1, kernel_width), padding=(0, 0))

    def fill(tile: Tile) -> None:
        samples, rows = tile
        num_rows = rows.stop - rows.start
        part = maps.part(samples, rows.start, num_rows + reach, windows.padding)
        views = _views(part, row_windows, num_rows + reach, width)[:, :, 0]
        views = views.permute(1, 2, 3, 0, 4)  # depth, kernel columns, rows, samples, width
        columns = views.to(torch.float64, memory_format=torch.contiguous_format)
        columns = columns.view(kernel_rows.shape[2], -1)
        row_columns = views.shape[3] * width
        count = num_rows * row_columns
        sums = kernel_rows[0] @ columns[:, :count]
        for index in range(1, kernel_height):
            start = index * windows.dilation[0] * row_columns
            sums.addmm_(kernel_rows[index], columns[:, start : start + count])
        result[samples, :, rows] = sums.view(len(matrix), num_rows, -1, width).movedim(2, 0)

    spread(fill, tiles(result.shape, 8 * depth * kernel_width * width))
