"""Starts: the pictures that image-to-image begins from, stored by the SHA-256 of their pixels.

A recipe names its start by that digest. The file is in the library's folder `starts`; painting
finds it in the folders that this process knows. A mask of what may change is stored in the same
way; white may change. Only PNG, JPEG and WebP are read. Needs no torch.

    digest = keep(folder, read_picture(data))
    pixels(digest)
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.storage.files import make_folder, write_atomically
from seedgrid.storage.unpacking import on_white, unpacked, upright

MAX_SIDE_PX: Final = 2048
"""Larger pictures are reduced when they are stored: no picture is painted larger."""

_MAX_PIXELS: Final = 100_000_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FORMATS: Final = ("PNG", "JPEG", "WEBP")
_places: tuple[Path, ...] = ()


def know(*folders: Path) -> None:
    """Add folders to search; they need not exist yet."""
    global _places
    _places = tuple(dict.fromkeys((*_places, *folders)))


def forget(folder: Path) -> None:
    """Remove a folder from the search, before it is deleted."""
    global _places
    _places = tuple(place for place in _places if place != folder)


def places() -> tuple[Path, ...]:
    """Return the folders that this process searches."""
    return _places


def place_of(sha256: str) -> Path | None:
    """Return the path of a start; None if no known folder has it."""
    if not _DIGEST.fullmatch(sha256):
        return None
    files = (folder / f"{sha256}.png" for folder in reversed(_places))
    return next((file for file in files if file.is_file()), None)


def pixels(sha256: str) -> Pixels:
    """Return a start's pixels.

    Raises:
        PictureError: `start_missing`: it is missing or damaged.
    """
    return read_start(sha256)[1]


def read_start(sha256: str) -> tuple[bytes, Pixels]:
    """Return a start's PNG file and its pixels, after checking their digest.

    Raises:
        PictureError: `start_missing`: it is missing or damaged.
    """
    path = place_of(sha256)
    try:
        data = path.read_bytes() if path else b""
        found = read_picture(data)
    except (OSError, PictureError) as error:
        raise PictureError("start_missing", value=sha256[:12]) from error
    if pixels_sha256(found) != sha256:
        raise PictureError("start_missing", value=sha256[:12])
    return data, found


def keep(folder: Path, start: Pixels) -> str:
    """Store a picture as a start; when this returns it is on the disk."""
    from PIL import Image

    sha256, target = pixels_sha256(start), io.BytesIO()
    path = folder / f"{sha256}.png"
    know(folder)
    if not path.is_file():
        Image.fromarray(start).save(target, "PNG")
        make_folder(folder)
        write_atomically(path, target.getvalue())
    return sha256


def read_picture(data: bytes) -> Pixels:
    """Read a picture upright and opaque, reduced to at most `MAX_SIDE_PX` a side.

    Raises:
        PictureError: `start_unreadable`: it is no PNG, JPEG or WebP; `picture_large`: decoding
            takes too much memory.
    """
    from PIL import Image

    try:
        with unpacked(data, _FORMATS, wanted_px=MAX_SIDE_PX) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise PictureError("start_unreadable")
            opaque = on_white(image)
            opaque.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
            return np.array(upright(opaque, data), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        raise PictureError("start_unreadable") from error


def check_there(digests: Sequence[str]) -> None:
    """Check that starts are here, before anything is computed.

    Raises:
        InputError: `start_missing`.
    """
    for sha256 in digests:
        if sha256 and place_of(sha256) is None:
            raise InputError("start_missing", field="start", value=sha256[:12])
