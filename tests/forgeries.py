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
    """An honest picture, what can be done to its file, and the pixels of its neighbour."""

    picture: Picture
    neighbour: Pixels

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


Forge = Callable[[Original], bytes]

OLD_TORCH = {"torch": "2.8.0"}
TURNED = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
ANIMATED = (chunk(b"acTL", bytes([0, 0, 0, 2, 0, 0, 0, 0])), chunk(b"fcTL"), chunk(b"fdAT"))
COMMENT = chunk(b"tEXt", b"Comment\0nine hours of work")
SECOND_WORDS = chunk(b"tEXt", b"parameters\0a ship")
BROKEN = chunk(b"zTXt", b"broken\0\0no stream")


def with_a_name_twice(it: Original) -> bytes:
    return it.with_text(RECORD, plain_json(it.record()).replace("{", '{"format":2,', 1))


def with_other_parameters(it: Original) -> bytes:
    return it.with_text(PARAMETERS, parameters_text(it.picture.recipe.replace(prompt="a ship")))


def with_two_records(it: Original) -> bytes:
    return it.with_chunks(png_chunks.plain_text(RECORD, plain_json(it.record())))


def with_other_weights(it: Original) -> bytes:
    model = it.record()["recipe"]["model"] | {"weights_sha256": "0" * 64}
    return it.with_record(**it.recipe(model=model))


def with_a_pixel_edited(it: Original) -> bytes:
    return it.with_pixels(edited(it), pixels_sha256=it.picture.pixels_sha256)


def with_a_bright_square(it: Original) -> bytes:
    return it.with_pixels(edited(it, by=64, size=9), **it.passport(**OLD_TORCH))


def without_a_device(it: Original) -> bytes:
    return it.with_record(**it.passport(device="xpu:9")) + b"more"


def as_jpeg(it: Original) -> bytes:
    return as_file(Image.fromarray(it.picture.pixels), "JPEG")


TABLE: dict[str, dict[str, tuple[str, Forge]]] = {
    # By verdict and name: what is said ("" is nothing), and how it is made of a picture.
    "identical": {
        "untouched": ("", lambda it: it.data),
        "packed again": ("", lambda it: written(packed_again(it))),
        "no words for others": ("", lambda it: written(it.without(PARAMETERS))),
        "a comment": ("not verified: tEXt Comment", lambda it: it.with_chunks(COMMENT)),
        "a rotation": ("not verified: eXIf", lambda it: it.with_chunks(chunk(b"eXIf", TURNED))),
        "an animation": ("not verified: acTL, fcTL, fdAT", lambda it: it.with_chunks(*ANIMATED)),
        "no packed text": ("not verified: zTXt broken", lambda it: it.with_chunks(BROKEN)),
        "an archive": ("not verified: data behind the end", lambda it: it.data + b"PK\3\4"),
        "another half": ("not verified: data behind the pixels", hidden_in_pixels),
        "typed in another language": (
            "what was typed is not verified",
            lambda it: it.with_record(**it.recipe(typed_prompt="王さま")),
        ),
    },
    "altered": {
        "a name that stands twice": ("“seedgrid”", with_a_name_twice),
        "one pixel by 1": ("pixels were changed", with_a_pixel_edited),
        "and the digest": ("the passport is the same", lambda it: it.with_pixels(edited(it))),
        "its neighbour's": ("the passport is the same", lambda it: it.with_pixels(it.neighbour)),
        "the digest of nobody": (
            "digest in the file is of others",
            lambda it: it.with_record(pixels_sha256="0" * 64),
        ),
        "other words for others": ("“parameters”", with_other_parameters),
        "second words for others": ("“parameters”", lambda it: it.with_chunks(SECOND_WORDS)),
        "a record in another spelling": (
            "“seedgrid”",
            lambda it: it.with_text(RECORD, json.dumps(it.record(), indent=1)),
        ),
        "transparency": ("another form", lambda it: it.with_transparency()),
    },
    "close": {
        "one pixel by 1, as of an older torch": (
            "explained by torch",
            lambda it: it.with_pixels(edited(it), **it.passport(**OLD_TORCH)),
        )
    },
    "drifted": {
        "a bright square, as of an older torch": ("more than torch", with_a_bright_square),
        "no passport": ("no passport", lambda it: it.with_pixels(edited(it), passport={})),
        "cut": ("another size", lambda it: it.with_pixels(it.picture.pixels[:-1])),
    },
    "impossible": {
        "no record": ("no recipe", lambda it: written(it.without(RECORD))),
        "two records": ("two records", with_two_records),
        "other weights": ("are not those", with_other_weights),
        "no such device, and more behind the end": ("not verified: data", without_a_device),
        "a JPEG by this name": ("give a PNG", as_jpeg),
        "cut off": ("it ends too early", lambda it: it.data[:-60]),
    },
}
