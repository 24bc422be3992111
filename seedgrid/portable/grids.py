"""Round numbers to a grid so coarse that sums of products of them are exact in any order.

A grid is the whole multiples of a power of two. Its step follows from the largest magnitude, so a
rounded number is a whole number below 2**19 times that step. A product of two is below 2**38, a
sum of 2**15 products below 2**53: float64 holds each partial sum exactly, in whatever order, block
or vector width it is made. Adding and taking away 1.5 * 2**23 steps rounds to the grid, ties to
even, by two IEEE additions. Knows nothing of layers.
"""

from typing import Final

import torch

MAX_TERMS: Final = 1 << 15
"""How many products of two rounded numbers one float64 sum holds exactly."""

SMALLEST: Final = 2.0**-100
"""Magnitudes below count as this one: no grid's step is a subnormal number."""

STEP: Final = 2.0**-18
"""Of a grid, times the power of two below its largest magnitude."""

_EXPONENT_BITS: Final = 0x7F800000
_HALF_GRID: Final = 48.0
_FINE_HALF_GRID: Final = 49152.0  # in float64: steps of 2**-37


def power_below(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the greatest power of two that is not above each magnitude, at least `SMALLEST`.

    Args:
        magnitudes: float32, none negative. Infinity and NaN give infinity.
    """
    bits = magnitudes.contiguous().view(torch.int32) & _EXPONENT_BITS
    return bits.view(torch.float32).clamp_min_(SMALLEST)


def largest(numbers: torch.Tensor, dims: int | tuple[int, ...]) -> torch.Tensor:
    """Return the largest magnitude along dimensions, which are kept with length 1."""
    # In two passes: in one, by `aminmax`, torch is twenty times slower; `abs` needs memory.
    low, high = numbers.amin(dims, keepdim=True), numbers.amax(dims, keepdim=True)
    return torch.maximum(high, low.neg_())


def anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return what to add and take away to round numbers of these magnitudes to their grid.

    Args:
        magnitudes: float32; the largest magnitude of the numbers that share a grid.

    Returns:
        48 times the power of two below, so that a float32 near it has steps of 2**-18 times that
        power; infinity where numbers are not finite, which makes all of them NaN.
    """
    return power_below(magnitudes).mul_(_HALF_GRID)


def fine_anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the anchor of what rounding by `anchor` leaves: float64, steps of 2**-37."""
    return power_below(magnitudes).to(torch.float64).mul_(_FINE_HALF_GRID)


def rounded(numbers: torch.Tensor, anchors: torch.Tensor | float) -> torch.Tensor:
    """Round numbers to the grid of their anchors, of one type; the result is a new tensor."""
    return torch.add(numbers, anchors).sub_(anchors)
