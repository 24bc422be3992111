"""Forged and edited files, each with the verdict that is right and what verify has to say of it."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from seedgrid.core.picture import Picture, Pixels, pixels_sha256
from seedgrid.formats import png, png_chunks
from seedgrid.formats.own_texts import MARK_KEY, PARAMETERS_KEY, parameters_text
from seedgrid.formats.png_chunks import Chunk

RECORD, PARAMETERS, MARK = png.CHUNK_KEY, PARAMETERS_KEY, MARK_KEY


@dataclass(frozen=True)
class Original:
    """An honest picture, and what can be done to its file."""

    picture: Picture

    @property
    def data(self) -> bytes:
        return png.encode(self.picture)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return png_chunks.split(self.data)

    def record(self, **changes: Any) -> dict[str, Any]:
        """The JSON of its chunk, with other values."""
        return json.loads(png.read_texts(self.data)[RECORD] or "") | changes

    def recipe(self, **changes: Any) -> dict[str, Any]:
        return {"recipe": self.record()["recipe"] | changes}

    def passport(self, **changes: Any) -> dict[str, Any]:
        return {"passport": self.record()["passport"] | changes}

    def without(self, *keys: str) -> list[Chunk]:
        names = [key.encode() for key in keys]
        return [chunk for chunk in self.chunks if png_chunks.key_of(chunk) not in names]

    def with_record(self, **changes: Any) -> bytes:
        return self.with_text(RECORD, plain_json(self.record(**changes)))

    def with_text(self, key: str, text: str) -> bytes:
        """Put another text in the place of one of ours."""
        chunk = png_chunks.utf8_text(key, text)
        if key == PARAMETERS:
            chunk = png_chunks.plain_text(key, text)
        return png_chunks.with_texts(self.chunks, [chunk])

    def with_chunks(self, *added: Chunk) -> bytes:
        """Put chunks before the pixels."""
        head, *rest = self.chunks
        return written([head, *added, *rest])

    def with_pixels(self, pixels: Pixels, **changes: Any) -> bytes:
        """Put other pixels in, with their own digest unless another is given."""
        record = self.record(**({"pixels_sha256": pixels_sha256(pixels)} | changes))
        texts = [chunk for chunk in self.chunks if chunk.kind in png_chunks.TEXT_KINDS]
        saved = png_chunks.split(as_file(Image.fromarray(pixels)))
        record_text = png_chunks.utf8_text(RECORD, plain_json(record))
        with_texts = png_chunks.with_texts(saved, texts)
        return png_chunks.with_texts(png_chunks.split(with_texts), [record_text])

    def with_transparency(self) -> bytes:
        """Store the pixels with a fourth number each."""
        pixels = self.picture.pixels
        values = np.dstack([pixels, pixels[..., 0]])
        height, width = values.shape[:2]
        head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
        rows = b"".join(b"\0" + row.tobytes() for row in values)
        others = [chunk for chunk in self.chunks if chunk.kind not in (b"IHDR", b"IDAT")]
        pixels = Chunk(kind=b"IDAT", data=zlib.compress(rows))
        return written([Chunk(kind=b"IHDR", data=head), *others[:-1], pixels, others[-1]])


def plain_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def written(chunks: Iterable[Chunk]) -> bytes:
    return png_chunks.SIGNATURE + b"".join(map(png_chunks.packed, chunks))


def as_file(image: Image.Image, kind: str = "PNG") -> bytes:
    target = io.BytesIO()
    image.save(target, kind)
    return target.getvalue()


def chunk(kind: bytes, data: bytes = b"") -> Chunk:
    return Chunk(kind=kind, data=data)


def edited(it: Original, *, by: int = 1, size: int = 1) -> Pixels:
    """Make a square of the picture brighter or darker."""
    pixels = it.picture.pixels.copy()
    pixels[4 : 4 + size, 9 : 9 + size] ^= by
    return pixels


def packed_again(it: Original) -> list[Chunk]:
    """Pack the pixels harder, and cut them into many chunks."""
    data = zlib.decompress(b"".join(one.data for one in it.chunks if one.kind == b"IDAT"))
    packed = zlib.compress(data, 9)
    pieces = [chunk(b"IDAT", packed[at : at + 100]) for at in range(0, len(packed), 100)]
    others = [one for one in it.chunks if one.kind != b"IDAT"]
    return [*others[:-1], *pieces, others[-1]]


def hidden_in_pixels(it: Original) -> bytes:
    """Another lower half behind the packed pixels, as programs that unpack both at once show it."""
    *others, end = it.chunks
    return written([*others, chunk(b"IDAT", zlib.compress(bytes(999))), end])


Forge = Callable[[Original, Original], bytes]
Row = tuple[str, str, str, Forge]

OLD_TORCH = {"torch": "2.8.0"}
TURNED = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
TABLE: tuple[Row, ...] = (
    # Name, verdict, what is said ("" is nothing), how it is made of a picture and its neighbour.
    ("untouched", "identical", "", lambda it, _: it.data),
    ("packed again", "identical", "", lambda it, _: written(packed_again(it))),
    ("no words for others", "identical", "", lambda it, _: written(it.without(PARAMETERS))),
    (
        *("a comment", "identical", "not verified: tEXt Comment"),
        lambda it, _: it.with_chunks(chunk(b"tEXt", b"Comment\0nine hours of work")),
    ),
    (
        *("a rotation", "identical", "not verified: eXIf"),
        lambda it, _: it.with_chunks(chunk(b"eXIf", TURNED)),
    ),
    (
        *("an animation", "identical", "not verified: acTL, fcTL, fdAT"),
        lambda it, _: it.with_chunks(
            chunk(b"acTL", bytes([0, 0, 0, 2, 0, 0, 0, 0])), chunk(b"fcTL"), chunk(b"fdAT")
        ),
    ),
    (
        *("a text that cannot be unpacked", "identical", "not verified: zTXt broken"),
        lambda it, _: it.with_chunks(chunk(b"zTXt", b"broken\0\0no stream")),
    ),
    (
        *("an archive behind the end", "identical", "not verified: data behind the end"),
        lambda it, _: it.data + b"PK\3\4",
    ),
    (
        *("another half in the pixels", "identical", "not verified: data behind the pixels"),
        lambda it, _: hidden_in_pixels(it),
    ),
    (
        *("a name that stands twice", "altered", "“seedgrid”"),
        lambda it, _: it.with_text(RECORD, plain_json(it.record()).replace("{", '{"format":2,', 1)),
    ),
    (
        *("one pixel by 1", "altered", "pixels were changed"),
        lambda it, _: it.with_pixels(edited(it), pixels_sha256=it.picture.pixels_sha256),
    ),
    (
        *("one pixel by 1, digest in step", "altered", "the passport is the same"),
        lambda it, _: it.with_pixels(edited(it)),
    ),
    (
        *("one pixel by 1, as of an older torch", "close", "explained by torch"),
        lambda it, _: it.with_pixels(edited(it), **it.passport(**OLD_TORCH)),
    ),
    (
        *("a bright square, as of an older torch", "drifted", "more than torch"),
        lambda it, _: it.with_pixels(edited(it, by=64, size=9), **it.passport(**OLD_TORCH)),
    ),
    (
        *("one pixel by 1, no passport", "drifted", "no passport"),
        lambda it, _: it.with_pixels(edited(it), passport={}),
    ),
    (
        *("its neighbour's pixels", "altered", "the passport is the same"),
        lambda it, other: it.with_pixels(other.picture.pixels),
    ),
    (
        *("the digest of nobody", "altered", "digest in the file is of others"),
        lambda it, _: it.with_record(pixels_sha256="0" * 64),
    ),
    (
        *("cut", "drifted", "another size"),
        lambda it, _: it.with_pixels(it.picture.pixels[:-1]),
    ),
    (
        *("other words for others", "altered", "“parameters”"),
        lambda it, _: it.with_text(
            PARAMETERS, parameters_text(it.picture.recipe.replace(prompt="a ship"))
        ),
    ),
    (
        *("second words for others", "altered", "“parameters”"),
        lambda it, _: it.with_chunks(chunk(b"tEXt", b"parameters\0a ship")),
    ),
    (
        *("a record in another spelling", "altered", "“seedgrid”"),
        lambda it, _: it.with_text(RECORD, json.dumps(it.record(), indent=1)),
    ),
    (
        *("transparency", "altered", "another form"),
        lambda it, _: it.with_transparency(),
    ),
    (
        *("typed in another language", "identical", "what was typed is not verified"),
        lambda it, _: it.with_record(**it.recipe(typed_prompt="王さま")),
    ),
    ("no record", "impossible", "no recipe", lambda it, _: written(it.without(RECORD))),
    (
        *("two records", "impossible", "two records"),
        lambda it, _: it.with_chunks(png_chunks.plain_text(RECORD, plain_json(it.record()))),
    ),
    (
        *("other weights", "impossible", "are not those"),
        lambda it, _: it.with_record(
            **it.recipe(model=it.record()["recipe"]["model"] | {"weights_sha256": "0" * 64})
        ),
    ),
    (
        *("no such device, and more behind the end", "impossible", "not verified: data"),
        lambda it, _: it.with_record(**it.passport(device="xpu:9")) + b"more",
    ),
    (
        *("a JPEG by this name", "impossible", "give a PNG"),
        lambda it, _: as_file(Image.fromarray(it.picture.pixels), "JPEG"),
    ),
    ("cut off", "impossible", "it ends too early", lambda it, _: it.data[:-60]),
)
