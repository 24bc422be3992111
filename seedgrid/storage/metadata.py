"""What a picture's file holds beside its pixels: left out, or read within bounds.

Pillow would unpack texts, EXIF, XMP and profiles, however large they are, and adds up blocks one by
one. So what it is given is the pixels and what they mean; the one thing that is obeyed, how a
photograph is turned, is read here. Knows PNG, JPEG and WebP, and decodes no pixels.

Source: PNG 3, 5.3; JPEG, ITU-T T.81, B.1; WebP, RFC 9649, 2.3; Exif 2.32, 4.6.2
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL import Image

MAX_METADATA_BYTES: Final = 256 * 1024
"""All texts of a file together, unpacked, and its EXIF data: no more is read."""

PNG: Final = b"\x89PNG\r\n\x1a\n"
JPEG: Final = b"\xff\xd8\xff"
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


def without_metadata(data: bytes) -> bytes:
    """Return a file with its pixels and what they mean, and nothing else."""
    whole = memoryview(data)
    if data.startswith(PNG):
        head = [PNG]
        parts = [part for part in _parts(data) if _is_of_png_pixels(part)]
    elif data.startswith(JPEG):
        head = []
        parts = [part for part in _parts(data) if part.kind[0] not in _JPEG_METADATA]
    elif _is_webp(data):
        return _webp_without_metadata(data)
    else:
        return data
    return b"".join([*head, *(whole[part.start : part.end] for part in parts)])


def _is_of_png_pixels(part: _Part) -> bool:
    is_header = part.start == len(PNG)
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
    if data.startswith(JPEG):
        yield from _jpeg_parts(data)
        return
    is_png = data.startswith(PNG)
    order, head, tail = (">", 8, 4) if is_png else ("<", 8, 0)
    place = len(PNG) if is_png else 12
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
    """Yield the parts before the pixels of a JPEG; the last part is the rest of the file.

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
    return data.startswith(JPEG) or _is_webp(data)


def _is_webp(data: bytes) -> bool:
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"
