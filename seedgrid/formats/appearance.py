"""What in a PNG file makes somebody see, or read, something else than its pixels and its recipe.

A viewer obeys more than pixels: profiles, gamma, transparency, rotation, animation. Honest files of
ours hold none of it; what many programs add when they save, and changes nothing, is let pass.

Source: https://www.w3.org/TR/png-3/#11Chunks
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from PIL import Image, ImageCms

from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import Recipe
from seedgrid.formats import png_chunks
from seedgrid.formats.orientation import is_turned, is_turned_by_text
from seedgrid.formats.parameters import PARAMETERS_KEY, parameters_text
from seedgrid.formats.png_chunks import Chunk, Header
from seedgrid.storage.unpacking import unpacked

_SHOWN_BY: Final = {
    b"cICP": "colours",
    b"gAMA": "colours",
    b"cHRM": "colours",
    b"sBIT": "colours",
    b"mDCV": "colours",
    b"cLLI": "colours",
    b"acTL": "animation",
    b"sTER": "shape",
}
_DEEP: Final = 16
# What says that colours are those of sRGB, as they are anyway: many programs add it when they save.
_USUAL: Final = {
    b"gAMA": ((45455).to_bytes(4, "big"),),
    b"cHRM": (
        b"".join(
            number.to_bytes(4, "big")
            for number in (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
        ),
    ),
    b"sBIT": (b"\x08\x08\x08", b"\x08\x08\x08\x08"),
}
_MAX_PROFILE_BYTES: Final = 4096
_MODES: Final = frozenset({"RGB", "RGBA"})
_UNREADABLE: Final = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)
_APPLES_BYTES: Final = 28
_MAX_PIXEL_BYTES: Final = 8


def shown_otherwise(data: bytes) -> tuple[str, ...]:
    """Say what makes a viewer show other colours than the pixels have; we write none of it.

    Args:
        data: A whole PNG file.

    Returns:
        Some of `transparency`, `colours`, `rotation`, `animation`, `shape` (pixels that are not
        square, two pictures for two eyes), `finer colours` (16 bits, of which we read eight) and
        `another lower half` (for programs that unpack both halves at once); nothing for an honest
        file.

    Raises:
        PictureError: The file is damaged or too large.
    """
    chunks = png_chunks.split(data)
    size = png_chunks.header(chunks)
    kinds = {
        _SHOWN_BY[chunk.kind]
        for chunk in chunks
        if chunk.kind in _SHOWN_BY and chunk.data not in _USUAL.get(chunk.kind, ())
    }
    if size.bit_depth == _DEEP:
        kinds.add("finer colours")
    if _is_turned(chunks):
        kinds.add("rotation")
    if any(chunk.kind == b"pHYs" and chunk.data[:4] != chunk.data[4:8] for chunk in chunks):
        kinds.add("shape")
    if any(chunk.kind == b"iDOT" for chunk in chunks) and not _halves_are_one(chunks, size):
        kinds.add("another lower half")
    try:
        with unpacked(data) as image:
            kinds |= _seen(image, has_profile=any(chunk.kind == b"iCCP" for chunk in chunks))
    except _UNREADABLE as error:
        raise PictureError("picture_damaged", reason="its pixels cannot be unpacked") from error
    return tuple(sorted(kinds))


def told_otherwise(data: bytes, recipe: Recipe) -> bool:
    """Tell whether the text for other programs names other words or another seed than the recipe.

    Raises:
        PictureError: The file is damaged or too large.
    """
    words, _, settings = parameters_text(recipe).rpartition("\n")
    seed = next(item for item in settings.split(", ") if item.startswith("Seed: "))
    return any(
        text.rpartition("\n")[0] != words or seed not in text.rpartition("\n")[2].split(", ")
        for key, text in png_chunks.all_texts(png_chunks.split(data))
        if key == PARAMETERS_KEY
    )


def _is_turned(chunks: Sequence[Chunk]) -> bool:
    return any(chunk.kind == b"eXIf" and is_turned(chunk.data) for chunk in chunks) or any(
        is_turned_by_text(key, text) for key, text in png_chunks.all_texts(chunks)
    )


def _seen(image: Image.Image, *, has_profile: bool) -> set[str]:
    """Return what Pillow sees: transparency, and a profile under which pixels look otherwise."""
    found = set()
    if image.has_transparency_data and np.array(image.convert("RGBA"))[..., 3].min() < 255:
        found.add("transparency")
    if has_profile and not _is_srgb(image):
        found.add("colours")
    return found


def _is_srgb(image: Image.Image) -> bool:
    """Tell whether a file's profile leaves each of its pixels as it is, as that of sRGB does.

    Only small profiles without tables are asked: those may mean something else for each purpose.
    """
    profile = image.info.get("icc_profile") or b""
    is_plain = b"A2B" not in profile and b"cicp" not in profile
    if not (0 < len(profile) <= _MAX_PROFILE_BYTES and is_plain and image.mode in _MODES):
        return False
    pixels = image.convert("RGB")
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        shown = ImageCms.profileToProfile(pixels, source, ImageCms.createProfile("sRGB"))
    except (ImageCms.PyCMSError, *_UNREADABLE):
        return False
    return shown is not None and bool(np.array_equal(np.asarray(shown), np.asarray(pixels)))


def _halves_are_one(chunks: Sequence[Chunk], size: Header) -> bool:
    """Tell whether both halves, unpacked at once as Apple's programs do, are those of the picture.

    Source:
        https://www.hackerfactor.com/blog/index.php?/archives/895-Connecting-the-iDOTs.html
    """
    places = [place for place, chunk in enumerate(chunks) if chunk.kind == b"iDOT"]
    mark = chunks[places[0]].data
    if len(places) > 1 or len(mark) != _APPLES_BYTES:
        return False
    *begins, near, begin, num_rows, far = struct.unpack(">7I", mark)
    first, second = (_place_behind(chunks, places[0], offset) for offset in (near, far))
    pixels = next(place for place, chunk in enumerate(chunks) if chunk.kind == b"IDAT")
    is_whole = begins == [2, 0, begin] and begin + num_rows == size.height
    if not is_whole or first != pixels or second is None:
        return False
    most = size.height * (size.width * _MAX_PIXEL_BYTES + 1)
    try:
        whole = zlib.decompressobj().decompress(_packed_pixels(chunks), most)
        half = zlib.decompressobj(-zlib.MAX_WBITS).decompress(_packed_pixels(chunks[second:]), most)
    except zlib.error:
        return False
    row = len(whole) // size.height
    # The first of its rows must be told without the one above, which is not there for it.
    return half == whole[begin * row :] and half[:1] in {b"\0", b"\1"}


def _place_behind(chunks: Sequence[Chunk], place: int, offset: int) -> int | None:
    """Return the place of the pixels that begin so many bytes behind the start of a chunk."""
    while place < len(chunks) and offset > 0:
        offset -= len(chunks[place].data) + 12
        place += 1
    is_there = offset == 0 and place < len(chunks) and chunks[place].kind == b"IDAT"
    return place if is_there else None


def _packed_pixels(chunks: Sequence[Chunk]) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.kind == b"IDAT")
