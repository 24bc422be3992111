"""What can be done to a PNG file around its pixels, and what is no PNG file any more."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
from PIL import Image, ImageCms

from seedgrid.formats import png, png_chunks
from seedgrid.formats.png_chunks import Chunk
from tests.forgeries.originals import Original, drawn, packed, saved, with_record

Named = tuple[str, bytes]

_ORIENTED: Final = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-'
    'syntax-ns#"><rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" {}/></rdf:RDF>'
    "</x:xmpmeta>"
)


def chunk(kind: bytes, data: bytes = b"") -> Chunk:
    return Chunk(kind=kind, data=data)


def shown_as_it_is(it: Original) -> Iterator[Named]:
    """What other programs do to a file that changes nothing that anybody sees."""
    image, pixels = Image.fromarray(it.pixels), it.pixels
    yield "untouched", it.data
    for level in (0, 1, 9):
        yield f"packed at level {level}", it.from_image(image, compress_level=level)
    yield "optimised", it.from_image(image, optimize=True)
    yield "interlaced", with_record(packed(drawn(pixels, 2, is_interlaced=True)), it.record)
    yield "with full alpha", it.from_image(image.convert("RGBA"))
    opaque = np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])
    interlaced = drawn(opaque, 6, is_interlaced=True)
    yield "interlaced with full alpha", with_record(packed(interlaced), it.record)
    yield "in many pieces", packed(_in_pieces(it.chunks, 100))
    yield "no resolution", it.from_image(image)
    yield "resolution of 72 dpi", it.from_image(image, dpi=(72, 72))
    yield "texts behind the pixels", packed(_texts_last(it.chunks))
    yield "something behind the end", it.data + b"\0" * 999
    yield "another picture behind the end", it.data + saved(Image.new("RGB", image.size, "red"))
    yield "an archive behind the end", it.data + b"PK\3\4" + b"x" * 500
    for kind, data in (
        (b"sRGB", b"\0"),
        (b"gAMA", (45455).to_bytes(4, "big")),
        (b"tIME", struct.pack(">HBBBBB", 2026, 1, 2, 3, 4, 5)),
        (b"bKGD", b"\0\1\0\2\0\3"),
        (b"sBIT", b"\x08\x08\x08"),
        (b"prVt", b"what a program keeps for itself"),
        (b"tEXt", b"Comment\0made by me"),
        (b"tEXt", b"Software\0an editor"),
        (b"zTXt", b"Description\0\0" + zlib.compress(b"long")),
        (b"eXIf", exif(1)),
        (b"caBX", b"a claim of provenance"),
    ):
        yield f"{kind.decode()} {data[:6]!r} added", it.with_chunks(chunk(kind, data))
        if kind != b"sBIT":
            late = it.with_chunks(chunk(kind, data), at_the_end=True)
            yield f"{kind.decode()} {data[:6]!r} added at the end", late
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    yield "an sRGB profile", it.from_image(image, icc_profile=profile)
    yield "XMP that turns nothing", it.with_chunks(xmp('tiff:Orientation="1"'))
    yield "a colour that is nowhere transparent", it.with_chunks(chunk(b"tRNS", _absent(it)))
    for form in ("WEBP", "TIFF", "BMP", "PPM"):
        buffer = io.BytesIO(saved(image, form, **({"lossless": True} if form == "WEBP" else {})))
        yield f"through {form} without loss", it.from_image(Image.open(buffer).convert("RGB"))
    yield "saved by Apple's programs", two_halves(it, is_one=True)
    yield (
        "the sign of a contact sheet",
        it.with_chunks(chunk(b"tEXt", b"Software\0SeedGrid sheet")),
    )
    text = json.dumps(it.record)
    yield "the record packed", _with_text(it, _packed_text(text))
    yield "the record as old text", _with_text(it, png_chunks.plain_text(png.CHUNK_KEY, text))
    yield "the record as zTXt", _with_text(it, _old_packed_text(text))
    yield "the record in another order", it.text_is(json.dumps(it.record, sort_keys=True, indent=3))
    yield "without the words for others", packed(without(it.chunks, b"parameters"))
    yield "a chunk of a similar name", it.with_chunks(chunk(b"tEXt", b"SeedGrid\0" + b"{}"))


def no_picture(it: Original) -> Iterator[Named]:
    """What cannot be read, or says nothing, or says two things."""
    image = Image.fromarray(it.pixels)
    for form, options in (
        ("JPEG", {"quality": 100}),
        ("WEBP", {"lossless": True}),
        ("GIF", {}),
        ("BMP", {}),
        ("TIFF", {}),
    ):
        yield f"a {form} file by the name of a PNG", saved(image, form, **options)
    yield "the record taken out", packed(without(it.chunks, png.CHUNK_KEY.encode()))
    yield "saved by a program that keeps no texts", saved(image)
    yield "a screenshot", saved(image.convert("RGBA"))
    yield "nothing", b""
    yield "the signature alone", png_chunks.SIGNATURE
    for share in (0.01, 0.3, 0.5, 0.9, 0.999):
        yield f"cut off after {share:.1%}", it.data[: int(len(it.data) * share)]
    for place in (20, 60, len(it.data) // 2, len(it.data) - 6):
        damaged = bytearray(it.data)
        damaged[place] ^= 1
        yield f"a bit at {place} damaged", bytes(damaged)
    head, *rest = it.chunks
    for kind, data in ((b"fcTL", bytes(26)), (b"fdAT", bytes(9)), (b"JDAT", b"\xff\xd8")):
        yield f"a broken {kind.decode()}", it.with_chunks(chunk(kind, data))
    yield "two headers", packed([head, head, *rest])
    yield "no pixels", packed([c for c in it.chunks if c.kind != b"IDAT"])
    yield "no end", packed(it.chunks[:-1])
    yield "a text between the pixels", packed(_in_pieces(it.chunks, 300, between=True))
    yield "a part that no program knows", it.with_chunks(chunk(b"CgBI", b"\x50\x00\x20\x02"))
    yield "the record by another name", _with_text(it, png_chunks.utf8_text("seedgrids", "{}"))
    text = json.dumps(it.record)
    other = json.dumps(it.record | {"recipe": it.record["recipe"] | {"seed": 99}})
    for kind, second in (
        ("iTXt", png_chunks.utf8_text(png.CHUNK_KEY, other)),
        ("tEXt", png_chunks.plain_text(png.CHUNK_KEY, other)),
        ("zTXt", _old_packed_text(other)),
        ("packed iTXt", _packed_text(other)),
        ("iTXt, the same", png_chunks.utf8_text(png.CHUNK_KEY, text)),
    ):
        yield f"a second record as {kind}", it.with_chunks(second)
        yield f"a second record as {kind} at the end", it.with_chunks(second, at_the_end=True)
    yield "a record that cannot be unpacked", _with_text(it, _broken_text())
    yield "a record of 9 MB, packed", _with_text(it, _packed_text(" " * 9_000_000 + text))


def _in_pieces(chunks: tuple[Chunk, ...], size: int, *, between: bool = False) -> list[Chunk]:
    data = b"".join(each.data for each in chunks if each.kind == b"IDAT")
    pieces = [chunk(b"IDAT", data[at : at + size]) for at in range(0, len(data), size)]
    if between:
        pieces.insert(1, chunk(b"tEXt", b"Comment\0in the middle"))
    rest = [each for each in chunks if each.kind != b"IDAT"]
    return [*rest[:-1], *pieces, rest[-1]]


def _texts_last(chunks: tuple[Chunk, ...]) -> list[Chunk]:
    texts = [each for each in chunks if each.kind in (b"tEXt", b"iTXt", b"zTXt")]
    rest = [each for each in chunks if each not in texts]
    return [*rest[:-1], *texts, rest[-1]]


def without(chunks: tuple[Chunk, ...], key: bytes) -> list[Chunk]:
    return [each for each in chunks if not each.data.startswith(key + b"\0")]


def _with_text(it: Original, text: Chunk) -> bytes:
    head, *rest = without(it.chunks, png.CHUNK_KEY.encode())
    return packed([head, text, *rest])


def _packed_text(text: str) -> Chunk:
    key = png.CHUNK_KEY.encode()
    return chunk(b"iTXt", key + b"\0\1\0\0\0" + zlib.compress(text.encode()))


def _old_packed_text(text: str) -> Chunk:
    return chunk(b"zTXt", png.CHUNK_KEY.encode() + b"\0\0" + zlib.compress(text.encode()))


def _broken_text() -> Chunk:
    return chunk(b"zTXt", png.CHUNK_KEY.encode() + b"\0\0" + b"no stream")


def exif(turn: int, order: str = ">") -> bytes:
    mark = b"MM\0*" if order == ">" else b"II*\0"
    field = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, turn, 0)
    return (
        mark
        + struct.pack(f"{order}I", 8)
        + struct.pack(f"{order}H", 1)
        + field
        + struct.pack(f"{order}I", 0)
    )


def xmp(attributes: str) -> Chunk:
    return png_chunks.utf8_text("XML:com.adobe.xmp", _ORIENTED.format(attributes))


def _absent(it: Original) -> bytes:
    there = {tuple(map(int, pixel)) for pixel in it.pixels.reshape(-1, 3)}
    colour = next((red, 0, 255) for red in range(256) if (red, 0, 255) not in there)
    return b"".join(b"\0" + bytes([value]) for value in colour)


def two_halves(it: Original, *, is_one: bool) -> bytes:
    """Write rows so that the lower half can be unpacked by itself, to the same rows or to others.

    Source: https://www.hackerfactor.com/blog/index.php?/archives/895-Connecting-the-iDOTs.html
    """
    rows = [b"\0" + row.tobytes() for row in it.pixels]
    upper = len(rows) // 2
    packer = zlib.compressobj()
    first = packer.compress(b"".join(rows[:upper])) + packer.flush(zlib.Z_FULL_FLUSH)
    lower = b"".join(rows[upper:])
    second = packer.compress(lower) + packer.flush()
    head, *rest = [each for each in it.chunks if each.kind not in (b"IDAT", b"IEND")]
    pieces = [chunk(b"IDAT", first), chunk(b"IDAT", second)]
    if not is_one:
        other = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        hidden = other.compress(bytes(len(lower))) + other.flush()
        pieces.append(chunk(b"IDAT", hidden))  # Behind the end, for whoever reads in a row.
    offset = 40 + sum(len(piece.data) + 12 for piece in pieces[:-1])
    numbers = (2, 0, upper, 40, upper, len(rows) - upper, offset)
    mark = chunk(b"iDOT", struct.pack(">7I", *numbers))
    return packed([head, *rest, mark, *pieces, chunk(b"IEND", b"")])
