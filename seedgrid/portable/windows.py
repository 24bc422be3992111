"""Exact convolutions of numbers on grids, as matrix products over windows, in tiles.

Windows are the columns of a float64 matrix, with which the weights are multiplied. With a vertical
stride of 1 only windows along a row are written, and each row of the kernel is multiplied with
them, moved by a row: a third of the writing. The way and the size of a tile change the speed only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import torch

from seedgrid.portable.contraction import exact_product
from seedgrid.portable.grids import MAX_TERMS
from seedgrid.portable.threads import cuts, spread

_TILE_BYTES: Final = 1 << 21  # Of a tile's windows: it should stay in the cache until multiplied

Tile = tuple[slice, slice]  # Some samples of a result, and some rows of them


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The geometry of a convolution; each pair is vertical, horizontal."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of the result."""
        return (self._steps(height, 0), self._steps(width, 1))

    def _steps(self, length: int, axis: int) -> int:
        reach = self.dilation[axis] * (self.kernel[axis] - 1)
        return (length + 2 * self.padding[axis] - reach - 1) // self.stride[axis] + 1


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Feature maps that are rounded to their grids a piece at a time, in the processor's cache."""

    numbers: torch.Tensor  # float32, shape (n, c, h, w), contiguous
    anchors: torch.Tensor  # Of their grids, shape (n, c, 1, 1)

    def channels(self, some: slice) -> Maps:
        """Return some of the channels."""
        return Maps(numbers=self.numbers[:, some], anchors=self.anchors[:, some])

    def part(self, samples: slice, top: int, rows: int, padding: tuple[int, int]) -> torch.Tensor:
        """Return rounded rows of some samples: float32, (samples, c, rows, w + 2 * padding[1]).

        `top` counts from the border's first row; `padding` is zeros above/below, left/right.
        """
        down, across = padding
        numbers, anchors = self.numbers[samples], self.anchors[samples]
        count, depth, height, width = numbers.shape
        part = numbers.new_empty(count, depth, rows, width + 2 * across)
        first, last = max(top - down, 0), min(top - down + rows, height)
        start, end = first + down - top, last + down - top
        for border in (part[:, :, :start], part[:, :, end:]):
            border.zero_()
        if across:
            part[..., :across].zero_()
            part[..., -across:].zero_()
        inner = part[:, :, start:end, across : across + width]
        torch.add(numbers[:, :, first:last], anchors, out=inner).sub_(anchors)
        return part


def tiles(shape: torch.Size, bytes_a_row: int, least_bytes: int = 0) -> list[Tile]:
    """Cut a result (n, outputs, height, width) into tiles of about `_TILE_BYTES`.

    A sample's row takes `bytes_a_row`; `least_bytes` is more where weights should be read rarely.
    """
    samples, _, height, _ = shape
    tile_bytes = max(_TILE_BYTES, least_bytes)
    rows = min(height, max(1, tile_bytes // bytes_a_row))
    together = max(1, tile_bytes // (bytes_a_row * rows)) if rows == height else 1
    return list(
        product(
            cuts(samples, together, -(-least_bytes // (bytes_a_row * height))),
            cuts(height, rows, -(-least_bytes // bytes_a_row)),
        )
    )


def convolve(
    maps: Maps, matrix: torch.Tensor, bias: torch.Tensor | None, windows: Windows
) -> torch.Tensor:
    """Convolve exactly, round once, add the bias; return float32, (n, groups * outputs, …).

    `maps` are (n, c, h, w), `matrix` float64 on grids, (groups, outputs, c / groups, taps), `bias`
    float32, (groups * outputs,).
    """
    groups, outputs, depth, _ = matrix.shape
    samples, _, *size = maps.numbers.shape
    shape = (samples, groups * outputs, *windows.output(*size))
    result = torch.empty(shape, dtype=torch.float32, device=maps.numbers.device)
    in_rows = windows.stride[0] == 1 and depth * windows.kernel[1] <= MAX_TERMS
    way = _by_rows if in_rows and matrix[0, 0].numel() <= MAX_TERMS else _by_windows
    for group in range(groups):
        inputs = maps.channels(slice(group * depth, (group + 1) * depth))
        place = slice(group * outputs, (group + 1) * outputs)
        way(inputs, matrix[group], windows, result[:, place])
    return result.add_(shifts(bias))


def shifts(bias: torch.Tensor | None) -> torch.Tensor | float:
    """Return the bias of each output, shape (outputs, 1, 1); never -0."""
    return 0.0 if bias is None else (bias + 0.0).view(-1, 1, 1)


def _views(part: torch.Tensor, windows: Windows, height: int, width: int) -> torch.Tensor:
    """View a part as (n, depth, kernel, kernel, height, width) windows, without copying."""
    sample, channel, row, column = part.stride()
    (down, across), (row_step, column_step) = windows.dilation, windows.stride
    strides = sample, channel, row * down, column * across, row * row_step, column * column_step
    return part.as_strided((*part.shape[:2], *windows.kernel, height, width), strides)


def _by_windows(maps: Maps, matrix: torch.Tensor, windows: Windows, result: torch.Tensor) -> None:
    """Fill a result from whole windows; sums that are too long are added block by block."""
    flat = matrix.reshape(len(matrix), -1)
    terms, width = flat.shape[1], result.shape[3]
    reach = windows.dilation[0] * (windows.kernel[0] - 1) + 1

    def fill(tile: Tile) -> None:
        samples, lines = tile
        count, stride = lines.stop - lines.start, windows.stride[0]
        rows = (count - 1) * stride + reach
        part = maps.part(samples, lines.start * stride, rows, windows.padding)
        views = _views(part, windows, count, width).movedim(0, 3)
        columns = views.to(torch.float64, memory_format=torch.contiguous_format).view(terms, -1)
        sums = exact_product(flat, columns).view(len(matrix), -1, count, width)
        result[samples, :, lines] = sums.movedim(1, 0)

    spread(fill, tiles(result.shape, 8 * terms * width))


def _by_rows(maps: Maps, matrix: torch.Tensor, windows: Windows, result: torch.Tensor) -> None:
    """Fill a result from windows along rows, one product for each row of the kernel."""
    height, across = windows.kernel
    depth, width = matrix.shape[1], result.shape[3]
    # (kernel rows, outputs, depth * kernel columns), each part contiguous
    parts = matrix.view(len(matrix), depth, height, across).permute(2, 0, 1, 3)
    parts = parts.reshape(height, len(matrix), -1)
    reach = windows.dilation[0] * (height - 1)
    along = Windows(kernel=(1, across), stride=windows.stride, dilation=windows.dilation)

    def fill(tile: Tile) -> None:
        samples, lines = tile
        num_rows = lines.stop - lines.start
        part = maps.part(samples, lines.start, num_rows + reach, windows.padding)
        views = _views(part, along, num_rows + reach, width)[:, :, 0]
        rows = views.permute(1, 2, 3, 0, 4)  # depth, kernel columns, rows, samples, width
        columns = rows.to(torch.float64, memory_format=torch.contiguous_format)
        columns = columns.view(parts.shape[2], -1)
        step = rows.shape[3] * width
        count = num_rows * step
        sums = parts[0] @ columns[:, :count]
        for line in range(1, height):
            start = line * windows.dilation[0] * step
            sums.addmm_(parts[line], columns[:, start : start + count])
        result[samples, :, lines] = sums.view(len(matrix), num_rows, -1, width).movedim(2, 0)

    spread(fill, tiles(result.shape, 8 * depth * across * width))
