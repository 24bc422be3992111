"""Regions: the mask of what may change in a picture, and the pixels around it. Needs no torch.

A mask is stored as starts are; white may change. Outside the region every pixel is the parent's.
Near the edge inside, both are mixed in integers, so that every machine gets the same result.

    put_back(painted, parent, inside(recipe.mask, width, height), feather=16)
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Pixels
from seedgrid.storage import starts

Inside = NDArray[np.bool_]
"""Shape (height, width): whether a pixel belongs to the region."""

WHITE: Final = 128


def inside(mask: str, width: int, height: int) -> Inside:
    """Return the region of a stored mask.

    Raises:
        PictureError: `start_missing`.
    """
    return _white(starts.pixels(mask), width, height)


def _white(pixels: Pixels, width: int, height: int) -> Inside:
    """Return the white pixels of a mask, resized to a picture's size."""
    from PIL import Image

    grey = Image.fromarray(pixels).convert("L").resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(grey) >= WHITE


def check_mask(pixels: Pixels, width: int, height: int) -> Pixels:
    """Return a mask as it is stored: of this size, black and white.

    Raises:
        InputError: `mask_empty`, `mask_full`.
    """
    region = _white(pixels, width, height)
    if not region.any():
        raise InputError("mask_empty", field="only")
    if region.all():
        raise InputError("mask_full", field="only")
    return np.where(region[..., None], np.uint8(255), np.uint8(0)).repeat(3, axis=2)


def put_back(painted: Pixels, parent: Pixels, region: Inside, feather: int) -> Pixels:
    """Return the painted picture in the region and the parent outside it.

    Both are mixed in the region's outer `feather` pixels.
    """
    whole = feather + 1
    own = _depths(region, whole)[..., None]  # (height, width, 1), 0 … whole
    mixed = parent.astype(np.int32) * (whole - own) + painted.astype(np.int32) * own
    result: Pixels = ((mixed + whole // 2) // whole).astype(np.uint8)
    return result


def _depths(region: Inside, most: int) -> NDArray[np.int32]:
    """Return each pixel's depth inside the region, 0 outside, at most `most`.

    The picture's own edge does not count as an edge of the region.
    """
    depths = region.astype(np.int32)
    left = region
    for _ in range(most - 1):
        left = _eroded(_eroded(left).T).T
        if not left.any():
            break
        depths += left
    return depths


def _eroded(region: Inside) -> Inside:
    """Remove one row at each upper and lower edge."""
    rows = np.pad(region, ((1, 1), (0, 0)), mode="edge")
    return rows[:-2] & rows[1:-1] & rows[2:]


def in_cells(region: Inside, rows: int, columns: int) -> Inside:
    """Return which cells of a grid over the picture hold any pixel of the region."""
    height, width = region.shape
    tops, lefts = np.arange(rows) * height // rows, np.arange(columns) * width // columns
    cells: Inside = np.logical_or.reduceat(np.logical_or.reduceat(region, tops, 0), lefts, 1)
    return cells
