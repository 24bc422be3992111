"""Profiles of colours, put together by hand: sRGB as most programs write it, and what is near it.

Source: ICC.1:2001-04; the numbers are those of "sRGB IEC61966-2.1", of 1998.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Curve = Callable[[NDArray[Any]], NDArray[Any]]

_PRIMARIES: Final = (
    (b"rXYZ", (0x6FA2, 0x38F5, 0x0390)),
    (b"gXYZ", (0x6299, 0xB785, 0x18DA)),
    (b"bXYZ", (0x24A0, 0x0F84, 0xB6CF)),
    (b"wtpt", (0xF351, 0x10000, 0x116CC)),
)


def srgb(change: Curve = lambda light: light) -> bytes:
    """Make a profile with curves of 1,024 values, those of sRGB unless they are changed."""
    value = np.linspace(0, 1, 1024)
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    table = np.round(np.clip(change(light), 0, 1) * 65535).astype(">u2").tobytes()
    return _profile(b"curv" + bytes(4) + struct.pack(">I", 1024) + table)


def srgb_by_formula() -> bytes:
    """Make a profile whose curves are sRGB's formula."""
    numbers = (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
    fixed = struct.pack(">5i", *(round(number * 65536) for number in numbers))
    return _profile(b"para" + bytes(4) + b"\0\3\0\0" + fixed)


def _profile(curve: bytes) -> bytes:
    tables = [
        (b"desc", (b"desc" + bytes(4) + struct.pack(">I", 5) + b"sRGB\0").ljust(96, b"\0")),
        (b"cprt", b"text" + bytes(8)),
        *((name, b"XYZ " + bytes(4) + struct.pack(">3I", *xyz)) for name, xyz in _PRIMARIES),
        *((name, curve) for name in (b"rTRC", b"gTRC", b"bTRC")),
    ]
    place = 132 + 12 * len(tables)
    index, body = b"", b""
    for name, data in tables:
        if data not in body:  # All three curves are one.
            body += data
        index += name + struct.pack(">II", place + body.index(data), len(data))
    rest = struct.pack(">I", len(tables)) + index + body
    head = bytearray(128)
    head[4:8], head[8:12], head[12:24] = b"Lino", b"\2\x10\0\0", b"mntrRGB XYZ "
    head[36:40] = b"acsp"
    struct.pack_into(">I", head, 0, len(head) + len(rest))
    struct.pack_into(">3I", head, 68, 0xF6D6, 0x10000, 0xD32D)
    return bytes(head) + rest
