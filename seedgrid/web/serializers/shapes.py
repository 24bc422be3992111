"""The shapes that a model takes, as the scripts of the page are told of them."""

from __future__ import annotations

from typing import Any

from seedgrid.core.card import ModelCard
from seedgrid.core.shapes import shapes


def shapes_of(card: ModelCard) -> list[dict[str, Any]]:
    """Return what is drawn to click; the model's own first."""
    return [
        {
            "ratio": shape.ratio,
            "width": shape.width,
            "height": shape.height,
            "size": shape.text,
            "own": shape.is_own,
        }
        for shape in shapes(card)
    ]
