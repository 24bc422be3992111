"""Round numbers, and weights, to grids so coarse that sums of products are exact in any order.

A grid is the whole multiples of a power of two, the step, which follows from the largest magnitude:
a rounded number is a whole number below 2**19 steps. A product of two is below 2**38, a sum of
2**15 products below 2**53: float64 holds each partial sum exactly, in any order, block or vector
width. Adding and subtracting 1.5 * 2**23 steps rounds to the grid, ties to even.
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import torch

MAX_TERMS: Final = 1 << 15  # How many products of two rounded numbers one float64 sum holds exactly
SMALLEST: Final = 2.0**-100  # Lower magnitudes count as this one: no step is a subnormal number
STEP: Final = 2.0**-18  # Of a grid, times the power of two below its largest magnitude
_EXPONENT_BITS: Final = 0x7F800000
_HALF_GRID: Final = 48.0
_FINE_HALF_GRID: Final = 49152.0  # in float64: steps of 2**-37
MAX_KEPT_BYTES: Final = 384 * 1024**2
_LARGE: Final = 1 << 19  # Numbers in a matrix that is worth compacting
_BALANCE_LIMITS: Final = (2.0**-60, 2.0**20)


def power_below(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the greatest power of two up to each magnitude, at least `SMALLEST`; NaN gives inf."""
    bits = magnitudes.contiguous().view(torch.int32) & _EXPONENT_BITS
    return bits.view(torch.float32).clamp_min_(SMALLEST)


def largest(numbers: torch.Tensor, dims: int | tuple[int, ...]) -> torch.Tensor:
    """Return the largest magnitude along dimensions, which are kept with length 1."""
    # In two passes: in one, by `aminmax`, torch is twenty times slower; `abs` needs memory.
    low, high = numbers.amin(dims, keepdim=True), numbers.amax(dims, keepdim=True)
    return torch.maximum(high, low.neg_())


def anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return what to add and subtract to round to the grid of these largest magnitudes.

    A float32 near 48 times the power of two below has steps of 2**-18 times that power. Infinity,
    which makes all numbers NaN, if a magnitude is not finite.
    """
    return power_below(magnitudes).mul_(_HALF_GRID)


def fine_anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the anchor for the rest after rounding by `anchor`: float64, steps of 2**-37."""
    return power_below(magnitudes).to(torch.float64).mul_(_FINE_HALF_GRID)


def rounded(numbers: torch.Tensor, anchors: torch.Tensor | float) -> torch.Tensor:
    """Round numbers to the grid of their anchors; a new tensor of the same type."""
    return torch.add(numbers, anchors).sub_(anchors)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Weights on their grids, balanced between input channels.

    Each input channel is multiplied by a power of two that follows from its weights, and these are
    divided by it, exactly: a channel with large inputs and small weights coarsens no other's grid.
    """

    balance: torch.Tensor  # float32 powers of two, (groups, inputs), that multiply inputs
    # float64, shape (groups, outputs, inputs, taps), divided by the balance; a prepared one may be
    # `compact`, or hold the balance again
    matrix: torch.Tensor
    steps: torch.Tensor  # float64, shape (groups, outputs): of each output's grid
    is_transformed: bool = False  # Whether `matrix` is Winograd's, shape (16, inputs, outputs)


def make_ready(weights: torch.Tensor) -> Ready:
    """Balance and round float32 weights, shape (groups, outputs, inputs, taps)."""
    balance = power_below(largest(weights, (1, 3))).clamp_(*_BALANCE_LIMITS)
    balanced = weights / balance
    magnitudes = largest(balanced, (2, 3))
    return Ready(
        balance=balance.flatten(1),
        matrix=rounded(balanced, anchor(magnitudes)).to(torch.float64),
        steps=(power_below(magnitudes) * STEP).flatten(1).to(torch.float64),
    )


def compact(matrix: torch.Tensor) -> torch.Tensor:
    """Return a large float64 matrix as float32 if exact; widening costs a tenth of `make_ready`."""
    if matrix.numel() < _LARGE:
        return matrix
    short = matrix.to(torch.float32)
    return short if torch.equal(short.to(torch.float64), matrix) else matrix


class WeightCache:
    """Ready weights of living parameters, up to a number of bytes; others are made at each use."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._kept: dict[int, tuple[Hashable, Ready, int]] = {}
        self._num_bytes = 0
        self._max_bytes = max_bytes

    def get(self, owner: torch.Tensor, make: Callable[[], Ready], form: Hashable = "") -> Ready:
        """Return a `Parameter`'s ready weights in their last form; `make` them for any other."""
        if not isinstance(owner, torch.nn.Parameter):
            return make()
        state = (owner.data_ptr(), owner._version, form)
        kept = self._kept.get(id(owner))
        if kept is not None and kept[0] == state:
            return kept[1]
        self._forget(id(owner))
        ready = make()
        size = ready.matrix.numel() * ready.matrix.element_size()
        if self._num_bytes + size <= self._max_bytes:
            if kept is None:
                weakref.finalize(owner, self._forget, id(owner))
            self._kept[id(owner)] = (state, ready, size)
            self._num_bytes += size
        return ready

    def _forget(self, key: int) -> None:
        _, _, size = self._kept.pop(key, (None, None, 0))
        self._num_bytes -= size


CACHE: Final = WeightCache()  # Of the whole process; weights leave it with their parameter
