"""Whether a block or a packet has viewers turn or mirror a picture. Knows no files and no pixels.

Source: Exif 2.32, 4.6.2 (structure) and 4.6.4 (orientation); XMP specification, part 2, 2.7
"""

import re
import struct
from typing import Final

_ORIENTATION: Final = 0x0112
_MAX_FIELDS: Final = 1000
_NUMBERS: Final = {1: "B", 3: "H"}
"""How a number is stored, by its type: a byte, or two as the standard has it; four otherwise."""

# A packet may call the name space as it likes, and say more of a field than its value: whatever is
# called so, and is not plainly 1, counts.
_CLOSING: Final = re.compile(r"</[^<>]{0,200}+>")


def is_turned(block: bytes) -> bool:
    """Tell whether a block asks for another orientation, of two once; one that is damaged may.

    0 is what some programs write for none.
    """
    order = "<" if block.startswith(b"II") else ">"
    try:
        (start,) = struct.unpack_from(f"{order}I", block, 4)
        (count,) = struct.unpack_from(f"{order}H", block, start)
        for place in range(min(count, _MAX_FIELDS)):
            field = struct.unpack_from(f"{order}HHI4s", block, start + 2 + place * 12)
            tag, number, num_values, stored = field
            (value,) = struct.unpack_from(order + _NUMBERS.get(number, "I"), stored)
            is_upright = (num_values, value) == (1, 1) or not any(stored)
            if tag == _ORIENTATION and not is_upright:
                return True
    except struct.error:
        return True
    return bool(count > _MAX_FIELDS)


def is_turned_by_xmp(packet: str) -> bool:
    """Tell whether a packet of XMP asks for another orientation."""
    return says_other(packet, _NAMED, _UPRIGHT)


def says_other(packet: str, named: re.Pattern[str], usual: re.Pattern[str]) -> bool:
    """Tell whether a packet of XMP has a field whose value is not plainly a usual one.

    Args:
        packet: With plain letters: `embedded.py`.
        named: Finds the field: `name_of`.
        usual: Finds it with a usual value: `plainly`.
    """
    opened = _CLOSING.sub("<", packet)
    return len(named.findall(opened)) > len(usual.findall(opened))


def name_of(field: str) -> str:
    """Return a pattern that finds a field of XMP, whatever its name space is called."""
    return rf"[:<]{field}\b"


def plainly(field: str, value: str) -> str:
    """Return a pattern that finds a field of XMP with a value, as an attribute or an element."""
    said = rf"\s{{0,9}}(?:{value})\s{{0,9}}"
    return rf"{name_of(field)}\s{{0,9}}(?:=\s{{0,9}}[\"']{said}[\"']|>{said}<)"


_NAMED: Final = re.compile(name_of("Orientation"))
_UPRIGHT: Final = re.compile(plainly("Orientation", "1"))
