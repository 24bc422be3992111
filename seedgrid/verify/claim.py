"""A claim: a picture's pixels with the recipe and passport of its file.

A file of SeedGrid is an 8-bit RGB PNG, not interlaced, with the texts `seedgrid` and `parameters`
as SeedGrid writes them. All other chunks and bytes are listed as not verified.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import pixel_steps
from seedgrid.formats import png, png_chunks
from seedgrid.formats.own_texts import PARAMETERS_KEY
from seedgrid.formats.png_chunks import Chunk

_PIXEL_KINDS: Final = frozenset({b"IHDR", b"IDAT", b"IEND"})
_RGB: Final = 2
_KEY_LETTERS: Final = 40  # Longer keys of other texts are cut in a report


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A picture to verify; `pixels` is None if its width or height is not the recipe's."""

    name: str  # a path or an id, for the report
    pixels: Pixels | None = field(repr=False, compare=False)  # decoded from the file
    pixels_sha256: str  # of the pixels when the file was written, as the file says
    recipe: Recipe
    passport: Passport
    has_own_form: bool = True  # whether the pixels are stored as SeedGrid stores them
    altered_texts: tuple[str, ...] = ()  # keys of texts that are not as SeedGrid writes them
    unverified: tuple[str, ...] = ()  # names of other chunks and bytes in the file

    @property
    def is_altered(self) -> bool:
        """Whether the pixels' size or SHA-256 is not the one that the file says."""
        return self.pixels is None or pixels_sha256(self.pixels) != self.pixels_sha256


def read_claim(path: Path) -> Claim:
    """Read a PNG file as a claim; raise PictureError if it is damaged or has no recipe."""
    data = png.read_bytes(path)
    chunks = png_chunks.split(data)
    record = png.record_of(chunks)
    header = png_chunks.header(chunks)
    has_size = (header.width, header.height) == (record.recipe.width, record.recipe.height)
    form = (header.bit_depth, header.colour_type, header.is_interlaced)
    has_form = form == (8, _RGB, False)
    altered, others = _texts_and_others(chunks, record.recipe)
    if has_size and has_form and _has_bytes_behind_pixels(chunks, record.recipe):
        others.append("data behind the pixels")
    if len(data) > len(png_chunks.SIGNATURE) + sum(len(chunk.data) + 12 for chunk in chunks):
        others.append("data behind the end")
    return Claim(
        name=str(path),
        pixels=png.read_pixels(data) if has_size else None,
        pixels_sha256=record.pixels_sha256,
        recipe=record.recipe,
        passport=record.passport,
        has_own_form=has_form,
        altered_texts=tuple(dict.fromkeys(altered)),
        unverified=tuple(dict.fromkeys(others)),
    )


def _texts_and_others(chunks: Sequence[Chunk], recipe: Recipe) -> tuple[list[str], list[str]]:
    """Return the keys of altered texts, and the names of chunks that SeedGrid does not write."""
    altered, others, mark = [], [], png.mark_of(recipe)
    for chunk in chunks:
        key = png_chunks.key_of(chunk).decode("latin-1")
        if key == png.CHUNK_KEY:
            altered += [] if png.is_record_as_written(chunk) else [key]
        elif key == PARAMETERS_KEY:
            altered += [] if png.is_parameters_as_written(chunk, recipe) else [key]
        elif chunk.kind not in _PIXEL_KINDS and chunk != mark:
            shown = key[:_KEY_LETTERS] if key.isprintable() else "?"
            others.append(f"{chunk.kind.decode('latin-1')} {shown}".strip())
    return altered, others


def _has_bytes_behind_pixels(chunks: Sequence[Chunk], recipe: Recipe) -> bool:
    """Tell whether the data go on after the last row of pixels, or their checksum is wrong."""
    unpacker = zlib.decompressobj()
    remaining = recipe.height * (1 + 3 * recipe.width) + 1
    try:
        for chunk in chunks:
            if chunk.kind == b"IDAT" and chunk.data:
                if unpacker.eof:
                    return True
                remaining -= len(unpacker.decompress(chunk.data, remaining))
                if remaining <= 0:
                    return True
    except zlib.error:
        return True  # A wrong checksum, which image readers ignore.
    return bool(unpacker.unused_data)


def pixel_steps_of(path: Path) -> int:
    """Return pixels times steps of a picture's batch; 0 if the file has no readable recipe."""
    try:
        recipe = png.record_of(png_chunks.split(png.read_bytes(path))).recipe
    except PictureError:
        return 0
    return recipe.lock_width * pixel_steps(recipe)
