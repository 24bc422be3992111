"""Exact convolutions of numbers on grids: as one matrix product over all windows, in tiles.

The windows of some rows of the output are written side by side as the columns of a float64 matrix,
which the weights are multiplied with. The tile's size changes the speed only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from seedgrid.diffusion.portable.grids import MAX_TERMS

TILE_BYTES: Final = 1 << 21
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


def convolve(maps: torch.Tensor, matrix: torch.Tensor, windows: Windows) -> torch.Tensor:
    """Convolve numbers on grids, exactly, and round once.

    Args:
        maps: float32, shape (n, c, h, w), contiguous.
        matrix: float64, shape (groups, outputs, c / groups * taps).
        windows: The kernel's walk.

    Returns:
        float32, shape (n, groups * outputs, …).
    """
    groups, outputs, _ = matrix.shape
    height, width = windows.output(*maps.shape[2:])
    result = torch.empty(
        len(maps), groups, outputs, height, width, dtype=torch.float32, device=maps.device
    )
    views = _window_views(maps, groups, windows)
    for group in range(groups):
        _multiply(views[:, group], matrix[group], result[:, group])
    return result.flatten(1, 2)


def _window_views(maps: torch.Tensor, groups: int, windows: Windows) -> torch.Tensor:
    """View maps as (n, groups, c / groups, kernel, kernel, height, width), without copying."""
    down, across = windows.padding
    if down or across:
        maps = torch.nn.functional.pad(maps, (across, across, down, down))
    height, width = (
        (length - dilation * (kernel - 1) - 1) // stride + 1
        for length, dilation, kernel, stride in zip(
            maps.shape[2:], windows.dilation, windows.kernel, windows.stride, strict=True
        )
    )
    sample, channel, row, column = maps.stride()
    depth = maps.shape[1] // groups
    return maps.as_strided(
        (len(maps), groups, depth, *windows.kernel, height, width),
        (
            sample,
            depth * channel,
            channel,
            row * windows.dilation[0],
            column * windows.dilation[1],
            row * windows.stride[0],
            column * windows.stride[1],
        ),
    )


def _multiply(views: torch.Tensor, matrix: torch.Tensor, result: torch.Tensor) -> None:
    """Fill result (n, outputs, h, w) from views (n, depth, kernel, kernel, h, w), tile by tile."""
    samples, depth, *kernel, height, width = views.shape
    terms = matrix.shape[1]
    fitting = max(1, TILE_BYTES // (8 * terms))  # columns of a tile
    rows = min(height, max(1, fitting // width))
    together = min(samples, max(1, fitting // (rows * width))) if rows == height else 1
    for first in range(0, samples, together):
        for top in range(0, height, rows):
            part = views[first : first + together, ..., top : top + rows, :]
            place = result[first : first + together, :, top : top + rows]
            columns = torch.empty(
                (depth, *kernel, len(part), *part.shape[-2:]),
                dtype=torch.float64,
                device=views.device,
            )
            columns.copy_(part.movedim(0, 3))
            sums = _sums(matrix, columns.view(terms, -1))
            place.copy_(sums.view(-1, len(part), *part.shape[-2:]).movedim(1, 0))


def _sums(matrix: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Multiply; sums of more than `MAX_TERMS` terms are added up block by block, in order."""
    total = matrix[:, :MAX_TERMS] @ columns[:MAX_TERMS]
    for start in range(MAX_TERMS, len(columns), MAX_TERMS):
        block = slice(start, start + MAX_TERMS)
        total += matrix[:, block] @ columns[block]
    return total
