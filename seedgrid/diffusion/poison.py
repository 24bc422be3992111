"""Poisoned neighbours: the rows of a batch that are not the own picture's, made as bad as can be.

A tensor of a batch of W cells has W rows, or 2 W where guidance asks for the words and for their
absence, and row r belongs to cell r % W. Any arithmetic that mixes rows, however little, carries
NaN over; what passes over NaN (a maximum that ignores it, a sorted order, a guard against it) meets
neighbours that are large, as huge as can be, nothing, or of ordinary size and other. Knows no
pipelines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch

Kind = Literal["nan", "large", "other", "huge", "nothing", "ordinary", "near"]
KINDS: Final[tuple[Kind, ...]] = ("nan", "large", "huge", "other", "nothing")
MILD: Final[tuple[Kind, ...]] = ("large", "other", "nothing")
"""What decides otherwise because of a neighbour's size must not meet NaN, which decides nothing."""

FLAT: Final[tuple[Kind, ...]] = ("nothing", "large", "other")
"""Of decoded pictures, which whoever looks at them makes bytes of: the first is one colour."""

WILD: Final[tuple[Kind, ...]] = ("nan", "huge", "large")
"""What needs no comparison: it is seen in the own picture."""

NEAR: Final[tuple[Kind, ...]] = ("near",)
"""Nearly the own picture and a little louder, for whatever looks at likeness or rank."""

_LARGE: Final = 30.0
_LOUDER: Final = 1.0625


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Which rows of a batch belong to whom.

    Attributes:
        width: W, the number of cells.
        own: The cell of the own picture, from 0.
    """

    width: int
    own: int

    @property
    def others(self) -> tuple[int, ...]:
        """All slots but the own one; in a batch of one there is no other."""
        return tuple(slot for slot in range(self.width) if slot != self.own) or (self.own,)

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor has rows for all cells."""
        return tensor.ndim > 0 and tensor.shape[0] > 0 and tensor.shape[0] % self.width == 0

    def own_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the own rows (k, …) of a tensor (k W, …), a copy."""
        return tensor[self.own :: self.width].clone()

    def copies(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor as if every cell were the own one, laid out in memory as it is."""
        result, own = tensor.clone(), self.own_rows(tensor)
        for slot in range(self.width):
            result[slot :: self.width] = own
        return result

    def turned_round(self, tensor: torch.Tensor, kind: Kind = "ordinary") -> torch.Tensor:
        """Return the tensor with a mild neighbour in the own slot; none in a batch of one.

        Its size is the own picture's, so that whoever looks at sizes decides as if it were alone.
        """
        if self.width == 1 or not tensor.is_floating_point() or tensor.ndim < 2:
            return tensor
        result = tensor.clone()
        result[self.own :: self.width] = _bad(self.own_rows(tensor), kind)
        return result

    def moved(self, tensor: torch.Tensor, slots: int) -> torch.Tensor:
        """Return the tensor with every cell that many slots further, round and round."""
        # Laid out in memory as it was: that decides which kernels run.
        result = torch.empty_like(tensor)
        for slot in range(self.width):
            further = (slot + slots) % self.width
            result[further :: self.width] = tensor[slot :: self.width]
        return result

    def poisoned(
        self, tensor: torch.Tensor, turn: int, kinds: Sequence[Kind] = KINDS
    ) -> torch.Tensor:
        """Return the tensor (k W, …) with neighbours of all kinds; another kind in each turn."""
        if not tensor.is_floating_point() or tensor.ndim < 2:
            return tensor.clone()
        result = tensor.clone()
        own = self.own_rows(tensor)
        for distance in range(1, self.width):
            neighbour = (self.own + distance) % self.width
            bad = _bad(own, kinds[(distance - 1 + turn) % len(kinds)])
            result[neighbour :: self.width] = bad
        return result

    def in_other_slots(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the rows (k, slots, …) of all slots but the own one."""
        return tensor.reshape(-1, self.width, *tensor.shape[1:])[:, list(self.others)]

    def differing(self, own: torch.Tensor, alone: torch.Tensor) -> torch.Tensor:
        """Return which values of the own rows differ from what came out in any other slot.

        Args:
            own: Out of a batch with neighbours, (k, …).
            alone: Of a batch that is the own picture in all slots but this one, (k W, …).
        """
        expected = self.in_other_slots(alone)
        mine = own.unsqueeze(1)
        # NaN is a value like any other here: a picture may be NaN all by itself.
        both_nan = mine.isnan() & expected.isnan() if own.is_floating_point() else False
        return (mine != expected) & ~torch.as_tensor(both_nan)


ALONE: Final = Batch(width=1, own=0)
"""Own rows, compared with own rows."""


def _bad(own: torch.Tensor, kind: Kind) -> torch.Tensor:
    match kind:
        case "nan":
            return torch.full_like(own, torch.nan)
        case "large":
            return own.flip(-1) * -_LARGE + _LARGE
        case "other":
            return own.flip(-1) * 0.9 + 0.1
        case "huge":
            return torch.full_like(own, torch.finfo(own.dtype).max)
        case "nothing":
            return torch.zeros_like(own)
        case "ordinary":
            return own.roll(1, -1)
        case "near":
            return own * _LOUDER


def mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a value of any nesting with its tensors changed; an output of diffusers is a dict."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        parts = {name: mapped(item, change) for name, item in value.items()}
        return parts if type(value) is dict else type(value)(**parts)
    if isinstance(value, tuple | list):
        return type(value)(mapped(item, change) for item in value)
    return value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a value of any nesting, in order."""
    found: list[torch.Tensor] = []
    mapped(value, found.append)
    return found


def is_finite(value: Any) -> bool:
    """Tell whether all numbers of a value of any nesting are numbers, and finite."""
    numbers = (tensor for tensor in tensors_in(value) if tensor.is_floating_point())
    return all(bool(torch.isfinite(tensor).all()) for tensor in numbers)
