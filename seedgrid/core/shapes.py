"""Shapes: the sizes in which a model paints well, as ratios to click.

Each has about as many pixels as the model was made for, and sides that the model takes.

    [shape.text for shape in shapes(card)]   # ['256x256', '312x208', …]
"""

import math
from dataclasses import dataclass
from typing import Final

from seedgrid.core.card import ModelCard
from seedgrid.core.recipe import MAX_SIZE_PX, MIN_SIZE_PX

RATIOS: Final = ((1, 1), (3, 2), (2, 3), (16, 9), (9, 16))
"""Width to height."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A size to click.

    Attributes:
        ratio: As people say it, `"3:2"`; empty for the model's own where it is none of these.
        width: In pixels.
        height: In pixels.
        is_own: Whether the model was made for this size.
    """

    ratio: str
    width: int
    height: int
    is_own: bool

    @property
    def text(self) -> str:
        """As the size's field has it."""
        return f"{self.width}x{self.height}"


def shapes(card: ModelCard) -> tuple[Shape, ...]:
    """Return the shapes that a model can paint, its own first, and no other if that is fixed."""
    own = (card.width, card.height)
    name = next((_name(ratio) for ratio in RATIOS if ratio[0] * own[1] == ratio[1] * own[0]), "")
    found = {own: Shape(ratio=name, width=own[0], height=own[1], is_own=True)}
    for ratio in () if card.fixed_size else RATIOS:
        size = _fitted(ratio, card)
        if _name(ratio) != name and size not in found:
            found[size] = Shape(ratio=_name(ratio), width=size[0], height=size[1], is_own=False)
    return tuple(found.values())


def _fitted(ratio: tuple[int, int], card: ModelCard) -> tuple[int, int]:
    """Return the size of a ratio with about as many pixels as the model's own."""
    unit = math.sqrt(card.width * card.height / (ratio[0] * ratio[1]))
    unit = min(unit, MAX_SIZE_PX / max(ratio))
    width, height = (rounded_side(side * unit, card.size_multiple) for side in ratio)
    return width, height


def rounded_side(side: float, multiple: int) -> int:
    """Return the next side that a model takes, within what a recipe may have."""
    low = math.ceil(MIN_SIZE_PX / multiple)
    return min(max(round(side / multiple), low), MAX_SIZE_PX // multiple) * multiple


def _name(ratio: tuple[int, int]) -> str:
    return f"{ratio[0]}:{ratio[1]}"
