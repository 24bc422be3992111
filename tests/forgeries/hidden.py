"""What hides where a reader rarely looks.

Things that stand twice, other homes for what turns or colours a picture, headers and streams that
readers take differently, words for other programs.
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
from tests.forgeries.files import Named, chunk, exif, xmp
from tests.forgeries.looks import swapped_primaries
from tests.forgeries.originals import Original, drawn, packed, with_record

_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def shown_or_told_otherwise(it: Original) -> Iterator[Named]:
    """What makes somebody see other colours, or another program read other words."""
    yield from _twice(it)
    yield from _turned(it)
    yield from _transparent(it)
    yield from _told(it)
    for kind, data in (
        (b"orNT", b"\6"),
        (b"oFFs", struct.pack(">iiB", 9, 9, 0)),
        (b"vpAg", struct.pack(">IIB", 99, 99, 0)),
        (b"caNv", struct.pack(">IIii", 99, 99, 5, 5)),
        (b"sCAL", b"\x011\x002"),
        (b"mDCv", bytes(24)),
        (b"cLLi", bytes(8)),
        (b"gmAP", b"x"),
        (b"gdAT", b"x"),
    ):
        yield f"{kind.decode()} added", it.with_chunks(chunk(kind, data))
    yield "a raw profile of colours", it.with_chunks(raw_profile("icc", swapped_primaries(_SRGB)))
    yield (
        "another raw profile of colours",
        it.with_chunks(raw_profile("ICM", swapped_primaries(_SRGB))),
    )
    for mode in ("L", "P", "1", "LA", "PA"):
        image = Image.fromarray(it.pixels).convert(mode)
        yield f"saved as {mode}", it.from_image(image.convert("RGBA") if mode == "PA" else image)


def _twice(it: Original) -> Iterator[Named]:
    """Readers take the first, the last, or none."""
    first, absent = _colour(it.pixels[0, 0]), _colour(_absent(it))
    for name, one, other in (
        ("colour made transparent", chunk(b"tRNS", first), chunk(b"tRNS", absent)),
        ("profile", _profile(swapped_primaries(_SRGB)), _profile(_SRGB)),
        ("block that turns", chunk(b"eXIf", exif(6)), chunk(b"eXIf", exif(1))),
        (
            "density",
            chunk(b"pHYs", struct.pack(">IIB", 1, 2, 0)),
            chunk(b"pHYs", struct.pack(">IIB", 1, 1, 0)),
        ),
    ):
        yield f"two of a kind: {name}", it.with_chunks(one, other)
        yield f"two of a kind, the other order: {name}", it.with_chunks(other, one)


def _turned(it: Original) -> Iterator[Named]:
    two = exif(1)[:8] + b"\0\2" + exif(1)[10:22] + exif(6)[10:22] + bytes(4)
    wide = b"II*\0" + struct.pack("<IHHHII", 8, 1, 0x0112, 4, 1, 6) + bytes(4)
    for name, block in {
        "told twice in a block": two,
        "told by a wide number": wide,
        "told behind a camera's mark": b"Exif\0\0" + exif(6),
    }.items():
        yield f"turned: {name}", it.with_chunks(chunk(b"eXIf", block))
    block = b"Exif\0\0" + exif(6)
    for key in ("Raw profile type APP1", "raw profile type exif", "RAW PROFILE TYPE EXIF"):
        yield f"turned by “{key}”", it.with_chunks(raw_profile(key[17:], block, key=key[:17]))
    other = xmp('tiff:Orientation="6"').data.replace(b"xmlns:tiff=", b"xmlns:t=")
    other = other.replace(b"tiff:Orientation", b"t:Orientation")
    yield "turned by XMP with another prefix", it.with_chunks(chunk(b"iTXt", other))
    packet = b"http://ns.adobe.com/xap/1.0/\0" + other.partition(b"\0\0\0\0\0")[2]
    yield "turned by XMP in a raw profile", it.with_chunks(raw_profile("APP1", packet))
    old = b"XML:com.adobe.xmp\0" + xmp('tiff:Orientation="8"').data.partition(b"\0\0\0\0\0")[2]
    yield "turned by XMP as old text", it.with_chunks(chunk(b"tEXt", old))


def _transparent(it: Original) -> Iterator[Named]:
    high = b"".join(b"\1" + bytes([value]) for value in it.pixels[0, 0])
    yield "a colour made transparent, by its low bytes", it.with_chunks(chunk(b"tRNS", high))
    pixels = np.dstack([it.pixels, np.full(it.pixels.shape[:2], 255, np.uint8)])
    pixels[5, 5, 3] = 0
    rows = drawn(pixels, 6, is_interlaced=True)
    yield "a hole in an interlaced one", with_record(packed(rows), it.record)


def _told(it: Original) -> Iterator[Named]:
    """Settings for other tools, each in that tool's own place."""
    graph = {
        "1": {"class_type": "CLIPTextEncode", "inputs": {"text": "a ship", "clip": ["4", 1]}},
        "3": {
            "class_type": "KSampler",
            "inputs": {
                "seed": 9,
                "steps": 9,
                "cfg": 7,
                "sampler_name": "euler",
                "positive": ["1", 0],
            },
        },
    }
    invoke = {"positive_prompt": "a ship", "seed": 9, "steps": 9, "generation_mode": "txt2img"}
    old_invoke = {"image": {"prompt": [{"prompt": "a ship", "weight": 1}], "seed": 9}}
    fooocus = {"prompt": "a ship", "seed": 9, "base_model": "x", "metadata_scheme": "fooocus"}
    for key, value in {
        "prompt": json.dumps(graph),
        "workflow": "{}",
        "invokeai_metadata": json.dumps(invoke),
        "sd-metadata": json.dumps(old_invoke),
        "Dream": '"a ship" -s 9 -S 9',
        "Comment": json.dumps(fooocus),
    }.items():
        yield f"for other tools: {key}", it.with_chunks(png_chunks.utf8_text(key, value))
    novel = png_chunks.plain_text("Comment", json.dumps({"prompt": "a ship", "seed": 9}))
    tool = png_chunks.plain_text("Software", "NovelAI")
    yield "for other tools: NovelAI", it.with_chunks(tool, novel)
    words = b"a ship\nSteps: 3, Sampler: Euler, CFG scale: 7.5, Seed: 9, Size: 64x64"
    yield "for other tools: a user comment", it.with_chunks(chunk(b"eXIf", user_comment(words)))
    ours = png.read_texts(it.data)["parameters"]
    for old, new in (
        ("Steps: ", "Steps: 9"),
        ("CFG scale: ", "CFG scale: 1"),
        ("Sampler: ", "Sampler: Very "),
        ("Size: ", "Size: 1"),
        ("Model hash: ", "Model hash: f00"),
    ):
        text = png_chunks.plain_text("parameters", ours.replace(old, new))
        yield f"for others: {new}", png_chunks.with_texts(it.chunks, [text])


def shown_as_it_is(it: Original) -> Iterator[Named]:
    """What other readers may stumble over, and nobody sees."""
    image = Image.fromarray(it.pixels)
    yield "a proposed palette", it.with_chunks(chunk(b"PLTE", bytes(range(30))))
    yield "a palette by its name", it.with_chunks(chunk(b"sPLT", b"x\0\x08" + bytes(6)))
    yield "no offset", it.with_chunks(chunk(b"oFFs", bytes(9)))
    yield "a raw profile of captions", it.with_chunks(raw_profile("iptc", b"8BIM"))
    yield "a profile of sRGB once more", it.from_image(image, icc_profile=_SRGB)
    rows = _rows(it)
    yield "rows behind the last", _streamed(it, zlib.compress(rows + rows[:999]))
    yield "a second stream", _streamed(it, zlib.compress(rows) + zlib.compress(b"x" * 999))
    pieces = [chunk(b"IDAT"), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IDAT")]
    rest = [each for each in it.chunks if each.kind != b"IDAT"]
    yield "empty pieces", packed([*rest[:-1], *pieces, rest[-1]])
    comment = user_comment(png.read_texts(it.data)["parameters"].encode())
    yield "the same words as a user comment", it.with_chunks(chunk(b"eXIf", comment))


def no_picture(it: Original) -> Iterator[Named]:
    """What readers do not agree on how to show, and what would fill the memory."""
    head = it.chunks[0].data
    for name, place, value in (
        ("bits of three", 8, 3),
        ("a colour type of five", 9, 5),
        ("another way of packing", 10, 1),
        ("another way of filtering", 11, 1),
        ("another way of interlacing", 12, 2),
        ("no width", 3, 0),
    ):
        data = bytearray(head)
        data[place] = value
        yield f"header: {name}", packed([chunk(b"IHDR", bytes(data)), *it.chunks[1:]])
    rows = _rows(it)
    yield "a filter that there is not", _streamed(it, zlib.compress(b"\7" + rows[1:]))
    text = json.dumps(it.record)
    for name, other in {
        "two seeds, one in disguise": text.replace('"seed":', '"\\u0073eed": 9, "seed":', 1),
        "a seed in disguise, behind": text.replace('"width":', '"\\u0073eed": 9, "width":', 1),
        "guidance beyond all": text.replace(
            '"guidance_scale":', '"guidance_scale": 1e999, "x":', 1
        ),
        "half a character": text.replace('"prompt": "', '"prompt": "\\ud800', 1),
    }.items():
        yield f"record: {name}", it.text_is(other)
    bomb = zlib.compress(b" " * 4_000_000)
    many = [chunk(b"zTXt", f"Comment{n}".encode() + b"\0\0" + bomb) for n in range(5)]
    yield "five texts of 4 MB, packed", it.with_chunks(*many)
    large = chunk(b"iTXt", b"Comment\0\1\0\0\0" + zlib.compress(b" " * 9_000_000))
    yield "a text of 9 MB, packed", it.with_chunks(large)
    yield "ten thousand chunks", it.with_chunks(*[chunk(b"prVt")] * 10_000)


def bombs(it: Original) -> Iterator[Named]:
    """What unpacks to much more than a picture: told to be damaged, or read no further."""
    rows = _rows(it)
    yield "rows and 99 MB behind", _streamed(it, zlib.compress(rows + bytes(99_000_000)))
    yield "rows that are missing", _streamed(it, zlib.compress(rows[: len(rows) // 2]))
    yield "a check sum that is wrong", _streamed(it, zlib.compress(rows)[:-1] + b"\0")
    profile = chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(99_000_000)))
    yield "a profile of 99 MB", it.with_chunks(profile)
    frame = struct.pack(">IIIIIHHBB", 0, 64, 64, 0, 0, 1, 1, 0, 0)
    yield "a frame of no animation", it.with_chunks(chunk(b"fcTL", frame))


def _rows(it: Original) -> bytes:
    return b"".join(b"\0" + row.tobytes() for row in it.pixels)


def _streamed(it: Original, stream: bytes) -> bytes:
    rest = [each for each in it.chunks if each.kind != b"IDAT"]
    return packed([*rest[:-1], chunk(b"IDAT", stream), rest[-1]])


def _colour(pixel: object) -> bytes:
    return b"".join(b"\0" + bytes([value]) for value in np.asarray(pixel, np.uint8))


def _absent(it: Original) -> tuple[int, int, int]:
    there = {tuple(map(int, pixel)) for pixel in it.pixels.reshape(-1, 3)}
    return next((red, 0, 255) for red in range(256) if (red, 0, 255) not in there)


def _profile(data: bytes) -> Chunk:
    return chunk(b"iCCP", b"x\0\0" + zlib.compress(data))


def raw_profile(kind: str, block: bytes, key: str = "Raw profile type ") -> Chunk:
    text = f"\n{kind}\n{len(block):8d}\n{block.hex()}\n".encode()
    return chunk(b"zTXt", f"{key}{kind}".encode() + b"\0\0" + zlib.compress(text))


def user_comment(words: bytes, code: bytes = b"ASCII\0\0\0") -> bytes:
    """Write an EXIF block with a user comment."""
    value = code + words
    main = struct.pack(">HHHIII", 1, 0x8769, 4, 1, 26, 0)
    inner = struct.pack(">HHHIII", 1, 0x9286, 7, len(value), 44, 0)
    return b"MM\0*" + struct.pack(">I", 8) + main + inner + value
