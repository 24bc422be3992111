"""Decodes untrusted pictures, with a limit of memory.

A file of some kilobytes can hold a picture of hundreds of megabytes. The memory is estimated from
the header: pictures above the limit are refused, and large ones are decoded one at a time. Texts,
EXIF, XMP and profiles are removed before Pillow reads a file (metadata.py).

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
"""Bytes of a pixel in Pillow."""
_WEBP_BYTES: Final = 16
"""Bytes of a pixel: two canvases of the decoder, their result, and the picture."""
_SCANNED_BYTES: Final = 6
"""Bytes of a pixel of a progressive JPEG: two for each of three channels."""
_FREE_BYTES: Final = MAX_SIZE_PX**2 * _WEBP_BYTES
"""Memory of the largest picture that SeedGrid paints; anything below is neither refused nor
delayed."""
_SCAN: Final = b"\xff\xda"
_MAX_SCANS: Final = 100
"""Limit of a JPEG's scans; programs write ten. Each scan costs a pass over the whole picture."""


_heavy = threading.Lock()
"""Held while a larger picture is decoded: one at a time."""


@contextmanager
def unpacked(
    data: bytes, formats: tuple[str, ...] = ("PNG",), wanted_px: int | None = None
) -> Iterator[Image.Image]:
    """Open an untrusted picture with Pillow, within the limit of memory.

    Args:
        data: The whole file.
        formats: As Pillow names them; of PNG, JPEG and WEBP.
        wanted_px: The longest side that is needed: a JPEG is reduced by 2, 4 or 8 while decoding.

    Raises:
        PictureError: `picture_large`, before anything is decoded.
        OSError, SyntaxError, ValueError, DecompressionBombError: Pillow cannot read it, or it is a
            JPEG with too many scans.
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
    """Yield a picture in bands of rows, so that no second copy is in memory."""
    for top in range(0, image.height, _BAND_ROWS):
        yield top, image.crop((0, top, image.width, min(top + _BAND_ROWS, image.height)))


def as_rgb(image: Image.Image) -> Pixels:
    """Return a picture's pixels, shape (height, width, 3); transparency is dropped."""
    pixels = np.empty((image.height, image.width, 3), dtype=np.uint8)
    for top, band in bands(image):
        pixels[top : top + band.height] = np.asarray(band.convert("RGB"))
    return pixels


def on_white(image: Image.Image) -> Image.Image:
    """Return a picture as RGB on a white background; unchanged if it is RGB."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    opaque = Image.new("RGB", image.size)
    for top, band in bands(image):
        paper = Image.new("RGBA", band.size, "white")
        opaque.paste(Image.alpha_composite(paper, band.convert("RGBA")).convert("RGB"), (0, top))
    return opaque


def _weight(image: Image.Image, whole: tuple[int, int], data: bytes) -> int:
    """Return the bytes of memory that decoding and copying a picture take."""
    num_pixels = image.width * image.height
    if image.format == "WEBP":
        return num_pixels * _WEBP_BYTES
    stored = 1 if image.mode in ("1", "L", "P") else _RGB_BYTES
    copied = 0 if image.mode == "RGB" else _RGB_BYTES
    weight = num_pixels * (stored + copied)
    if image.format != "PNG" and ("progressive" in image.info or data.count(_SCAN) > 1):
        # The scans stay in memory until the last one, whatever the reduction.
        weight += whole[0] * whole[1] * _SCANNED_BYTES
    return weight
