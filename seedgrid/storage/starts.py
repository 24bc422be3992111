"""Starts, the pictures that image-to-image begins from, and masks, the regions that may change.

They are stored by the SHA-256 of their pixels, by which a recipe names them, in the library's
folder `starts`. A mask's white pixels may change, all others stay the parent's. Inside the region,
near its edge, the new picture and the parent's are blended in integers: every machine gets the same
result.
"""

import io
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.storage.files import make_folder, write_atomically
from seedgrid.storage.unpacking import on_paper, unpacked, upright

Inside = NDArray[np.bool_]  # Shape (height, width): whether a pixel belongs to the region

MAX_SIDE_PX: Final = 2048  # Larger starts are reduced: no recipe has a longer side
WHITE: Final = 128  # From this grey on, a mask lets a pixel change

_MAX_PIXELS: Final = 100_000_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FORMATS: Final = ("PNG", "JPEG", "WEBP")

places: tuple[Path, ...] = ()  # The folders that this process searches
_changing: Final = threading.Lock()


def add_folder(*folders: Path) -> None:
    """Add folders to search; they need not exist yet."""
    global places
    with _changing:
        places = tuple(dict.fromkeys((*places, *folders)))


def forget(folder: Path) -> None:
    """Remove a folder from the search, before it is deleted."""
    global places
    with _changing:
        places = tuple(place for place in places if place != folder)


def place_of(sha256: str) -> Path | None:
    """Return the path of a start or mask; None if no folder in `places` has it."""
    if not _DIGEST.fullmatch(sha256):
        return None
    files = (folder / f"{sha256}.png" for folder in reversed(places))
    return next((file for file in files if file.is_file()), None)


def pixels(sha256: str) -> Pixels:
    """Return a start's pixels; raise `start_missing` if it is missing or damaged."""
    return read_start(sha256)[1]


def read_start(sha256: str) -> tuple[bytes, Pixels]:
    """Return a start's PNG file and its pixels, after checking their digest; see `pixels`."""
    path = place_of(sha256)
    try:
        data = path.read_bytes() if path else b""
        picture = read_picture(data)
    except (OSError, PictureError) as error:
        raise PictureError("start_missing", value=sha256[:12]) from error
    if pixels_sha256(picture) != sha256:
        raise PictureError("start_missing", value=sha256[:12])
    return data, picture


def write(folder: Path, start: Pixels) -> str:
    """Store a start on the disk, in a folder that is added to `places`; return its digest."""
    from PIL import Image

    sha256, target = pixels_sha256(start), io.BytesIO()
    path = folder / f"{sha256}.png"
    add_folder(folder)
    if not path.is_file():
        Image.fromarray(start).save(target, "PNG")
        make_folder(folder)
        write_atomically(path, target.getvalue())
    return sha256


def read_picture(data: bytes, *, paper: str = "white") -> Pixels:
    """Read a picture upright, on paper, reduced to at most `MAX_SIDE_PX` a side.

    Raises `picture_large` above the limit of memory, `start_unreadable` for any other fault.
    """
    from PIL import Image

    try:
        with unpacked(data, _FORMATS, wanted_px=MAX_SIDE_PX) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise PictureError("start_unreadable")
            opaque = on_paper(image, paper)
            opaque.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
            return np.array(upright(opaque, data), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        raise PictureError("start_unreadable") from error


def check_there(digests: Sequence[str]) -> None:
    """Raise `start_missing` if the file of a start or mask is missing; skip empty digests."""
    for sha256 in digests:
        if sha256 and place_of(sha256) is None:
            raise InputError("start_missing", field="start", value=sha256[:12])


def inside(mask: str, width: int, height: int) -> Inside:
    """Return the region of a stored mask; raises as `pixels`."""
    return _white(pixels(mask), width, height)


def _white(mask: Pixels, width: int, height: int) -> Inside:
    """Return the white pixels of a mask, resized to a picture's size."""
    from PIL import Image

    grey = Image.fromarray(mask).convert("L").resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(grey) >= WHITE


def check_mask(pixels: Pixels, width: int, height: int) -> Pixels:
    """Return a mask of this size, black and white; raise `mask_empty` or `mask_full`."""
    region = _white(pixels, width, height)
    if not region.any():
        raise InputError("mask_empty", field="only")
    if region.all():
        raise InputError("mask_full", field="only")
    return np.where(region[..., None], np.uint8(255), np.uint8(0)).repeat(3, axis=2)


def put_back(painted: Pixels, parent: Pixels, region: Inside, feather: int) -> Pixels:
    """Return `parent` with `painted` in the region, whose outer `feather` pixels are blended."""
    whole = feather + 1
    weights = _depths(region, whole)[..., None]  # Of `painted`: (height, width, 1), 0 … whole
    mixed = parent.astype(np.int32) * (whole - weights) + painted.astype(np.int32) * weights
    result: Pixels = ((mixed + whole // 2) // whole).astype(np.uint8)
    return result


def _depths(region: Inside, most: int) -> NDArray[np.int32]:
    """Return each pixel's distance from the region's edge, 0 outside, at most `most`."""
    depths = region.astype(np.int32)
    inner = region
    for _ in range(most - 1):
        inner = _eroded(_eroded(inner).T).T
        if not inner.any():
            break
        depths += inner
    return depths


def _eroded(region: Inside) -> Inside:
    """Remove one row at each upper and lower edge."""
    rows = np.pad(region, ((1, 1), (0, 0)), mode="edge")  # The picture's border is no edge.
    return rows[:-2] & rows[1:-1] & rows[2:]


def in_cells(region: Inside, rows: int, columns: int) -> Inside:
    """Return which cells of a grid over the picture hold any pixel of the region."""
    height, width = region.shape
    tops, lefts = np.arange(rows) * height // rows, np.arange(columns) * width // columns
    cells: Inside = np.logical_or.reduceat(np.logical_or.reduceat(region, tops, 0), lefts, 1)
    return cells
