"""An honest picture of this machine, and how a PNG file is put together by hand."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.formats import png, png_chunks
from seedgrid.formats.parameters import PARAMETERS_KEY, parameters_text
from seedgrid.formats.png_chunks import Chunk

_ADAM7: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""Left, top, step to the right and step down of each pass."""


@dataclass(frozen=True)
class Original:
    """An honest picture: what its file holds."""

    data: bytes

    @cached_property
    def pixels(self) -> Pixels:
        return png.read_pixels(self.data)

    @property
    def record(self) -> dict[str, Any]:
        """The JSON of its chunk, a new copy each time."""
        return dict(json.loads(png.read_texts(self.data)[png.CHUNK_KEY]))

    @cached_property
    def recipe(self) -> Recipe:
        return png.read(self.data).recipe

    @cached_property
    def passport(self) -> Passport:
        return png.read(self.data).passport

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        return png_chunks.split(self.data)

    def with_pixels(self, pixels: Pixels, **changes: Any) -> bytes:
        """Put other pixels in, with their own digest unless another is given."""
        record = self.record | {"pixels_sha256": pixels_sha256(pixels)} | changes
        return with_record(saved(Image.fromarray(pixels)), record)

    def with_record(self, **changes: Any) -> bytes:
        """Change the record and leave the pixels."""
        return with_record(self.data, self.record | changes)

    def with_recipe(self, **changes: Any) -> bytes:
        return self.with_record(recipe=self.record["recipe"] | changes)

    def with_passport(self, **changes: Any) -> bytes:
        return self.with_record(passport=self.record["passport"] | changes)

    def data_with_words(self, **changes: Any) -> bytes:
        """Let the text for other programs be that of another recipe."""
        return _with_words(self.data, self.recipe.replace(**changes))

    def with_recipe_and_words(self, recipe: Recipe, **changes: Any) -> bytes:
        """Change the recipe, and let the text for other programs be that of the changed one."""
        return _with_words(self.with_recipe(**changes), recipe)

    def with_chunks(self, *added: Chunk, at_the_end: bool = False) -> bytes:
        """Add chunks before the pixels, or behind them."""
        place = len(self.chunks) - 1 if at_the_end else 1
        return packed([*self.chunks[:place], *added, *self.chunks[place:]])

    def from_image(self, image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
        """Let another program save the picture, and keep the record."""
        return with_record(saved(image, form, **options), self.record)

    def text_is(self, text: str) -> bytes:
        """Put another text in the place of the record."""
        return png_chunks.with_texts(self.chunks, [png_chunks.utf8_text(png.CHUNK_KEY, text)])


def with_record(data: bytes, record: dict[str, Any]) -> bytes:
    text = png_chunks.utf8_text(png.CHUNK_KEY, json.dumps(record))
    return png_chunks.with_texts(png_chunks.split(data), [text])


def _with_words(data: bytes, recipe: Recipe) -> bytes:
    text = png_chunks.plain_text(PARAMETERS_KEY, parameters_text(recipe))
    return png_chunks.with_texts(png_chunks.split(data), [text])


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def packed(chunks: Sequence[Chunk]) -> bytes:
    """Write chunks as they are, also what no program would write."""
    return png_chunks.SIGNATURE + b"".join(
        struct.pack(">I", len(chunk.data))
        + chunk.kind
        + chunk.data
        + struct.pack(">I", zlib.crc32(chunk.data, zlib.crc32(chunk.kind)))
        for chunk in chunks
    )


def drawn(values: NDArray[Any], colour: int, *, is_interlaced: bool = False) -> list[Chunk]:
    """Write rows of numbers as a PNG file's chunks by hand.

    Args:
        values: Shape (height, width, channels), uint8 or uint16.
        colour: PNG's number: 0 grey, 2 RGB, 4 grey and alpha, 6 RGBA.
        is_interlaced: Whether the rows lie in Adam7's seven passes.
    """
    height, width = values.shape[:2]
    depth = values.dtype.itemsize * 8
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(is_interlaced))
    passes = _ADAM7 if is_interlaced else ((0, 0, 1, 1),)
    rows = [
        b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes()
        for left, top, right, down in passes
        for row in values[top::down, left::right]
        if row.size
    ]
    return [
        Chunk(kind=b"IHDR", data=head),
        Chunk(kind=b"IDAT", data=zlib.compress(b"".join(rows))),
        Chunk(kind=b"IEND", data=b""),
    ]


def as_eight_bits(pixels: Pixels) -> NDArray[np.uint16]:
    """Widen to 16 bits so that the upper eight are the picture's."""
    return pixels.astype(np.uint16) << 8
