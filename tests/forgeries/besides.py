"""What other programs look for beside the pixels: their edits, their words, other profiles' tables.

And other containers, rows that readers take differently, and records that are spelled otherwise.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageCms

from seedgrid.formats import png, png_chunks
from seedgrid.formats.png_chunks import Chunk
from tests.forgeries.files import Named, chunk, xmp
from tests.forgeries.originals import Original, drawn, packed, saved, with_record

_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
_WORDS = (
    "a ship\nNegative prompt: dull\nSteps: 3, Sampler: Euler, CFG scale: 7.5, Seed: 9, Size: 64x64"
)


def shown_or_told_otherwise(it: Original) -> Iterator[Named]:
    """What makes somebody see other colours, or another program read other words."""
    yield from _profiles(it)
    yield from _edits(it)
    for place, key in (("a text", "Parameters"), ("capitals", "PARAMETERS"), ("", " parameters")):
        text = png_chunks.plain_text(key, _WORDS)
        yield f"words for others under “{key}” {place}", it.with_chunks(text)
    for tag, name in ((0x010E, "a description"), (0x013B, "an artist"), (0x8298, "a copyright")):
        block = _field(tag, 2, _WORDS.encode() + b"\0")
        yield f"words in {name} of EXIF", it.with_chunks(chunk(b"eXIf", block))
    wide = _field(0x9C9C, 1, _WORDS.encode("utf-16-le") + b"\0\0")
    yield "words in Windows' comment", it.with_chunks(chunk(b"eXIf", wide))
    draw_things = json.dumps({"c": "a ship", "seed": 9, "steps": 9, "sampler": "Euler"})
    for name, text in (("a JSON object", draw_things), ("AUTOMATIC1111's text", _WORDS)):
        quoted = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        told = f"><exif:UserComment><rdf:Alt><rdf:li>{quoted}</rdf:li></rdf:Alt></exif:UserComment"
        yield f"words in XMP as {name}", it.with_chunks(xmp(f"{told}><rdf:Description "))
        described = f'dc:description="{quoted}"'
        yield f"words in XMP's description as {name}", it.with_chunks(xmp(described))
    for key in ("Comment", "Description", "Title", "generation_data", "Dream", "UserComment"):
        yield f"words in “{key}”", it.with_chunks(png_chunks.utf8_text(key, _WORDS))
    data = json.dumps({"prompt": "a ship", "seed": 9, "steps": 9, "cfgScale": 7})
    for key in ("generation_data", "sd-metadata", "sui_image_params", "Comment", "metadata"):
        yield f"settings in “{key}”", it.with_chunks(png_chunks.utf8_text(key, data))


def _profiles(it: Original) -> Iterator[Named]:
    """SRGB's own profile with a table more, which only some programs, or purposes, look at."""
    image = Image.fromarray(it.pixels)
    for tag in (b"D2B0", b"D2B1", b"D2B3", b"A2B1", b"gamt", b"vcgt", b"MHC2", b"cicp", b"hdgm"):
        yield f"a profile with {tag.decode()}", it.from_image(image, icc_profile=_with_tag(tag))
    device = bytearray(_SRGB)
    device[12:16] = b"abst"
    yield "a profile of another class", it.from_image(image, icc_profile=bytes(device))
    space = bytearray(_SRGB)
    space[16:20] = b"GRAY"
    yield "a profile of another space", it.from_image(image, icc_profile=bytes(space))


def _with_tag(tag: bytes) -> bytes:
    """Add a tag that points at another curve's data to a profile."""
    (count,) = struct.unpack_from(">I", _SRGB, 128)
    entries = _SRGB[132 : 132 + 12 * count]
    moved = b"".join(
        entries[at : at + 4]
        + struct.pack(">I", struct.unpack_from(">I", entries, at + 4)[0] + 12)
        + entries[at + 8 : at + 12]
        for at in range(0, len(entries), 12)
    )
    place, size = struct.unpack_from(">II", moved, 4)
    body = moved + tag + struct.pack(">II", place, size) + _SRGB[132 + 12 * count :]
    profile = _SRGB[:128] + struct.pack(">I", count + 1) + body
    return struct.pack(">I", len(profile)) + profile[4:]


def _edits(it: Original) -> Iterator[Named]:
    """What photo editors keep beside the pixels, and apply when they open the file."""
    raw = 'xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" crs:HasSettings="True"'
    yield "an exposure in XMP", it.with_chunks(xmp(f'{raw} crs:Exposure2012="+3.00"'))
    yield "a crop in XMP", it.with_chunks(xmp(f'{raw} crs:HasCrop="True" crs:CropTop="0.4"'))
    element = "><crs:Exposure2012>+3.00</crs:Exposure2012></rdf:Description><rdf:Description "
    named = 'xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" '
    yield "an exposure in XMP's element", it.with_chunks(xmp(named + element))
    gains = 'xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"'
    yield "a map of gains in XMP", it.with_chunks(xmp(gains))
    for tag, kind, value, name in (
        (0x0112, 3, struct.pack(">HH", 5, 0), "rotation"),
        (0x0112, 4, struct.pack(">I", 8), "rotation, wide"),
    ):
        block = b"MM\0*" + struct.pack(">IHHHI", 8, 1, tag, kind, 1) + value + bytes(4)
        yield (
            f"EXIF's {name} behind the pixels",
            it.with_chunks(chunk(b"eXIf", block), at_the_end=True),
        )


def shown_as_it_is(it: Original) -> Iterator[Named]:
    """What honest programs add, and nobody sees."""
    image = Image.fromarray(it.pixels)
    for tag, value, name in (
        (0x010E, b"a picture that I like\0", "a description"),
        (0x0131, b"GIMP 3.0\0", "a program"),
        (0x013B, b"me\0", "an artist"),
    ):
        yield f"EXIF with {name}", it.with_chunks(chunk(b"eXIf", _field(tag, 2, value)))
    yield "XMP with a title", it.with_chunks(xmp('dc:title="A fox" xmp:Rating="5"'))
    yield "XMP with a date", it.with_chunks(xmp('xmp:ModifyDate="2026-11-22T12:00:00+00:00"'))
    for key, value in (
        ("date:create", "2026-11-22T12:00:00+00:00"),
        ("Title", "A fox: my best seed"),
        ("Copyright", "me, 2026"),
        ("Comment", "Created with GIMP"),
        ("Software", "Adobe ImageReady"),
        ("Creation Time", "Sun 22 Nov 2026"),
        ("Source", "my own steps"),
    ):
        yield f"a text “{key}”", it.with_chunks(png_chunks.utf8_text(key, value))
    for level, kind in ((9, zlib.Z_RLE), (9, zlib.Z_HUFFMAN_ONLY), (9, zlib.Z_FIXED)):
        packer = zlib.compressobj(level, strategy=kind)
        stream = packer.compress(_rows(it)) + packer.flush()
        yield f"packed in way {kind}", _streamed(it, stream)
    yield "another order of ways to filter", it.from_image(image, compress_type=1)
    yield "in pieces of one byte", packed(_one_by_one(it))
    text = json.dumps(it.record, ensure_ascii=True)
    yield "the record in ASCII", it.text_is(text)
    yield "the record with room", it.text_is("\n\t " + text + " \r\n")
    whole = text.replace('"guidance_scale": 7.5', '"guidance_scale": 75e-1')
    yield "a number in another way", it.text_is(whole)
    told = png.CHUNK_KEY.encode() + b"\0\0\0en\0Rezept\0" + json.dumps(it.record).encode()
    head, *rest = [each for each in it.chunks if not each.data.startswith(b"seedgrid\0")]
    yield "the record in a language", packed([head, chunk(b"iTXt", told), *rest])


def no_picture(it: Original) -> Iterator[Named]:
    """Other containers, whatever their name, and records that do not say what a recipe says."""
    image = Image.fromarray(it.pixels)
    for form in ("ICO", "TGA", "PCX", "JPEG2000", "AVIF", "PDF", "PPM"):
        try:
            data = saved(image, form)
        except (KeyError, OSError, ValueError):
            continue  # This Pillow was built without it.
        yield f"a {form} file by the name of a PNG", data
        yield f"a {form} file before it", data + it.data
    for name, head in (
        ("one byte before it", b"\n"),
        ("a mark of bytes before it", b"\xef\xbb\xbf"),
        ("MNG's signature", b"\x8aMNG\r\n\x1a\n"),
        ("JNG's signature", b"\x8bJNG\r\n\x1a\n"),
        ("line ends changed", None),
    ):
        changed = it.data.replace(b"\r\n", b"\n", 1) if head is None else head + it.data
        cut = head is not None and len(head) == 8
        yield name, head + it.data[8:] if cut and head else changed
    text = json.dumps(it.record)
    for name, other in {
        "a seed that is a half": text.replace('"seed": 0', '"seed": 0.5', 1),
        "a seed that is a decimal": text.replace('"seed": 0', '"seed": 0.0', 1),
        "a seed below nothing": text.replace('"seed": 0', '"seed": -0.1', 1),
        "a width that is yes": text.replace('"width": ', '"width": true, "w": ', 1),
        "no prompt": text.replace('"prompt":', '"prompts":', 1),
        "a prompt of nothing": text.replace('"prompt": "', '"prompt": null, "x": "', 1),
        "a comment": text.replace("{", "{/* fox */", 1),
        "a comma at the end": text[:-1] + ",}",
        "single quotes": text.replace('"', "'"),
        "a mark of bytes": "\ufeff" + text,
        "a zero byte behind it": text + "\0",
        "weights in capitals": text.replace(
            it.record["recipe"]["model"]["weights_sha256"],
            it.record["recipe"]["model"]["weights_sha256"].upper(),
        ),
    }.items():
        yield f"record: {name}", it.text_is(other)
    grey = np.ascontiguousarray(it.pixels[..., :1])
    two = packed(drawn(grey, 0))
    yield (
        "another picture's header",
        with_record(png_chunks.SIGNATURE + two[8:33] + it.data[33:], it.record),
    )


def _field(tag: int, kind: int, value: bytes) -> bytes:
    """Write an EXIF block with one field."""
    if len(value) <= 4:
        return b"MM\0*" + struct.pack(">IHHHI", 8, 1, tag, kind, len(value)) + value.ljust(8, b"\0")
    head = struct.pack(">IHHHIII", 8, 1, tag, kind, len(value), 26, 0)
    return b"MM\0*" + head + value


def _rows(it: Original) -> bytes:
    return b"".join(b"\0" + row.tobytes() for row in it.pixels)


def _streamed(it: Original, stream: bytes) -> bytes:
    rest = [each for each in it.chunks if each.kind != b"IDAT"]
    return packed([*rest[:-1], chunk(b"IDAT", stream), rest[-1]])


def _one_by_one(it: Original) -> list[Chunk]:
    stream = zlib.compress(_rows(it), 9)
    rest = [each for each in it.chunks if each.kind != b"IDAT"]
    size = len(stream) // 4000 + 1
    pieces = [chunk(b"IDAT", stream[at : at + size]) for at in range(0, len(stream), size)]
    return [*rest[:-1], *pieces, rest[-1]]
