"""Poisoned neighbours: the rows of a batch that are not the own picture's, made as bad as can be.

A tensor of a batch of W cells has W rows, or 2 W where guidance asks for the words and for their
absence, and row r belongs to cell r % W. Arithmetic that mixes rows, however little, carries NaN
into the own ones; code that passes over NaN meets huge neighbours, ordinary ones of the own
picture's size, and near ones, which are the own picture a little louder. Knows no pipelines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch

Kind = Literal["nan", "huge", "ordinary", "near"]
WILD: Final[tuple[Kind, ...]] = ("nan", "huge")
MILD: Final[tuple[Kind, ...]] = ("near", "ordinary")

_HUGE_POWER: Final = 0.4
"""The largest number of a format to this power: its square is finite, and so is a sum of those."""
_LOUDER: Final = 1.0625


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Which rows of a batch are the own ones, and what the others are made of.

    Attributes:
        width: W, the number of cells.
        own: The cell of the own picture, from 0.
        kinds: Of the neighbours, in turn.
        pace: After how many calls of a part each neighbour becomes of the next kind.
    """

    width: int
    own: int
    kinds: tuple[Kind, ...]
    pace: int = 1

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor has rows for all cells."""
        return tensor.ndim > 0 and tensor.shape[0] > 0 and tensor.shape[0] % self.width == 0

    def own_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the own rows (k, …) of a tensor (k W, …), a copy."""
        return tensor[self.own :: self.width].clone()

    def poisoned(self, tensor: torch.Tensor, turn: int, kinds: Sequence[Kind] = ()) -> torch.Tensor:
        """Return a tensor (k W, …) with poisoned neighbours, a copy laid out in memory alike.

        Args:
            tensor: One that is no floating-point matrix or more is only copied.
            turn: The number of the call, from 0.
            kinds: In place of the batch's own.
        """
        result = tensor.clone()
        if not tensor.is_floating_point() or tensor.ndim < 2:
            return result
        kinds, own = kinds or self.kinds, self.own_rows(tensor)
        for distance in range(1, self.width):
            neighbour = (self.own - distance) % self.width
            kind = kinds[(distance - 1 + turn // self.pace) % len(kinds)]
            result[neighbour :: self.width] = _bad(own, kind)
        return result


def _bad(own: torch.Tensor, kind: Kind) -> torch.Tensor:
    match kind:
        case "nan":
            return torch.full_like(own, torch.nan)
        case "huge":
            largest: float = torch.finfo(own.dtype).max
            return own.flip(-1).mul(-(largest**_HUGE_POWER))
        case "ordinary":
            return own.roll(1, -1)
        case "near":
            return own.mul(_LOUDER)


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
