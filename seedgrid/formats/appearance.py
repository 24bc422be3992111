"""What in a PNG file makes somebody see, or read, something else than its pixels and its recipe.

A viewer obeys more than pixels: profiles, gamma, transparency, rotation, animation. Honest files of
ours hold none of it; what many programs add when they save, and changes nothing, is let pass.

Source: https://www.w3.org/TR/png-3/#11Chunks
"""

from __future__ import annotations

import html
import io
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from PIL import Image, ImageCms

from seedgrid.core.errors import PictureError
from seedgrid.core.recipe import Recipe
from seedgrid.formats import png_chunks
from seedgrid.formats.embedded import Blocks, read_blocks
from seedgrid.formats.exif import texts_of_block
from seedgrid.formats.importers.foreign import names_settings
from seedgrid.formats.orientation import is_turned, is_turned_by_xmp
from seedgrid.formats.parameters import PARAMETERS_KEY, parameters_text, without_version
from seedgrid.formats.png import CHUNK_KEY
from seedgrid.formats.png_chunks import Chunk, Header
from seedgrid.storage.unpacking import unpacked

_SHOWN_BY: Final = {
    b"cICP": "colours",
    b"gAMA": "colours",
    b"cHRM": "colours",
    b"sBIT": "colours",
    b"mDCV": "colours",
    b"cLLI": "colours",
    b"mDCv": "colours",
    b"cLLi": "colours",
    b"gmAP": "colours",
    b"gdAT": "colours",
    b"acTL": "animation",
    b"sTER": "shape",
    b"oFFs": "shape",
    b"sCAL": "shape",
    b"vpAg": "shape",
    b"caNv": "shape",
    b"orNT": "rotation",
}
"""Small letters at the end: as they were called before they became part of the standard."""

_ONCE: Final = {b"tRNS": "transparency", b"iCCP": "colours"}
"""Of two of a kind some readers take the first, and some the last."""

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
    b"oFFs": (bytes(9), bytes(8) + b"\1"),
}
_MAX_PROFILE_BYTES: Final = 4096
_PLAIN_TABLES: Final = frozenset(
    b"desc cprt wtpt bkpt chad chrm rXYZ gXYZ bXYZ rTRC gTRC bTRC"
    b" dmnd dmdd vued view lumi meas tech calt targ".split()
)
"""Of a profile whose meaning is three primaries and their curves, whatever it is used for."""
_EDITS: Final = ("camera-raw-settings", "hdr-gain-map")
"""In the names of what editors keep in XMP and apply when they open a file."""
_SEED: Final = re.compile(r"seed[\"']?\s{0,3}[:=]\s{0,3}[\"']?\d", re.IGNORECASE)
_STEPS: Final = re.compile(r"steps[\"']?\s{0,3}[:=]\s{0,3}[\"']?\d", re.IGNORECASE)
_MODES: Final = frozenset({"RGB", "RGBA"})
_UNREADABLE: Final = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)
_APPLES_BYTES: Final = 28
_MAX_PIXEL_BYTES: Final = 8


def shown_otherwise(data: bytes) -> tuple[str, ...]:
    """Say what makes a viewer show other colours than the pixels have; we write none of it.

    Returns:
        Some of `transparency`, `colours`, `rotation`, `animation`, `shape` (pixels that are not
        square, two pictures for two eyes), `finer colours` (16 bits, of which we read eight) and
        `another lower half` (for programs that unpack both halves at once); nothing for an honest
        file.
    """
    chunks = png_chunks.split(data)
    size = png_chunks.header(chunks)
    kinds = _told_by_chunks(chunks) | _told_by_blocks(read_blocks(chunks))
    if size.bit_depth == _DEEP:
        kinds.add("finer colours")
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
    """Tell whether a text for other programs names other words or settings than the recipe."""
    chunks = png_chunks.split(data)
    told = [png_chunks.all_texts(chunks)]
    try:
        told += [list(texts_of_block(block).items()) for block in read_blocks(chunks).exif]
    except PictureError:
        return True
    words = [text for texts in told for key, text in texts if key == PARAMETERS_KEY]
    others = [[text for text in texts if text[0] != PARAMETERS_KEY] for texts in told]
    ours = without_version(parameters_text(recipe))
    return (
        any(without_version(text) != ours for text in words)
        or any(
            names_settings(dict(texts)) or names_settings(dict(reversed(texts))) for texts in others
        )
        or any(_are_settings(text.replace(ours, "")) for text in _beside(chunks))
    )


def _beside(chunks: Sequence[Chunk]) -> Iterator[str]:
    """Give all texts but the record, by whatever name and in whatever block they are."""
    for key, text in png_chunks.all_texts(chunks):
        if key != CHUNK_KEY:
            yield html.unescape(text)
    for block in read_blocks(chunks).exif:
        for coding in ("utf-8", "utf-16-le", "utf-16-be"):
            for start in (0, 1):  # Fields of two bytes a letter may begin anywhere.
                yield block[start:].decode(coding, "replace")


def _are_settings(text: str) -> bool:
    """Tell whether a text names a seed and a number of steps, as all tools' settings do."""
    return _SEED.search(text) is not None and _STEPS.search(text) is not None


def _told_by_chunks(chunks: Sequence[Chunk]) -> set[str]:
    unusual = (chunk for chunk in chunks if chunk.data not in _USUAL.get(chunk.kind, ()))
    found = {_SHOWN_BY[chunk.kind] for chunk in unusual if chunk.kind in _SHOWN_BY}
    kinds = [chunk.kind for chunk in chunks]
    return found | {what for kind, what in _ONCE.items() if kinds.count(kind) > 1}


def _told_by_blocks(blocks: Blocks) -> set[str]:
    found = {"colours"} if blocks.has_raw_colours else set()
    if any(name in packet for packet in blocks.packets for name in _EDITS):
        found.add("colours")
    is_turned_round = any(map(is_turned, blocks.exif)) or any(map(is_turned_by_xmp, blocks.packets))
    return found | ({"rotation"} if is_turned_round or blocks.is_damaged else set())


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

    Only small profiles of primaries and curves alone are asked: tables may mean something else for
    each purpose, and there are more of them with each edition of the format.
    """
    profile = image.info.get("icc_profile") or b""
    is_small = 0 < len(profile) <= _MAX_PROFILE_BYTES
    if not (is_small and _tables(profile) <= _PLAIN_TABLES and image.mode in _MODES):
        return False
    pixels = image.convert("RGB")
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        shown = ImageCms.profileToProfile(pixels, source, ImageCms.createProfile("sRGB"))
    except (ImageCms.PyCMSError, *_UNREADABLE):
        return False
    return shown is not None and bool(np.array_equal(np.asarray(shown), np.asarray(pixels)))


def _tables(profile: bytes) -> frozenset[bytes]:
    """Return the names of a profile's tables. Source: ICC.1:2022, 7.3."""
    count = int.from_bytes(profile[128:132], "big")
    places = range(132, min(132 + 12 * count, len(profile)), 12)
    return frozenset(profile[place : place + 4] for place in places)


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
