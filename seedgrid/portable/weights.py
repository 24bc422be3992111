"""Weights made ready for contractions: balanced between input channels, rounded, widened.

Each input channel is multiplied by a power of two that its weights give, and the weights are
divided by it: both exact. What a channel contributes is then what its magnitude says, so one loud
channel with quiet weights does not coarsen the grid of all others.

A model's weights are made ready once and kept while there is room; without, anew at each use.
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, cast

import torch

from seedgrid.portable.grids import STEP, anchor, largest, power_below, rounded

MAX_KEPT_BYTES: Final = 384 * 1024**2
_LARGE: Final = 1 << 19
"""Numbers in a matrix. Smaller ones are soon widened too, but more often for their work."""

_BALANCE_LIMITS: Final = (2.0**-60, 2.0**20)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A weight matrix on its grids.

    Attributes:
        balance: float32 powers of two, shape (groups, inputs): what input channels are to be
            multiplied by.
        matrix: float64, shape (groups, outputs, inputs, taps): rounded while divided by the
            balance.
        steps: float64, shape (groups, outputs): of each output's grid.
    """

    balance: torch.Tensor
    matrix: torch.Tensor
    steps: torch.Tensor


def make_ready(weights: torch.Tensor) -> Ready:
    """Balance and round weights.

    Args:
        weights: float32, shape (groups, outputs, inputs, taps).
    """
    balance = power_below(largest(weights, (1, 3))).clamp_(*_BALANCE_LIMITS)
    balanced = weights / balance
    magnitudes = largest(balanced, (2, 3))
    return Ready(
        balance=balance.flatten(1),
        matrix=rounded(balanced, anchor(magnitudes)).to(torch.float64),
        steps=(power_below(magnitudes) * STEP).flatten(1).to(torch.float64),
    )


def compact(matrix: torch.Tensor) -> torch.Tensor:
    """Return a large float64 matrix as float32, if that holds it exactly; half of the memory.

    It is to be widened for each use, which costs a tenth of making it ready anew.
    """
    if matrix.numel() < _LARGE:
        return matrix
    short = matrix.to(torch.float32)
    return short if torch.equal(short.to(torch.float64), matrix) else matrix


Prepared = TypeVar("Prepared", bound="HasMatrix")


class HasMatrix(Protocol):
    """Something made of weights, most of which is one matrix."""

    @property
    def matrix(self) -> torch.Tensor:
        """Its numbers."""


class WeightCache:
    """Ready weights of living parameters, up to a number of bytes."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._kept: dict[int, tuple[Hashable, object, int]] = {}
        self._num_bytes = 0
        self._max_bytes = max_bytes

    def get(
        self, owner: torch.Tensor, make: Callable[[], Prepared], form: Hashable = ""
    ) -> Prepared:
        """Return what was made of a parameter, or make it.

        Args:
            owner: The weights. Only a `Parameter` is known to live on, so only those are kept.
            make: Makes them ready.
            form: What `make` makes of them; of one parameter only the last form is kept.
        """
        if not isinstance(owner, torch.nn.Parameter):
            return make()
        state = (owner.data_ptr(), owner._version, form)
        found = self._kept.get(id(owner))
        if found is not None and found[0] == state:
            return cast("Prepared", found[1])
        self._forget(id(owner))
        ready = make()
        size = ready.matrix.numel() * ready.matrix.element_size()
        if self._num_bytes + size <= self._max_bytes:
            if found is None:
                weakref.finalize(owner, self._forget, id(owner))
            self._kept[id(owner)] = (state, ready, size)
            self._num_bytes += size
        return ready

    def _forget(self, key: int) -> None:
        _, _, size = self._kept.pop(key, (None, None, 0))
        self._num_bytes -= size


CACHE: Final = WeightCache()
"""Of the whole process; it holds nothing that its parameter has outlived."""
