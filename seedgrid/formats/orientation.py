"""Whether an EXIF block has viewers turn or mirror a picture. Knows no files and no pixels.

Source: Exif 2.32, 4.6.2 (structure) and 4.6.4 (orientation)
"""

from __future__ import annotations

import struct
from typing import Final

_ORIENTATION: Final = 0x0112
_MAX_FIELDS: Final = 1000


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
