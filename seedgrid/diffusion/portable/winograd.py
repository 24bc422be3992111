"""Winograd's way for kernels of three by three: 16 products where there were 36, still exact.

Each tile of two by two results comes from a tile of four by four inputs. Inputs and weights are
transformed by sums of whole multiples of their steps, so with a bound on the weights all sums stay
exact, and the result is the very one of every other way. Where the bound does not hold, or a map is
odd, the other ways serve.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from __future__ import annotations

from typing import Final

import torch

from seedgrid.diffusion.portable.weights import Ready
from seedgrid.diffusion.portable.windows import Maps, Windows, shifts, tiles

MIN_CHANNELS: Final = 96
"""With fewer, the transforms cost more than the products that they save."""

_EXACT: Final = 2.0**53
_INPUT_BOUND: Final = 2.0**21  # four numbers of at most 2**19 steps
_WEIGHT_TRANSFORM: Final = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
_SAME: Final = Windows(kernel=(3, 3), padding=(1, 1))


def transformed_weights(ready: Ready, kernel: tuple[int, int]) -> torch.Tensor | None:
    """Transform weights, if the way can be exact and quick with them.

    Args:
        ready: Balanced and rounded, one group.
        kernel: Height and width.

    Returns:
        float64, shape (16, outputs, inputs), divided by the balance as `ready` is.
    """
    groups, outputs, depth, _ = ready.matrix.shape
    if kernel != (3, 3) or groups != 1 or min(outputs, depth) < MIN_CHANNELS:
        return None
    transform = torch.tensor(_WEIGHT_TRANSFORM, dtype=torch.float64, device=ready.matrix.device)
    taps = ready.matrix.view(outputs, depth, 3, 3)
    # Every product is by 0, 1 or a half, and the sums are of few bits: exact, in any order.
    whole = torch.einsum("ik,ockl,jl->ijoc", transform, taps, transform).reshape(16, outputs, depth)
    quarter_steps = whole.abs().sum((0, 2)) / (ready.steps[0] / 4)
    return whole if bool((quarter_steps * _INPUT_BOUND < _EXACT).all()) else None


def serves(maps: Maps, windows: Windows) -> bool:
    """Tell whether maps of this size can be cut into tiles."""
    return windows == _SAME and not any(size % 2 for size in maps.numbers.shape[2:])


def convolve(maps: Maps, weights: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Convolve exactly, round once, add the bias.

    Args:
        maps: Shape (n, c, h, w), h and w even; their border is of zeros.
        weights: float64, of `transformed_weights`, with the balance multiplied back in.
        bias: float32, shape (outputs,).
    """
    samples, depth, height, width = maps.numbers.shape
    outputs, shift = weights.shape[1], shifts(bias)
    result = torch.empty((samples, outputs, height, width), device=maps.numbers.device)
    shape = torch.Size((samples, outputs, height // 2, width // 2))
    for tile in tiles(shape, 8 * 16 * depth * width // 2):
        top = 2 * tile.top
        part = maps.part(tile.samples, top, 2 * tile.rows + 2, _SAME.padding)
        sums = weights @ _transformed(part.transpose(0, 1)).view(16, depth, -1)
        sums = sums.view(4, 4, outputs, len(part), tile.rows, width // 2)
        whole = result[tile.samples, :, top : top + 2 * tile.rows]
        place = whole.transpose(0, 1)
        for down, line in enumerate(_combined(sums)):
            for across, values in enumerate(_combined(line)):
                place[..., down::2, across::2] = values
        whole.add_(shift)
    return result


def _transformed(inputs: torch.Tensor) -> torch.Tensor:
    """Return float64 (4, 4, c, n, rows, columns): whole steps that float32 still holds exactly."""
    depth, samples, height, width = inputs.shape
    result = torch.empty(
        (4, 4, depth, samples, height // 2 - 1, width // 2 - 1),
        dtype=torch.float64,
        device=inputs.device,
    )
    for down, line in enumerate(_differences(inputs, 2)):
        for across, values in enumerate(_differences(line, 3)):
            result[down, across] = values
    return result


def _differences(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, ...]:
    """Combine every second number and its three followers along a dimension."""
    count = x.shape[dim] // 2 - 1
    first, second, third, fourth = (
        x.narrow(dim, start, 2 * count - 1)[(slice(None),) * dim + (slice(None, None, 2),)]
        for start in range(4)
    )
    return first - third, second + third, third - second, second - fourth


def _combined(sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Combine four numbers to two along the first dimension."""
    first, second, third, fourth = sums
    return (first + second).add_(third), (second - third).sub_(fourth)
