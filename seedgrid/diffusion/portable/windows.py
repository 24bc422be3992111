"""Exact convolutions of numbers on grids, as matrix products over windows, in tiles.

Windows are written side by side as the columns of a float64 matrix, which the weights are
multiplied with. Where rows follow each other closely, only windows along a row are written, and
each row of the kernel is multiplied with them, moved by a row: a third of the writing. The way and
the size of a tile change the speed only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

from seedgrid.diffusion.portable.grids import MAX_TERMS

TILE_BYTES: Final = 1 << 22
"""Of a tile's windows: it should stay in the processor's cache until it is multiplied."""


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How a kernel walks over a map; each pair is vertical, horizontal."""

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
class Tile:
    """Some rows of some samples of a result."""

    samples: slice
    top: int
    rows: int


def padded(maps: torch.Tensor, windows: Windows) -> torch.Tensor:
    """Return maps with their border of zeros."""
    down, across = windows.padding
    if not down and not across:
        return maps
    return torch.nn.functional.pad(maps, (across, across, down, down))


def tiles(shape: torch.Size, bytes_a_row: int) -> Iterator[Tile]:
    """Cut a result into tiles of about `TILE_BYTES`.

    Args:
        shape: (n, outputs, height, width).
        bytes_a_row: What the windows of one row of one sample take.
    """
    samples, _, height, _ = shape
    rows = min(height, max(1, TILE_BYTES // bytes_a_row))
    together = max(1, TILE_BYTES // (bytes_a_row * rows)) if rows == height else 1
    for first in range(0, samples, together):
        for top in range(0, height, rows):
            some = slice(first, min(first + together, samples))
            yield Tile(samples=some, top=top, rows=min(rows, height - top))


def convolve(maps: torch.Tensor, matrix: torch.Tensor, windows: Windows) -> torch.Tensor:
    """Convolve numbers on grids, exactly, and round once.

    Args:
        maps: float32, shape (n, c, h, w), contiguous.
        matrix: float64, shape (groups, outputs, c / groups, taps).
        windows: The kernel's walk.

    Returns:
        float32, shape (n, groups * outputs, …).
    """
    groups, outputs, depth, _ = matrix.shape
    height, width = windows.output(*maps.shape[2:])
    shape = (len(maps), groups * outputs, height, width)
    result = torch.empty(shape, dtype=torch.float32, device=maps.device)
    bordered = padded(maps, windows)
    in_rows = windows.stride[0] == 1 and depth * windows.kernel[1] <= MAX_TERMS
    way = _by_rows if in_rows and matrix[0, 0].numel() <= MAX_TERMS else _by_windows
    for group in range(groups):
        inputs = slice(group * depth, (group + 1) * depth)
        place = slice(group * outputs, (group + 1) * outputs)
        way(bordered[:, inputs], matrix[group], windows, result[:, place])
    return result


def _views(maps: torch.Tensor, windows: Windows, height: int, width: int) -> torch.Tensor:
    """View maps as (n, depth, kernel, kernel, height, width) windows, without copying."""
    sample, channel, row, column = maps.stride()
    return maps.as_strided(
        (*maps.shape[:2], *windows.kernel, height, width),
        (
            sample,
            channel,
            row * windows.dilation[0],
            column * windows.dilation[1],
            row * windows.stride[0],
            column * windows.stride[1],
        ),
        maps.storage_offset(),
    )


def _place(sums: torch.Tensor, result: torch.Tensor, tile: Tile) -> None:
    """Round sums (outputs, samples * rows * width) to float32, where they belong."""
    place = result[tile.samples, :, tile.top : tile.top + tile.rows]
    samples, outputs, rows, width = place.shape
    place.copy_(sums.view(outputs, samples, rows, width).movedim(1, 0))


def _by_windows(
    maps: torch.Tensor, matrix: torch.Tensor, windows: Windows, result: torch.Tensor
) -> None:
    """Fill a result from whole windows; sums that are too long are added block by block."""
    views = _views(maps, windows, *result.shape[2:])
    flat = matrix.reshape(len(matrix), -1)
    terms = flat.shape[1]
    for tile in tiles(result.shape, 8 * terms * result.shape[3]):
        part = views[tile.samples, ..., tile.top : tile.top + tile.rows, :].movedim(0, 3)
        columns = torch.empty(part.shape, dtype=torch.float64, device=maps.device).copy_(part)
        columns = columns.view(terms, -1)
        sums = flat[:, :MAX_TERMS] @ columns[:MAX_TERMS]
        for start in range(MAX_TERMS, terms, MAX_TERMS):
            block = slice(start, start + MAX_TERMS)
            sums += flat[:, block] @ columns[block]
        _place(sums, result, tile)


def _by_rows(
    maps: torch.Tensor, matrix: torch.Tensor, windows: Windows, result: torch.Tensor
) -> None:
    """Fill a result from windows along rows, one product for each row of the kernel."""
    height, across = windows.kernel
    depth, width = maps.shape[1], result.shape[3]
    # (kernel rows, outputs, depth * kernel columns), each part contiguous
    parts = matrix.view(len(matrix), depth, height, across).permute(2, 0, 1, 3)
    parts = parts.reshape(height, len(matrix), -1)
    reach = windows.dilation[0] * (height - 1)
    along = Windows(
        kernel=(1, across), stride=windows.stride, dilation=windows.dilation, padding=(0, 0)
    )
    views = _views(maps, along, maps.shape[2], width)[:, :, 0]
    for tile in tiles(result.shape, 8 * depth * across * width):
        some = views[tile.samples, ..., tile.top : tile.top + tile.rows + reach, :]
        rows = some.permute(1, 2, 3, 0, 4)  # depth, kernel columns, rows, samples, width
        columns = torch.empty(rows.shape, dtype=torch.float64, device=maps.device).copy_(rows)
        columns = columns.view(parts.shape[2], -1)
        step = rows.shape[3] * width
        count = tile.rows * step
        sums = parts[0] @ columns[:, :count]
        for line in range(1, height):
            start = line * windows.dilation[0] * step
            sums.addmm_(parts[line], columns[:, start : start + count])
        ordered = sums.view(len(matrix), tile.rows, -1, width).movedim(2, 0)
        result[tile.samples, :, tile.top : tile.top + tile.rows].copy_(ordered)
