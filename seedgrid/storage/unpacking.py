"""The one place where a picture that anybody may have made becomes pixels.

A file of some kilobytes may hold a picture of hundreds of megabytes. So it is weighed by what its
head says before it is unpacked: what is heavier than everything may be together is refused, and
what would be too much beside others waits for them. Texts, EXIF, XMP and profiles are left out
before Pillow sees a file: it would unpack them, however large. Knows nothing of recipes.

    with unpacked(data) as image:
        pixels = as_rgb(image)

Source: PNG 3, 5.3; JPEG, ITU-T T.81, B.1; WebP, RFC 9649, 2.3; Exif 2.32, 4.6.2
"""

from __future__ import annotations

import io
import math
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import MAX_SIZE_PX
from seedgrid.core.variables import is_public, number

if TYPE_CHECKING:
    from PIL import Image

MAX_METADATA_BYTES: Final = 256 * 1024
"""All texts of a file together, unpacked, and its EXIF data: no more is read."""

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
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_SCAN: Final = b"\xff\xda"
_EXIF_MARK: Final = b"Exif\0\0"
_PNG_PIXELS: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
_WEBP_PIXELS: Final = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_WEBP_FLAGS: Final = 0b0001_0010
"""Of those in VP8X: that there is transparency, and an animation."""
_JPEG_METADATA: Final = {*range(0xE1, 0xEE), 0xEF, 0xFE}
"""Application data but JFIF's and Adobe's, which say what the numbers mean; and comments."""
_MAX_PARTS: Final = 10_000
_MAX_FIELDS: Final = 1000
_ORIENTATION: Final = 0x0112
_MAX_SCANS: Final = 100
"""Of a JPEG; programs write ten. Each may be some bytes that cost a walk over the whole picture."""


class _Room:
    """How much is unpacked at the moment."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bytes = 0

    @contextmanager
    def taken(self, num_bytes: int, most: float) -> Iterator[None]:
        """Wait until there is room, and keep it meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes + num_bytes <= most)
            self._bytes += num_bytes
        try:
            yield
        finally:
            with self._changed:
                self._bytes -= num_bytes
                self._changed.notify_all()


_room = _Room()


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

    if data.startswith(_JPEG) and data.count(_SCAN) > _MAX_SCANS:
        raise UnidentifiedImageError(f"it has more than {_MAX_SCANS} scans")
    with Image.open(io.BytesIO(_without_metadata(data)), formats=formats) as image:
        whole = image.size
        if wanted_px is not None:
            image.draft(None, (wanted_px, wanted_px))
        most = (number(_VARIABLE, is_public=is_public()) or math.inf) * 1e6
        weight = _weight(image, whole, data)
        if weight > max(most, _FREE_BYTES):
            value = f"{whole[0]}x{whole[1]}, {weight / 1e6:,.0f} MB"
            raise PictureError("picture_large", value=value, limit=f"{most / 1e6:,.0f} MB")
        with _room.taken(weight if weight > _FREE_BYTES else 0, most):
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


def upright(image: Image.Image, data: bytes) -> Image.Image:
    """Return a picture as its file's EXIF data have it turned."""
    from PIL.Image import Transpose

    how = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }.get(_orientation(exif_block(data) or b""))
    return image if how is None else image.transpose(how)


def exif_block(data: bytes) -> bytes | None:
    """Return the first EXIF block of a PNG, JPEG or WebP file; None for one above 256 KB.

    Returns:
        A TIFF structure, without what JPEG puts before it; nothing where there is none.
    """
    for part in _parts(data):
        block = data[part.data : part.data + len(_EXIF_MARK)]
        is_exif = part.kind in (b"eXIf", b"EXIF") or (part.kind == b"\xe1" and block == _EXIF_MARK)
        if is_exif:
            start = part.data + (len(_EXIF_MARK) if block == _EXIF_MARK else 0)
            return (
                data[start : part.data_end] if part.data_end - start <= MAX_METADATA_BYTES else None
            )
    return b""


def _orientation(block: bytes) -> int:
    """Read the orientation from an EXIF block: 1 … 8, and 1 where it says nothing that is one."""
    order = "<" if block.startswith(b"II") else ">"
    try:
        (start,) = struct.unpack_from(f"{order}I", block, 4)
        (count,) = struct.unpack_from(f"{order}H", block, start)
        for place in range(start + 2, start + 2 + 12 * min(count, _MAX_FIELDS), 12):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", block, place)
            if tag == _ORIENTATION:
                return block[place + 8] if kind == 1 else int(value)
    except struct.error:
        pass  # A damaged block turns nothing.
    return 1


@dataclass(frozen=True)
class _Part:
    """A part of a file: its kind, its first byte, the first byte of its data, and their ends."""

    kind: bytes
    start: int
    data: int
    data_end: int
    end: int


def _without_metadata(data: bytes) -> bytes:
    """Return a file with its pixels and what they mean, and nothing else."""
    whole = memoryview(data)
    if data.startswith(_PNG):
        head = [_PNG]
        parts = [part for part in _parts(data) if _is_of_png_pixels(part)]
    elif data.startswith(_JPEG):
        head = []
        parts = [part for part in _parts(data) if part.kind[0] not in _JPEG_METADATA]
    elif _is_webp(data):
        return _webp_without_metadata(data)
    else:
        return data
    return b"".join([*head, *(whole[part.start : part.end] for part in parts)])


def _is_of_png_pixels(part: _Part) -> bool:
    is_header = part.start == len(_PNG)
    return part.kind in _PNG_PIXELS and (part.kind == b"IHDR") == is_header


def _webp_without_metadata(data: bytes) -> bytes:
    pieces = [b"WEBP"]
    for part in _parts(data):
        piece = data[part.start : part.end]
        if part.kind == b"VP8X":
            flags = bytes([piece[8] & _WEBP_FLAGS]) if len(piece) > 8 else b""
            piece = piece[:8] + flags + piece[9:]
        if part.kind in _WEBP_PIXELS:
            pieces.append(piece)
    return b"RIFF" + struct.pack("<I", sum(map(len, pieces))) + b"".join(pieces)


def _parts(data: bytes) -> Iterator[_Part]:
    """Go through the parts of a file, not through more than 10,000."""
    if data.startswith(_JPEG):
        yield from _jpeg_parts(data)
        return
    is_png = data.startswith(_PNG)
    order, head, tail = (">", 8, 4) if is_png else ("<", 8, 0)
    place = len(_PNG) if is_png else 12
    for _ in range(_MAX_PARTS):
        if place + head > len(data):
            return
        (length,) = struct.unpack_from(f"{order}I", data, place if is_png else place + 4)
        kind = data[place + 4 : place + 8] if is_png else data[place : place + 4]
        end = place + head + length
        after = end + tail if is_png else end + length % 2
        yield _Part(kind, place, place + head, min(end, len(data)), min(after, len(data)))
        place = after


def _jpeg_parts(data: bytes) -> Iterator[_Part]:
    """Go through what stands before the pixels of a JPEG; the last part is all that follows.

    Of a damaged file that last part is left out, so that nothing is unpacked.
    """
    yield _Part(b"\xd8", 0, 2, 2, 2)
    place = 2
    for _ in range(_MAX_PARTS):
        while data[place : place + 2] == b"\xff\xff":
            place += 1  # Any marker may be preceded by such bytes.
        kind = data[place + 1 : place + 2]
        if data[place : place + 1] != b"\xff" or not kind or place + 4 > len(data):
            return
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if kind == b"\xda":
            yield _Part(kind, place, place + 4, len(data), len(data))
            return
        yield _Part(kind, place, place + 4, min(end, len(data)), min(end, len(data)))
        place = max(end, place + 4)


def is_photo(data: bytes) -> bool:
    """Tell whether a file is a JPEG or a WebP."""
    return data.startswith(_JPEG) or _is_webp(data)


def _is_webp(data: bytes) -> bool:
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"


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
