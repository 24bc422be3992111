"""The one place where a picture that anybody may have made becomes pixels.

A file of some kilobytes may hold a picture of hundreds of megabytes. So it is weighed by what its
head says before it is unpacked: what is heavier than it may be is refused, and heavy ones wait for
each other. Texts, EXIF, XMP and profiles are left out
before Pillow sees a file (metadata.py). Knows nothing of recipes.

    with unpacked(data) as image:
        pixels = as_rgb(image)
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

import numpy as np

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import MAX_SIZE_PX
from seedgrid.core.variables import number
from seedgrid.storage.metadata import JPEG, without_metadata

if TYPE_CHECKING:
    from PIL import Image

_VARIABLE: Final = "SEEDGRID_MAX_UNPACKED_MB"
_BAND_ROWS: Final = 64
_RGB_BYTES: Final = 4
"""Of a pixel, as Pillow keeps it."""
_WEBP_BYTES: Final = 16
"""Of a pixel: two canvases of its decoder, what comes out of them, and the picture."""
_SCANNED_BYTES: Final = 6
"""Of a pixel of a JPEG that comes in several scans: two for each of three colours."""
_FREE_BYTES: Final = MAX_SIZE_PX**2 * _WEBP_BYTES
"""What the largest picture that is painted here may take; nothing so small is refused or waits."""
_SCAN: Final = b"\xff\xda"
_MAX_SCANS: Final = 100
"""Of a JPEG; programs write ten. Each may be some bytes that cost a walk over the whole picture."""


_heavy = threading.Lock()
"""Held while a picture is unpacked that is larger than any that is painted: one at a time."""


@contextmanager
def unpacked(
    data: bytes, formats: tuple[str, ...] = ("PNG",), wanted_px: int | None = None
) -> Iterator[Image.Image]:
    """Open a picture and unpack its pixels; nobody else opens pictures of others.

    Args:
        data: The whole file.
        formats: As Pillow names them; of PNG, JPEG and WEBP.
        wanted_px: No side needs to be longer: a JPEG is unpacked smaller then, by 2, 4 or 8.

    Raises:
        PictureError: `picture_large`, before anything is unpacked.
        OSError, SyntaxError, ValueError, DecompressionBombError: Pillow cannot read it, or it is a
            JPEG that is painted over again and again.
    """
    from PIL import Image, UnidentifiedImageError

    if data.startswith(JPEG) and data.count(_SCAN) > _MAX_SCANS:
        raise UnidentifiedImageError(f"it has more than {_MAX_SCANS} scans")
    with Image.open(io.BytesIO(without_metadata(data)), formats=formats) as image:
        whole = image.size
        if wanted_px is not None:
            image.draft(None, (wanted_px, wanted_px))
        most = (number(_VARIABLE) or math.inf) * 1e6
        weight = _weight(image, whole, data)
        if weight > max(most, _FREE_BYTES):
            value = f"{whole[0]}x{whole[1]}, {weight / 1e6:,.0f} MB"
            raise PictureError("picture_large", value=value, limit=f"{most / 1e6:,.0f} MB")
        with _heavy if weight > _FREE_BYTES else nullcontext():
            yield image


def bands(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Go through a picture by some rows at a time, so that no second whole one is held."""
    for top in range(0, image.height, _BAND_ROWS):
        yield top, image.crop((0, top, image.width, min(top + _BAND_ROWS, image.height)))


def as_rgb(image: Image.Image) -> Pixels:
    """Return a picture's pixels, shape (height, width, 3); transparency is dropped."""
    pixels = np.empty((image.height, image.width, 3), dtype=np.uint8)
    for top, band in bands(image):
        pixels[top : top + band.height] = np.asarray(band.convert("RGB"))
    return pixels


def on_white(image: Image.Image) -> Image.Image:
    """Return a picture as it looks on white paper: RGB; the same one when it is that already."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    opaque = Image.new("RGB", image.size)
    for top, band in bands(image):
        paper = Image.new("RGBA", band.size, "white")
        opaque.paste(Image.alpha_composite(paper, band.convert("RGBA")).convert("RGB"), (0, top))
    return opaque


def _weight(image: Image.Image, whole: tuple[int, int], data: bytes) -> int:
    """Return how many bytes a picture takes unpacked, with the copy that is made of it."""
    num_pixels = image.width * image.height
    if image.format == "WEBP":
        return num_pixels * _WEBP_BYTES
    stored = 1 if image.mode in ("1", "L", "P") else _RGB_BYTES
    copied = 0 if image.mode == "RGB" else _RGB_BYTES
    weight = num_pixels * (stored + copied)
    if image.format != "PNG" and ("progressive" in image.info or data.count(_SCAN) > 1):
        # Its scans are kept until the last one came, however small it is unpacked.
        weight += whole[0] * whole[1] * _SCANNED_BYTES
    return weight
