"""Parses the chunks of PNG files with limits, and reads and writes their texts, not pixels.

Pillow would accept a million tiny text chunks or 60 MB in one.

Source: https://www.w3.org/TR/png-3/
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from seedgrid.core.errors import PictureError
from seedgrid.storage.unpacking import MAX_METADATA_BYTES

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_PIXELS: Final = 64 * 1024 * 1024
MAX_CHUNKS: Final = 10_000
TEXT_KINDS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt"})

_CRITICAL_KINDS: Final = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND"})
_MAX_KEY_BYTES: Final = 79


class Chunk(NamedTuple):
    """One chunk: its four-letter kind and its data."""

    kind: bytes
    data: bytes


class Header(NamedTuple):
    """The contents of IHDR."""

    width: int
    height: int
    bit_depth: int
    colour_type: int  # 2 is RGB
    is_interlaced: bool


def split(png: bytes) -> tuple[Chunk, ...]:
    """Split a PNG, up to IEND; raise `picture_large`, `picture_not_png` or `picture_damaged`."""
    if len(png) > MAX_FILE_BYTES:
        raise PictureError("picture_large", value=f"{len(png) // 2**20} MB", limit="64 MB")
    if not png.startswith(SIGNATURE):
        raise PictureError("picture_not_png")
    chunks: list[Chunk] = []
    position = len(SIGNATURE)
    while not chunks or chunks[-1].kind != b"IEND":
        if len(chunks) == MAX_CHUNKS:
            raise PictureError("picture_damaged", reason="it has more than 10,000 chunks")
        chunk = _chunk_at(png, position)
        position += len(chunk.data) + 12
        chunks.append(chunk)
    _check_order(chunks)
    return tuple(chunks)


def header(chunks: Iterable[Chunk]) -> Header:
    """Read and check the chunk IHDR; raise `picture_damaged` or `picture_large`."""
    data = next(iter(chunks)).data
    if len(data) != 13:
        raise PictureError("picture_damaged", reason="its header has the wrong length")
    width, height = struct.unpack(">II", data[:8])
    if not (0 < width < 2**31 and 0 < height < 2**31):
        raise PictureError("picture_damaged", reason=f"its size is {width}x{height}")
    if width * height > MAX_PIXELS:
        raise PictureError("picture_large", value=f"{width}x{height}", limit="64 megapixels")
    # PNG defines one compression and one filter method.
    if data[10] or data[11] or data[12] not in (0, 1):
        raise PictureError("picture_damaged", reason="its header names an unknown method")
    return Header(width, height, data[8], data[9], data[12] == 1)


def texts(chunks: Iterable[Chunk]) -> dict[str, str | None]:
    """Read the first text of each key, None beyond 256 KB in all; raise `picture_damaged`."""
    by_key: dict[str, str | None] = {}
    room = MAX_METADATA_BYTES
    for chunk in chunks:
        key = key_of(chunk).decode("latin-1")
        if not key or key in by_key:
            continue
        value = _text(chunk, room)
        by_key[key] = None if value is None else _decoded(chunk.kind, value)
        room -= len(value or b"")
    return by_key


def key_of(chunk: Chunk) -> bytes:
    """Return the key of a text chunk; empty for other chunks."""
    end = chunk.data.find(b"\0", 0, _MAX_KEY_BYTES + 1) if chunk.kind in TEXT_KINDS else -1
    return chunk.data[: max(end, 0)]


def utf8_text(key: str, value: str) -> Chunk:
    """Make an iTXt chunk."""
    return Chunk(kind=b"iTXt", data=key.encode("latin-1") + b"\0\0\0\0\0" + value.encode())


def plain_text(key: str, value: str) -> Chunk:
    """Make a tEXt chunk where Latin-1 holds the text, as old readers expect; iTXt otherwise."""
    try:
        return Chunk(kind=b"tEXt", data=key.encode("latin-1") + b"\0" + value.encode("latin-1"))
    except UnicodeEncodeError:
        return utf8_text(key, value)


def with_texts(chunks: Iterable[Chunk], texts: Sequence[Chunk]) -> bytes:
    """Write a PNG file with these texts right after its header, and no others of their keys."""
    keys = {key_of(chunk) for chunk in texts}
    first, *rest = chunks
    kept = [chunk for chunk in rest if key_of(chunk) not in keys]
    return SIGNATURE + b"".join(packed(chunk) for chunk in (first, *texts, *kept))


def _chunk_at(png: bytes, position: int) -> Chunk:
    head = png[position : position + 8]
    if len(head) < 8:
        raise PictureError("picture_damaged", reason="it ends too early")
    (length,) = struct.unpack(">I", head[:4])
    kind = head[4:]
    end = position + 8 + length
    if end + 4 > len(png):
        raise PictureError("picture_damaged", reason="it ends too early")
    if not kind.isalpha():
        raise PictureError("picture_damaged", reason="a chunk has no proper name")
    data = png[position + 8 : end]
    if zlib.crc32(data, zlib.crc32(kind)) != struct.unpack(">I", png[end : end + 4])[0]:
        reason = f"the check sum of its chunk {kind.decode('ascii')} is wrong"
        raise PictureError("picture_damaged", reason=reason)
    return Chunk(kind=kind, data=data)


def _check_order(chunks: list[Chunk]) -> None:
    kinds = [chunk.kind for chunk in chunks]
    if kinds[0] != b"IHDR" or kinds.count(b"IHDR") != 1 or b"IDAT" not in kinds:
        raise PictureError("picture_damaged", reason="its chunks are not those of a picture")
    # A capital marks a critical chunk; unknown ones are refused: some readers would skip them.
    if strange := {kind for kind in kinds if kind[:1].isupper()} - _CRITICAL_KINDS:
        name = min(strange).decode("ascii")
        raise PictureError("picture_damaged", reason=f"its chunk {name} is none of a PNG picture")


def _text(chunk: Chunk, most: int) -> bytes | None:
    """Return a text's bytes, decompressed; None for more than `most` bytes."""
    start = len(key_of(chunk)) + 1
    is_packed = chunk.kind == b"zTXt" or chunk.data[start : start + 1] == b"\1"
    if chunk.kind == b"zTXt":
        start += 1
    elif chunk.kind == b"iTXt":  # Flags, then a language and the key in that language.
        end_of_language = chunk.data.find(b"\0", start + 2)
        start = chunk.data.find(b"\0", end_of_language + 1) + 1
        if end_of_language < 0 or start == 0:
            raise PictureError("picture_damaged", reason="a text has no end of its head")
    if is_packed and chunk.kind != b"tEXt":
        return _unpacked(memoryview(chunk.data)[start:], most)
    return None if len(chunk.data) - start > most else chunk.data[start:]


def _decoded(kind: bytes, value: bytes) -> str:
    try:
        return value.decode("utf-8" if kind == b"iTXt" else "latin-1")
    except UnicodeDecodeError as error:
        raise PictureError("picture_damaged", reason="a text is not UTF-8") from error


def _unpacked(data: memoryview, most: int) -> bytes | None:
    unpacker = zlib.decompressobj()
    try:
        value = unpacker.decompress(data, most + 1)
    except zlib.error as error:
        raise PictureError("picture_damaged", reason="a text cannot be unpacked") from error
    if len(value) > most:
        return None
    if not unpacker.eof:
        raise PictureError("picture_damaged", reason="a text cannot be unpacked")
    return value


def packed(chunk: Chunk) -> bytes:
    """Return the bytes of a chunk in a file."""
    check = zlib.crc32(chunk.data, zlib.crc32(chunk.kind))
    return struct.pack(">I", len(chunk.data)) + chunk.kind + chunk.data + struct.pack(">I", check)
