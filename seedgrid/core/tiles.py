"""Tiles: how a picture is cut so that an upscaler network takes no more memory for a larger one.

What a network makes of a tile depends on what is around it, so each is read with a margin, which
is cut off afterwards. Where the cuts are belongs to the picture: these numbers never change.

    >>> [(tile.left, tile.right) for tile in cut(300, 100)]
    [(0, 128), (128, 256), (256, 300)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TILE_PX: Final = 128
MARGIN_PX: Final = 16


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A part of a picture, in pixels from its left upper corner; the end is not in it."""

    left: int
    top: int
    right: int
    bottom: int

    def with_margin(self, width: int, height: int) -> Tile:
        """Return it with as much of what is around it as the picture has."""
        return Tile(
            left=max(0, self.left - MARGIN_PX),
            top=max(0, self.top - MARGIN_PX),
            right=min(width, self.right + MARGIN_PX),
            bottom=min(height, self.bottom + MARGIN_PX),
        )


def cut(width: int, height: int) -> tuple[Tile, ...]:
    """Return the tiles of a picture, row by row."""
    return tuple(
        Tile(
            left=left, top=top, right=min(left + TILE_PX, width), bottom=min(top + TILE_PX, height)
        )
        for top in range(0, height, TILE_PX)
        for left in range(0, width, TILE_PX)
    )
