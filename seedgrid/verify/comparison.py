"""Compare two pictures pixel by pixel: how many differ, by how much, and where.

>>> import numpy as np
>>> black = np.zeros((2, 2, 3), np.uint8)
>>> compare_pixels(black, black).is_identical
True
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.picture import Pixels

_FULL_BRIGHTNESS: Final = 16


@dataclass(frozen=True, kw_only=True)
class Box:
    """The smallest rectangle around all pixels that differ, in pixels from the top left."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far apart two pictures are.

    Attributes:
        psnr_db: Peak signal-to-noise ratio in dB; None, meaning infinite, when they are equal.
    """

    max_abs_diff: int  # The largest difference of a channel, 0 … 255
    psnr_db: float | None
    differing_pixels: int  # Number of pixels that differ in any channel
    num_pixels: int  # Number of pixels
    where: Box | None  # The bounding box of the differing pixels; None if none differ

    @property
    def is_identical(self) -> bool:
        """Whether every bit is equal."""
        return self.max_abs_diff == 0

    @property
    def share(self) -> float:
        """The share of pixels that differ, 0 … 1."""
        return self.differing_pixels / self.num_pixels


def compare_pixels(one: Pixels, other: Pixels) -> Comparison | None:
    """Compare two pictures; None where their sizes differ."""
    if one.shape != other.shape:
        return None
    distance = np.abs(one.astype(np.int16) - other.astype(np.int16))
    differs: NDArray[np.bool_] = np.any(distance, axis=-1)
    mean_square = float(np.square(distance, dtype=np.int32).mean())
    psnr_db = 10 * math.log10(255**2 / mean_square) if mean_square else None
    return Comparison(
        max_abs_diff=int(distance.max(initial=0)),
        psnr_db=None if psnr_db is None else round(psnr_db, 2),
        differing_pixels=int(differs.sum()),
        num_pixels=differs.size,
        where=_box(differs),
    )


def figures_of(comparison: Comparison | None) -> dict[str, Any]:
    """Return what the commands print of a comparison, as JSON; its values are None without one."""
    names = ("max_abs_diff", "psnr_db", "differing_pixels", "where")
    found = asdict(comparison) if comparison else {}
    return {name: found.get(name) for name in names}


def _box(differs: NDArray[np.bool_]) -> Box | None:
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not rows.size:
        return None
    return Box(
        left=int(columns[0]),
        top=int(rows[0]),
        width=int(columns[-1] - columns[0]) + 1,
        height=int(rows[-1] - rows[0]) + 1,
    )


def difference_picture(one: Pixels, other: Pixels) -> Pixels:
    """Show where two pictures of one size differ: black for equal, full from a difference of 16."""
    distance = np.abs(one.astype(np.int16) - other.astype(np.int16))
    brighter: Pixels = (np.minimum(distance, _FULL_BRIGHTNESS) * 255 // _FULL_BRIGHTNESS).astype(
        np.uint8
    )
    return brighter
