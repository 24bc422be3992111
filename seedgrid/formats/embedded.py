"""Blocks inside a PNG file, EXIF, XMP and profiles: as chunks, or as ImageMagick writes them.

It writes a block as a text, "Raw profile type exif", with its length and hexadecimal digits; the
name is read in capitals or not. Knows nothing of what a block means.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from seedgrid.formats import png_chunks
from seedgrid.formats.png_chunks import Chunk

EXIF_HEAD: Final = b"Exif\0\0"

_RAW: Final = "raw profile type "
_XMP_KEY: Final = "XML:com.adobe.xmp"
_COLOURS: Final = frozenset({"icc", "icm"})
_LETTER: Final = re.compile(r"&#(?:x0{0,6}([0-9a-fA-F]{2})|0{0,6}([0-9]{2,3}));")
_UNPARSED: Final = re.compile(r"<!\[CDATA\[|\]\]>")


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """What lies in a file beside its pixels.

    Attributes:
        exif: TIFF blocks, without what a camera puts before them.
        packets: Of XMP, and other blocks that may hold one; their letters and digits plain.
        has_raw_colours: Whether a profile of colours is there as text.
        is_damaged: Whether the digits of one are none.
    """

    exif: tuple[bytes, ...]
    packets: tuple[str, ...]
    has_raw_colours: bool
    is_damaged: bool


def read_blocks(chunks: Iterable[Chunk]) -> Blocks:
    """Find the blocks of a file."""
    chunks = tuple(chunks)
    texts = png_chunks.all_texts(chunks)
    packets = [text for key, text in texts if key == _XMP_KEY]
    exif = [chunk.data for chunk in chunks if chunk.kind == b"eXIf"]
    raw = [(key.lower().removeprefix(_RAW), _block(text)) for key, text in texts if _is_raw(key)]
    for name, block in raw:
        if block is not None and (name == "exif" or block.startswith(EXIF_HEAD)):
            exif.append(block)
        elif block is not None:
            packets.append(block.decode(errors="replace"))
    return Blocks(
        exif=tuple(block.removeprefix(EXIF_HEAD) for block in exif),
        packets=tuple(map(_plain, packets)),
        has_raw_colours=any(name in _COLOURS for name, _ in raw),
        is_damaged=any(block is None for _, block in raw),
    )


def _plain(packet: str) -> str:
    """Write letters and digits as XML's readers see them; what marks elements stays as it is."""

    def letter(found: re.Match[str]) -> str:
        sign = chr(int(found[1], 16) if found[1] else int(found[2]))
        return sign if sign.isalnum() else found[0]

    return _LETTER.sub(letter, _UNPARSED.sub("", packet))


def _is_raw(key: str) -> bool:
    return key.lower().startswith(_RAW)


def _block(text: str) -> bytes | None:
    """Return what a text holds behind its name and its length; None when it is no such text."""
    try:
        return bytes.fromhex("".join(text.split()[2:]))
    except ValueError:
        return None
