"""Compare two pictures pixel by pixel: how many differ, by how much, and where.

>>> import numpy as np
>>> black = np.zeros((2, 2, 3), np.uint8)
>>> compare_pixels(black, black).is_identical
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from seedgrid.core.picture import Pixels

CLOSE_MAX_DIFFERENCE: Final = 4
"""The largest difference, of 255, of two pictures that are called close."""

CLOSE_PSNR_DB: Final = 45.0
"""How alike they must be on the whole. Other threads, instructions or kernels stay within both;
another number format, seed or word does not (docs/log.md)."""

_VISIBLE: Final = 16


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far apart two pictures are.

    Attributes:
        max_abs_diff: Of any colour of any pixel, 0 … 255.
        psnr_db: Peak signal-to-noise ratio in dB; None, meaning infinite, when they are equal.
        differing_pixels: How many pixels differ in any colour.
    """

    max_abs_diff: int
    psnr_db: float | None
    differing_pixels: int

    @property
    def is_identical(self) -> bool:
        """Whether every bit is equal."""
        return self.max_abs_diff == 0

    @property
    def is_close(self) -> bool:
        """Whether the difference is what rounding in another order makes."""
        alike = self.psnr_db is None or self.psnr_db >= CLOSE_PSNR_DB
        return alike and self.max_abs_diff <= CLOSE_MAX_DIFFERENCE


def compare_pixels(one: Pixels, other: Pixels) -> Comparison | None:
    """Compare two pictures.

    Args:
        one: RGB, shape (height, width, 3), uint8.
        other: The same.

    Returns:
        The comparison, or None when their sizes differ.
    """
    if one.shape != other.shape:
        return None
    distance = np.abs(one.astype(np.int16) - other.astype(np.int16))
    mean_square = float(np.square(distance, dtype=np.int32).mean())
    psnr_db = 10 * math.log10(255**2 / mean_square) if mean_square else None
    return Comparison(
        max_abs_diff=int(distance.max(initial=0)),
        psnr_db=None if psnr_db is None else round(psnr_db, 2),
        differing_pixels=int(distance.any(axis=-1).sum()),
    )


def difference_picture(one: Pixels, other: Pixels) -> Pixels:
    """Show where two pictures of one size differ; a difference of 16 is as bright as it gets."""
    distance = np.abs(one.astype(np.int16) - other.astype(np.int16))
    brighter: Pixels = np.minimum(distance * (255 // _VISIBLE), 255).astype(np.uint8)
    return brighter
