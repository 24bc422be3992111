"""What in a PNG file makes somebody see something else than its pixels.

A viewer obeys more than pixels: profiles, gamma, transparency, rotation, animation. Honest files of
ours hold none of it; what many programs add when they save, and changes nothing, is let pass.

Source: https://www.w3.org/TR/png-3/#11Chunks
"""

import io
import re
import struct
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from seedgrid.core.errors import PictureError
from seedgrid.formats import png_chunks
from seedgrid.formats.embedded import Blocks, read_blocks
from seedgrid.formats.orientation import (
    is_turned,
    is_turned_by_xmp,
    name_of,
    plainly,
    says_other,
)
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
    b"zxIf": "rotation",
    b"exIf": "rotation",
}
"""Small letters at the end: as they were called before they became part of the standard."""

_ONCE: Final = {b"tRNS": "transparency", b"iCCP": "colours"}
"""Of two of a kind some readers take the first, and some the last; behind the pixels, some none."""

_DEEP: Final = 16
# What says that colours are those of sRGB, as they are anyway: many programs add it when they save.
_USUAL: Final = {
    b"gAMA": ((45455).to_bytes(4, "big"),),
    b"cHRM": (
        struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000),
        struct.pack(">8I", 31269, 32899, 63999, 33001, 30000, 60000, 15000, 5999),
    ),
    b"cICP": (b"\x01\x0d\x00\x01",),
    b"sBIT": (b"\x08\x08\x08", b"\x08\x08\x08\x08"),
    b"oFFs": (bytes(9), bytes(8) + b"\1"),
}
_OTHER_COLOURS: Final = re.compile(
    rb"\x01\xa0[\x01-\x0d]\0\x01\0\0\0\x02|\xa0\x01\0[\x01-\x0d]\0\0\0\x01\0{0,3}\x02"
    rb"|\x01\0\x02\0\x04\0\0\0R03|\0\x01\0\x02\0\0\0\x04R03"
    rb"|\0\xa5\x05\0\x01\0\0\0|\xa5\0\0\x05\0\0\0\x01|\x73\x87\x07\0|\x87\x73\0\x07"
)
"""Fields of EXIF in both byte orders: a “colour space” of 2, R03, gamma, a profile."""
_SPACE: Final = re.compile(name_of("ColorSpace"))
_USUAL_SPACE: Final = re.compile(plainly("ColorSpace", "1|65535"))
"""SRGB, and none that has a number."""

_MAX_PROFILE_BYTES: Final = 4096
_PLAIN_TABLES: Final = frozenset(
    b"desc cprt wtpt bkpt chad chrm rXYZ gXYZ bXYZ rTRC gTRC bTRC"
    b" dmnd dmdd vued view lumi meas tech calt targ".split()
)
"""Of a profile whose meaning is three primaries and their curves, whatever it is used for."""
_OBEYED: Final = {
    "camera-raw-settings": "colours",
    "hdr-gain-map": "colours",
    "HDRGainMap": "colours",
    "ns.google.com/photos": "shape",
    "darktable.sf.net": "colours",
    "<!ENTITY": "colours",
}
"""In what is kept in XMP and applied when a file is opened; and what may stand for any of it."""
_MAX_MOVED: Final = 0.01
"""Of many colours' values, by one step; the usual profile of sRGB was seen to move 0.13 %."""
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


def _told_by_chunks(chunks: Sequence[Chunk]) -> set[str]:
    unusual = (chunk for chunk in chunks if chunk.data not in _USUAL.get(chunk.kind, ()))
    found = {_SHOWN_BY[chunk.kind] for chunk in unusual if chunk.kind in _SHOWN_BY}
    kinds = [chunk.kind for chunk in chunks]
    late = kinds[kinds.index(b"IDAT") :]
    return found | {what for kind, what in _ONCE.items() if kinds.count(kind) > 1 or kind in late}


def _told_by_blocks(blocks: Blocks) -> set[str]:
    found = {"colours"} if blocks.has_raw_colours else set()
    found |= {what for name, what in _OBEYED.items() if any(name in p for p in blocks.packets)}
    has_space = any(says_other(each, _SPACE, _USUAL_SPACE) for each in blocks.packets)
    if has_space or any(map(_OTHER_COLOURS.search, blocks.exif)):
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

    The one that most programs write has rounded numbers, and moves a few colours by one step.
    Only small profiles of primaries and curves alone are asked: tables may mean something else for
    each purpose, and there are more of them with each edition of the format.
    """
    profile = image.info.get("icc_profile") or b""
    is_small = 0 < len(profile) <= _MAX_PROFILE_BYTES
    if not (is_small and _tables(profile) <= _PLAIN_TABLES and image.mode in _MODES):
        return False
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        moves = [_moved(colours, source) for colours in (image.convert("RGB"), _many_colours())]
    except (ImageCms.PyCMSError, *_UNREADABLE):
        return False
    return max(int(by.max()) for by in moves) <= 1 and float(moves[1].mean()) <= _MAX_MOVED


def _moved(image: Image.Image, source: ImageCms.ImageCmsProfile) -> NDArray[np.int16]:
    """Return by how much a profile moves each value."""
    shown = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"))
    if shown is None:
        raise ImageCms.PyCMSError("nothing came out")
    distance: NDArray[np.int16] = np.abs(np.asarray(shown, np.int16) - np.asarray(image, np.int16))
    return distance


def _many_colours() -> Image.Image:
    """Return a picture with every fifth value of each colour, beside every other such one."""
    values = np.arange(0, 256, 5, dtype=np.uint8)
    cube = np.stack(np.meshgrid(values, values, values), axis=-1)
    return Image.fromarray(np.ascontiguousarray(cube.reshape(len(values), -1, 3)))


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
