"""Whether a block or a text has viewers turn or mirror a picture. Knows no files and no pixels.

Source: Exif 2.32, 4.6.2 (structure) and 4.6.4 (orientation); XMP specification, part 2, 2.7
"""

from __future__ import annotations

import re
import struct
from typing import Final

_ORIENTATION: Final = 0x0112
_MAX_FIELDS: Final = 1000
_RAW: Final = "Raw profile type "
"""How ImageMagick names blocks that it writes as text: length and hexadecimal digits."""

_BY_XMP: Final = re.compile(
    r"tiff:Orientation\s{0,9}+(?:=\s{0,9}+[\"']|>)\s{0,9}+([^\s\"'<]{0,9}+)"
)
_XMP_KEY: Final = "XML:com.adobe.xmp"


def is_turned(block: bytes) -> bool:
    """Tell whether a block asks for another orientation; one that is damaged may."""
    order = "<" if block.startswith(b"II") else ">"
    try:
        (start,) = struct.unpack_from(f"{order}I", block, 4)
        (count,) = struct.unpack_from(f"{order}H", block, start)
        for place in range(min(count, _MAX_FIELDS)):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", block, start + 2 + place * 12)
            if tag == _ORIENTATION:
                return bool(value != 1)
    except struct.error:
        return True
    return bool(count > _MAX_FIELDS)


def is_turned_by_text(key: str, text: str) -> bool:
    """Tell whether a text of a PNG file asks for another orientation; one that is damaged may."""
    if key == _XMP_KEY:
        return any(found[1] != "1" for found in _BY_XMP.finditer(text))
    if not key.startswith(_RAW):
        return False
    digits = "".join(text.split()[2:])
    try:
        block = bytes.fromhex(digits)
    except ValueError:
        return True
    if key.removeprefix(_RAW) == "xmp":
        return is_turned_by_text(_XMP_KEY, block.decode(errors="replace"))
    is_exif = block.startswith(b"Exif\0\0") or key.removeprefix(_RAW) == "exif"
    return is_exif and is_turned(block.removeprefix(b"Exif\0\0"))
