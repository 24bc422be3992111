"""Decodes untrusted pictures, with a limit of memory.

A file of some kilobytes can hold a picture of hundreds of megabytes. The header is used to estimate
the memory: above a limit a picture is refused, large pictures are decoded one at a time.
Texts, EXIF, XMP and profiles are removed before Pillow, which would unpack any size, reads a PNG,
JPEG or WebP; only the EXIF orientation is read here.

Source: PNG 3, 5.3; JPEG, ITU-T T.81, B.1; WebP, RFC 9649, 2.3; Exif 2.32, 4.6.2
"""

from __future__ import annotations

import io
import math
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import MAX_SIZE_PX
from seedgrid.core.variables import megabytes

if TYPE_CHECKING:
    from PIL import Image

MAX_METADATA_BYTES: Final = 256 * 1024  # Of all texts of a file, unpacked, and of its EXIF data

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_EXIF_MARK: Final = b"Exif\0\0"
_PNG_PIXELS: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
_WEBP_PIXELS: Final = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_WEBP_FLAGS: Final = 0b0001_0010  # Flags of VP8X that stay set: transparency, animation
_JPEG_METADATA: Final = {*range(0xE1, 0xEE), 0xEF, 0xFE}
"""Removed: comments and application data; JFIF's and Adobe's, which declare colours, stay."""
_MAX_PARTS: Final = 10_000
_MAX_FIELDS: Final = 1000
_BYTE_ORDERS: Final = {b"II*\0": "<", b"MM\0*": ">"}
# Bytes of an EXIF field's kind: a byte, text, short, long, undefined, pointer
_FIELD_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 7: 1, 13: 4}
_ORIENTATION, _SUB_BLOCK = 0x0112, 0x8769
_TRANSPOSED: Final = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # `Transpose` by orientation

_VARIABLE: Final = "SEEDGRID_MAX_UNPACKED_MB"
_BAND_ROWS: Final = 64
_RGB_BYTES: Final = 4  # Bytes of a pixel in Pillow
_WEBP_BYTES: Final = 16  # Per pixel: two canvases of the decoder, its result, the picture
_SCANNED_BYTES: Final = 6  # Bytes of a pixel of a progressive JPEG: two for each of three channels
# The limit and the lock apply only to pictures that take more
_SMALL_BYTES: Final = MAX_SIZE_PX**2 * _WEBP_BYTES
_SCAN: Final = b"\xff\xda"
_MAX_SCANS: Final = 100  # Of a JPEG; programs write ten, and each is a pass over the picture

_large_picture_lock = threading.Lock()  # Held while a picture above `_SMALL_BYTES` is decoded


@contextmanager
def unpacked(
    data: bytes, formats: tuple[str, ...] = ("PNG",), wanted_px: int | None = None
) -> Iterator[Image.Image]:
    """Open an untrusted picture with Pillow, within the limit of memory.

    `formats` are PNG, JPEG or WEBP; a JPEG is reduced by 2, 4 or 8 while decoding to `wanted_px`,
    the longest side that is needed. Raises `picture_large` before anything is decoded; OSError,
    SyntaxError, ValueError, DecompressionBombError: unreadable, or a JPEG with too many scans.
    """
    from PIL import Image, UnidentifiedImageError

    data = _without_metadata(data)  # Also a camera's thumbnail, which has a scan of its own
    if data.startswith(_JPEG) and data.count(_SCAN) > _MAX_SCANS:
        raise UnidentifiedImageError(f"it has more than {_MAX_SCANS} scans")
    with Image.open(io.BytesIO(data), formats=formats) as image:
        full_size = image.size
        if wanted_px is not None:
            image.draft(None, (wanted_px, wanted_px))
        limit = megabytes(_VARIABLE) or math.inf
        num_bytes = _decoding_bytes(image, full_size, data)
        if num_bytes > max(limit, _SMALL_BYTES):
            value = f"{full_size[0]}x{full_size[1]}, {num_bytes / 1e6:,.0f} MB"
            raise PictureError("picture_large", value=value, limit=f"{limit / 1e6:,.0f} MB")
        with _large_picture_lock if num_bytes > _SMALL_BYTES else nullcontext():
            yield image


def _decoding_bytes(image: Image.Image, full_size: tuple[int, int], data: bytes) -> int:
    """Return the bytes of memory that decoding and copying a picture take."""
    num_pixels = image.width * image.height
    if image.format == "WEBP":
        return num_pixels * _WEBP_BYTES
    stored = 1 if image.mode in ("1", "L", "P") else _RGB_BYTES
    copied = 0 if image.mode == "RGB" else _RGB_BYTES
    num_bytes = num_pixels * (stored + copied)
    if image.format != "PNG" and ("progressive" in image.info or data.count(_SCAN) > 1):
        # The scans stay in memory until the last one, whatever the reduction.
        num_bytes += full_size[0] * full_size[1] * _SCANNED_BYTES
    return num_bytes


def _bands(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Yield bands of a picture's rows, each with its top, so that only a band is copied."""
    from PIL import Image

    for top in range(0, image.height, _BAND_ROWS):
        band = image.crop((0, top, image.width, min(top + _BAND_ROWS, image.height)))
        if band.mode.startswith("I"):  # 16 bits of grey, of which Pillow would clip all above 255
            band = Image.fromarray((np.asarray(band) >> 8).astype(np.uint8))
        yield top, band


def as_rgb(image: Image.Image) -> Pixels:
    """Return a picture's pixels, shape (height, width, 3); transparency is dropped."""
    pixels = np.empty((image.height, image.width, 3), dtype=np.uint8)
    for top, band in _bands(image):
        pixels[top : top + band.height] = np.asarray(band.convert("RGB"))
    return pixels


def on_paper(image: Image.Image, colour: str) -> Image.Image:
    """Return a picture as RGB on a background of this colour; unchanged if it is RGB."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    opaque = Image.new("RGB", image.size)
    for top, band in _bands(image):
        paper = Image.new("RGBA", band.size, colour)
        opaque.paste(Image.alpha_composite(paper, band.convert("RGBA")).convert("RGB"), (0, top))
    return opaque


def upright(image: Image.Image, data: bytes) -> Image.Image:
    """Return a picture rotated and mirrored as its file's EXIF data say."""
    from PIL.Image import Transpose

    method = _TRANSPOSED.get(_orientation(exif_block(data) or b""))
    return image if method is None else image.transpose(Transpose(method))


def exif_block(data: bytes) -> bytes | None:
    """Return the first EXIF block of a file, empty if there is none; None above 256 KB."""
    for part in _parts(data):
        has_mark = data.startswith(_EXIF_MARK, part.data)
        if part.kind in (b"eXIf", b"EXIF") or (part.kind == b"\xe1" and has_mark):
            start = part.data + (len(_EXIF_MARK) if has_mark else 0)
            is_small = part.data_end - start <= MAX_METADATA_BYTES
            return data[start : part.data_end] if is_small else None
    return b""


def exif_fields(block: bytes, wanted: Collection[int]) -> dict[int, bytes]:
    """Return an EXIF block's values by tag, its sub-block's before its own; repeats are skipped.

    Pillow reads EXIF without limits: fields that point at the same bytes make 300 copies of them
    (600 MB from a 2 MB file). Raises ValueError or struct.error: the block is damaged, or its
    values take above 256 KB.
    """
    order = _BYTE_ORDERS.get(block[:4])
    if order is None:
        raise ValueError("no byte order")
    (start,) = struct.unpack_from(f"{order}I", block, 4)
    fields = _fields(block, order, start, {*wanted, _SUB_BLOCK})
    if len(inner := fields.pop(_SUB_BLOCK, b"")) == 4:
        (start,) = struct.unpack(f"{order}I", inner)
        fields |= _fields(block, order, start, wanted)
    return fields


def _fields(block: bytes, order: str, offset: int, wanted: Collection[int]) -> dict[int, bytes]:
    (count,) = struct.unpack_from(f"{order}H", block, offset)
    fields: dict[int, bytes] = {}
    for start in range(offset + 2, offset + 2 + 12 * min(count, _MAX_FIELDS), 12):
        tag, kind, length, at = struct.unpack_from(f"{order}HHII", block, start)
        if tag not in wanted or tag in fields:
            continue
        size = length * _FIELD_SIZES.get(kind, 0)
        at = start + 8 if size <= 4 else at
        if at + size > len(block):
            raise ValueError("a field leads out of the block")
        if sum(map(len, fields.values()), size) > MAX_METADATA_BYTES:
            raise ValueError("too much text")
        fields[tag] = block[at : at + size]
    return fields


def _orientation(block: bytes) -> int:
    """Read the orientation from an EXIF block, unchecked; 1 if it has none or is damaged."""
    try:
        value = exif_fields(block, {_ORIENTATION}).get(_ORIENTATION, b"")
    except (struct.error, ValueError):
        return 1
    return int.from_bytes(value, "little" if block.startswith(b"II") else "big") or 1


class _Part(NamedTuple):
    """A chunk or segment of a file, by the positions of its bytes."""

    kind: bytes
    start: int
    data: int  # Its first byte after kind and length
    data_end: int
    end: int  # With checksum or padding


def _without_metadata(data: bytes) -> bytes:
    """Return a file without the parts that decoding its pixels does not need."""
    whole, parts = memoryview(data), _parts(data)
    if data.startswith(_JPEG):
        pixels = [part for part in parts if part.kind[0] not in _JPEG_METADATA]
        return b"".join(whole[part.start : part.end] for part in pixels)
    if data.startswith(_PNG):
        first = len(_PNG)
        pixels = [part for part in parts if part.kind in _PNG_PIXELS]
        pixels = [part for part in pixels if (part.kind == b"IHDR") == (part.start == first)]
        return b"".join([_PNG, *(whole[part.start : part.end] for part in pixels)])
    if not _is_webp(data):
        return data
    pieces = [b"WEBP"]
    for part in (part for part in parts if part.kind in _WEBP_PIXELS):
        piece = data[part.start : part.end]
        if part.kind == b"VP8X" and len(piece) > 8:
            piece = piece[:8] + bytes([piece[8] & _WEBP_FLAGS]) + piece[9:]
        pieces.append(piece)
    return b"RIFF" + struct.pack("<I", sum(map(len, pieces))) + b"".join(pieces)


def _parts(data: bytes) -> Iterator[_Part]:
    """Yield the chunks or segments of a file, at most 10,000."""
    if data.startswith(_JPEG):
        yield from _jpeg_parts(data)
        return
    is_png = data.startswith(_PNG)
    place = len(_PNG) if is_png else 12
    for _ in range(_MAX_PARTS):
        if place + 8 > len(data):
            return
        if is_png:
            length, kind = struct.unpack_from(">I4s", data, place)
        else:
            kind, length = struct.unpack_from("<4sI", data, place)
        end = place + 8 + length
        after = end + 4 if is_png else end + length % 2
        yield _Part(kind, place, place + 8, min(end, len(data)), min(after, len(data)))
        place = after


def _jpeg_parts(data: bytes) -> Iterator[_Part]:
    """Yield a JPEG's segments, from the first scan on as one; stop where the file is damaged."""
    yield _Part(b"\xd8", 0, 2, 2, 2)
    place = 2
    for _ in range(_MAX_PARTS):
        while data[place : place + 2] == b"\xff\xff":
            place += 1  # Fill bytes may precede any marker.
        kind = data[place + 1 : place + 2]
        if data[place : place + 1] != b"\xff" or not kind or place + 4 > len(data):
            return
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        is_last = kind == b"\xda"
        ends = len(data) if is_last else min(end, len(data))
        yield _Part(kind, place, place + 4, ends, ends)
        if is_last:
            return
        place = max(end, place + 4)


def is_photo(data: bytes) -> bool:
    """Tell whether a file is a JPEG or a WebP."""
    return data.startswith(_JPEG) or _is_webp(data)


def _is_webp(data: bytes) -> bool:
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"
