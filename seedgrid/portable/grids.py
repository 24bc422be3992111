"""Round numbers and weights to grids so coarse that sums of their products are exact in any order.

A grid is the set of whole multiples of its step, a power of two that follows from the largest
magnitude among the numbers; a rounded number is at most 2**19 steps. A product of two is at most
2**38, and a sum of 2**15 products at most 2**53, times the product of the steps. So float64 holds
every partial sum exactly, whatever the order, the blocks or the vector width. To round a number,
its grid's anchor, 1.5 * 2**23 steps, is added in float32 and subtracted again; ties go to even.
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import torch

MAX_TERMS: Final = 1 << 15  # How many products of two rounded numbers one float64 sum holds exactly
_MIN_POWER: Final = 2.0**-100  # Lower magnitudes count as this, so no step is a subnormal number
# These three are to be multiplied by the power of two below the largest magnitude:
_STEP: Final = 2.0**-18
_ANCHOR: Final = 48.0  # Float32 numbers near it are multiples of 2**-18
_FINE_ANCHOR: Final = 49152.0  # Float64 numbers near it are multiples of 2**-37
_EXPONENT_BITS: Final = 0x7F800000
_MAX_KEPT_BYTES: Final = 384 * 1024**2  # Of a WeightCache
_LARGE: Final = 1 << 19  # Numbers in a matrix that is worth storing as float32
_BALANCE_LIMITS: Final = (2.0**-60, 2.0**20)  # Of `PreparedWeights.balance`


def power_below(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the greatest power of two up to each magnitude, at least 2**-100; inf for NaN."""
    bits = magnitudes.contiguous().view(torch.int32) & _EXPONENT_BITS
    return bits.view(torch.float32).clamp_min_(_MIN_POWER)


def largest(numbers: torch.Tensor, dims: int | tuple[int, ...]) -> torch.Tensor:
    """Return the largest magnitude along dimensions, which remain with length 1."""
    # Two passes, because `aminmax` is twenty times slower, and `abs` makes a copy.
    low, high = numbers.amin(dims, keepdim=True), numbers.amax(dims, keepdim=True)
    return torch.maximum(high, low.neg_())


def anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the anchors of the grids of numbers with these largest magnitudes.

    The anchor is infinite if a magnitude is not finite; rounding then makes all numbers NaN.
    """
    return power_below(magnitudes).mul_(_ANCHOR)


def fine_anchor(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the float64 anchors of finer grids, for what remains after rounding by `anchor`."""
    return power_below(magnitudes).to(torch.float64).mul_(_FINE_ANCHOR)


def rounded(numbers: torch.Tensor, anchors: torch.Tensor | float) -> torch.Tensor:
    """Round numbers to the grid of their anchors; a new tensor of the same type."""
    return torch.add(numbers, anchors).sub_(anchors)


@dataclass(frozen=True, kw_only=True)
class PreparedWeights:
    """Weights on their grids, balanced between input channels.

    Each input channel is multiplied by a power of two that follows from its weights, and the
    weights are divided by it, both exactly. So a channel with large inputs and small weights does
    not make the other channels' grid coarser.
    """

    balance: torch.Tensor  # The channels' powers of two: float32, (groups, inputs)
    # (groups, outputs, inputs, taps), divided by the balance: float64, or float32 after `narrow`.
    # For convolutions, which do not balance inputs, it is multiplied by the balance again.
    matrix: torch.Tensor
    steps: torch.Tensor  # Of the outputs' grids: float64, (groups, outputs)
    is_transformed: bool = False  # Whether `matrix` is Winograd's, of shape (16, inputs, outputs)


def prepare_weights(weights: torch.Tensor) -> PreparedWeights:
    """Balance and round float32 weights of shape (groups, outputs, inputs, taps)."""
    balance = power_below(largest(weights, (1, 3))).clamp_(*_BALANCE_LIMITS)
    balanced = weights / balance
    magnitudes = largest(balanced, (2, 3))
    return PreparedWeights(
        balance=balance.flatten(1),
        matrix=rounded(balanced, anchor(magnitudes)).to(torch.float64),
        steps=(power_below(magnitudes) * _STEP).flatten(1).to(torch.float64),
    )


def narrow(matrix: torch.Tensor) -> torch.Tensor:
    """Return a large float64 matrix as float32 if that is exact; converting back is quick."""
    if matrix.numel() < _LARGE:
        return matrix
    short = matrix.to(torch.float32)
    return short if torch.equal(short.to(torch.float64), matrix) else matrix


class WeightCache:
    """Prepared weights of existing parameters, up to a number of bytes; more are not stored."""

    def __init__(self, max_bytes: int = _MAX_KEPT_BYTES) -> None:
        self._entries: dict[int, tuple[Hashable, PreparedWeights, int]] = {}
        self._num_bytes = 0
        self._max_bytes = max_bytes

    def get(
        self, weights: torch.Tensor, make: Callable[[], PreparedWeights], form: Hashable = ""
    ) -> PreparedWeights:
        """Return prepared weights; a `Parameter`'s are made again only if it or `form` changed."""
        if not isinstance(weights, torch.nn.Parameter):
            return make()
        state = (weights.data_ptr(), weights._version, form)
        entry = self._entries.get(id(weights))
        if entry is not None and entry[0] == state:
            return entry[1]
        self._forget(id(weights))
        prepared = make()
        num_bytes = prepared.matrix.nbytes
        if self._num_bytes + num_bytes <= self._max_bytes:
            if entry is None:
                weakref.finalize(weights, self._forget, id(weights))
            self._entries[id(weights)] = (state, prepared, num_bytes)
            self._num_bytes += num_bytes
        return prepared

    def _forget(self, key: int) -> None:
        _, _, num_bytes = self._entries.pop(key, (None, None, 0))
        self._num_bytes -= num_bytes


CACHE: Final = WeightCache()  # Of the whole process
