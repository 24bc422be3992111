"""What makes somebody see or read something else, though the pixels are those of the recipe."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageCms, PngImagePlugin

from seedgrid.formats.png_chunks import Chunk
from tests.forgeries.files import Named, chunk, exif, two_halves, without, xmp
from tests.forgeries.originals import Original, as_eight_bits, drawn, packed, with_record


def shown_otherwise(it: Original) -> Iterator[Named]:
    """What makes somebody see other colours, though the pixels are those of the recipe."""
    image, pixels = Image.fromarray(it.pixels), it.pixels
    height, width = pixels.shape[:2]
    for name, alpha in _alphas(height, width).items():
        yield f"alpha: {name}", with_record(packed(drawn(np.dstack([pixels, alpha]), 6)), it.record)
    first = b"".join(b"\0" + bytes([value]) for value in pixels[0, 0])
    yield "a colour made transparent", it.with_chunks(chunk(b"tRNS", first))
    for gamma in (0, 1, 20000, 45454, 45456, 100000, 2**31 - 1):
        yield f"gamma {gamma}", it.with_chunks(chunk(b"gAMA", gamma.to_bytes(4, "big")))
    usual = chunk(b"gAMA", (45455).to_bytes(4, "big"))
    other = chunk(b"gAMA", (99999).to_bytes(4, "big"))
    yield "two gammas", it.with_chunks(usual, other)
    yield "two gammas, the other order", it.with_chunks(other, usual)
    yield "other primaries", it.with_chunks(chunk(b"cHRM", bytes(range(32))))
    yield "a profile that is none", it.with_chunks(chunk(b"iCCP", b"x\0\0x"))
    for name in ("LAB", "XYZ"):
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()
        yield f"a profile of {name}", it.from_image(image, icc_profile=profile)
    swapped = swapped_primaries(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    yield "a profile with red and blue swapped", it.from_image(image, icc_profile=swapped)
    for kind, data in (
        (b"cICP", b"\x09\x10\x00\x01"),
        (b"mDCV", bytes(24)),
        (b"cLLI", bytes(8)),
        (b"acTL", b"\0\0\0\2\0\0\0\0"),
        (b"acTL", b"\0\0\0\1\0\0\0\0"),
        (b"pHYs", struct.pack(">IIB", 1000, 2000, 0)),
        (b"pHYs", struct.pack(">IIB", 2834, 2835, 1)),
        (b"sBIT", b"\x01\x01\x01"),
        (b"sTER", b"\0"),
        *((b"eXIf", exif(turn)) for turn in range(2, 9)),
        (b"eXIf", exif(6, "<")),
        (b"eXIf", b"II*\0 broken"),
    ):
        where = f"{kind.decode()} {data[-9:].hex()}"
        yield where, it.with_chunks(chunk(kind, data))
        if kind in (b"eXIf", b"acTL", b"iDOT"):
            yield f"{where} at the end", it.with_chunks(chunk(kind, data), at_the_end=True)
    yield "another lower half for Apple's programs", two_halves(it, is_one=False)
    yield "a mark of halves that are not there", it.with_chunks(chunk(b"iDOT", bytes(28)))
    yield "turned by XMP", it.with_chunks(xmp('tiff:Orientation="6"'))
    yield (
        "turned by XMP's element",
        it.with_chunks(
            xmp(">\n<tiff:Orientation>3</tiff:Orientation></rdf:Description><rdf:Description ")
        ),
    )
    yield (
        "turned by the second XMP",
        it.with_chunks(xmp('tiff:Orientation="1"'), xmp('tiff:Orientation="8"')),
    )
    yield "turned by a raw profile", it.with_chunks(_raw_profile(6))
    for words in ("parameters\0a ship\nSteps: 3, Seed: 0", "parameters\0" + "x" * 99):
        told = without(it.chunks, b"parameters")
        other = chunk(b"tEXt", words.encode())
        yield f"for others: {words[11:]}", packed([told[0], other, *told[1:]])
        yield f"twice for others: {words[11:]}", it.with_chunks(other, at_the_end=True)
    yield "another seed for others", it.data_with_words(seed=99)
    yield "other negative words for others", it.data_with_words(negative_prompt="blurry")
    yield "an animation", _animated(it)
    for name, rows in _finer(it).items():
        yield name, with_record(packed(drawn(rows, 2)), it.record)


def _raw_profile(turn: int) -> Chunk:
    block = b"Exif\0\0" + exif(turn)
    text = f"\nexif\n{len(block):8d}\n{block.hex()}\n".encode()
    return chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(text))


def _alphas(height: int, width: int) -> dict[str, np.ndarray]:
    one = np.full((height, width), 255, np.uint8)
    one[3, 3] = 254
    half = np.full((height, width), 255, np.uint8)
    half[:, width // 2 :] = 0
    return {
        "one pixel by one step": one,
        "half of it gone": half,
        "all gone": np.zeros((height, width), np.uint8),
        "all but there": np.full((height, width), 254, np.uint8),
    }


def swapped_primaries(profile: bytes) -> bytes:
    return profile.replace(b"rXYZ", b"tmpZ").replace(b"bXYZ", b"rXYZ").replace(b"tmpZ", b"bXYZ")


def _finer(it: Original) -> dict[str, np.ndarray]:
    wide = as_eight_bits(it.pixels)
    return {
        "16 bits, low ones empty": wide,
        "16 bits, low ones as usual": wide | it.pixels,
        "16 bits, something in the low ones": wide | (wide >> 9),
    }


def _animated(it: Original) -> bytes:
    """A picture that becomes another one after a moment."""
    frames = [Image.fromarray(it.pixels), Image.new("RGB", it.pixels.shape[1::-1], "red")]
    texts = PngImagePlugin.PngInfo()
    buffer = io.BytesIO()
    frames[0].save(
        buffer, "PNG", save_all=True, append_images=frames[1:], duration=900, pnginfo=texts
    )
    return with_record(buffer.getvalue(), it.record)
