"""Writes recipes into PNG files and reads them: the `seedgrid` chunk, and texts for other programs.

Files are parsed with limits (png_chunks.py) before Pillow sees them; a fault is a `PictureError`.
"""

import io
import json
from pathlib import Path
from typing import Annotated, Final

from PIL import Image
from pydantic import Field, ValidationError

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Lineage, Picture, Pixels, pixels_sha256
from seedgrid.core.recipe import Digest, Passport, Recipe, Value, first_reason
from seedgrid.formats import own_texts, png_chunks
from seedgrid.formats.png_chunks import Chunk
from seedgrid.storage.unpacking import MAX_METADATA_BYTES, as_rgb, unpacked

CHUNK_KEY: Final = "seedgrid"
SHEET_SOFTWARE: Final = "SeedGrid sheet"  # What a sheet's file names as its maker
Source = Path | bytes
_SIGNATURE: Final = b"caBX"  # the kind of a C2PA signature's chunk
# zlib level 1 writes a picture three times as fast as level 6 for a tenth more bytes.
_COMPRESS_LEVEL: Final = 1


class PngRecord(Value):
    """The `seedgrid` record of a picture, in the order of its JSON; pixels are not checked."""

    format: Annotated[int, Field(ge=1, le=1)] = 1
    recipe: Recipe
    passport: Passport
    lineage: Lineage
    pixels_sha256: Digest  # Over the RGB bytes, row by row, when it was written


def encode(picture: Picture) -> bytes:
    """Write a picture as a PNG file with its recipe, passport and lineage inside.

    Equal pictures give equal bytes with one release of Pillow; a wrong size is refused.
    """
    if picture.pixels.shape[:2] != (picture.recipe.height, picture.recipe.width):
        raise PictureError("picture_altered")
    record = PngRecord(
        recipe=picture.recipe,
        passport=picture.passport,
        lineage=picture.lineage,
        pixels_sha256=picture.pixels_sha256,
    )
    texts = (*_texts_of(record), mark_of(picture.recipe))
    return png_chunks.with_texts(png_chunks.split(pack(picture.pixels)), texts)


def pack(pixels: Pixels) -> bytes:
    """Write pixels, (height, width, 3) uint8, as a PNG file without any texts."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=_COMPRESS_LEVEL)
    return buffer.getvalue()


def read(source: Source) -> PngRecord:
    """Read the record of a SeedGrid picture, without decoding its pixels.

    Raise for a bad file, a foreign one (`picture_without_recipe`), a recipe that cannot be read
    (`picture_record`), or another size than the recipe's (`picture_altered`).
    """
    chunks = png_chunks.split(read_bytes(source))
    size, record = png_chunks.header(chunks), record_of(chunks)
    if (size.width, size.height) != (record.recipe.width, record.recipe.height):
        raise PictureError("picture_altered")
    return record


def read_checked(source: Source) -> tuple[PngRecord, Pixels]:
    """Read record and pixels, and check the pixels' digest."""
    data = read_bytes(source)
    record, pixels = read(data), read_pixels(data)
    if pixels_sha256(pixels) != record.pixels_sha256:
        raise PictureError("picture_altered")
    return record, pixels


def read_pixels(source: Source) -> Pixels:
    """Decode a PNG to RGB, (height, width, 3), uint8, without alpha; raise if bad or too large."""
    data = read_bytes(source)
    png_chunks.header(png_chunks.split(data))
    try:
        with unpacked(data) as image:
            return as_rgb(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise PictureError("picture_damaged", reason="its pixels cannot be unpacked") from error


def read_size(source: Source) -> tuple[int, int]:
    """Return width and height of any PNG file in pixels, without decoding; raise if it is bad."""
    size = png_chunks.header(png_chunks.split(read_bytes(source)))
    return size.width, size.height


def read_texts(source: Source) -> dict[str, str | None]:
    """Read a PNG's texts by key, as `png_chunks.texts` does; raise if the file is bad."""
    chunks = png_chunks.split(read_bytes(source))
    png_chunks.header(chunks)
    return png_chunks.texts(chunks)


def is_sheet(path: Path) -> bool:
    """Tell whether a PNG file is a sheet, which has no recipe of its own."""
    try:
        texts = read_texts(path)
    except PictureError:
        return False
    return texts.get("Software") == SHEET_SOFTWARE and CHUNK_KEY not in texts


def rewrite(png: bytes, *, lineage: Lineage) -> bytes:
    """Return a SeedGrid picture with another lineage, without a signature, which would be wrong."""
    chunks = tuple(chunk for chunk in png_chunks.split(png) if chunk.kind != _SIGNATURE)
    record = record_of(chunks).model_copy(update={"lineage": lineage})
    return png_chunks.with_texts(chunks, _texts_of(record))


def mark_of(recipe: Recipe) -> Chunk:
    """Return the XMP chunk that marks a picture as generated."""
    return png_chunks.utf8_text(
        own_texts.MARK_KEY, own_texts.mark_text(has_start=bool(recipe.kept_pixels))
    )


def is_record_as_written(chunk: Chunk) -> bool:
    """Tell whether a record's chunk is byte for byte as `encode` writes it."""
    text = png_chunks.texts([chunk]).get(CHUNK_KEY)
    return text is not None and chunk == png_chunks.utf8_text(CHUNK_KEY, _json(json.loads(text)))


def is_parameters_as_written(chunk: Chunk, recipe: Recipe) -> bool:
    """Tell whether the `parameters` text is the recipe's; the release in it may differ."""
    text = png_chunks.texts([chunk]).get(own_texts.PARAMETERS_KEY)
    if text is None or chunk != png_chunks.plain_text(own_texts.PARAMETERS_KEY, text):
        return False
    return own_texts.without_version(text) == own_texts.without_version(
        own_texts.parameters_text(recipe)
    )


def read_bytes(source: Source) -> bytes:
    """Read at most 64 MB and one byte; raise `picture_missing` or `picture_unreadable`."""
    if isinstance(source, bytes):
        return source
    try:
        if not source.is_file():
            raise PictureError("picture_missing", value=str(source))
        with source.open("rb") as file:
            data = file.read(png_chunks.MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PictureError("picture_unreadable", value=str(source), reason=str(error)) from error
    return data


def _texts_of(record: PngRecord) -> tuple[Chunk, Chunk]:
    text = _json(record.model_dump(mode="json"))
    if len(text.encode()) > MAX_METADATA_BYTES:
        raise PictureError("picture_text", value=CHUNK_KEY)
    parameters = png_chunks.plain_text(
        own_texts.PARAMETERS_KEY, own_texts.parameters_text(record.recipe)
    )
    return png_chunks.utf8_text(CHUNK_KEY, text), parameters


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def record_of(chunks: tuple[Chunk, ...]) -> PngRecord:
    """Read the record from a file's chunks; the picture's size is not checked."""
    records = [chunk for chunk in chunks if png_chunks.key_of(chunk) == CHUNK_KEY.encode()]
    if not records:
        raise PictureError("picture_without_recipe")
    if len(records) > 1:
        raise PictureError("picture_record", reason="it holds two records")
    text = png_chunks.texts(records)[CHUNK_KEY]
    if text is None:
        raise PictureError("picture_text", value=CHUNK_KEY)
    try:
        record = PngRecord.model_validate_json(text)
        _json(json.loads(text))  # The passport keeps unknown values, but no NaN or 1e999.
    except ValidationError as error:
        raise PictureError("picture_record", reason=first_reason(error, whole="record")) from error
    except ValueError as error:
        raise PictureError("picture_record", reason=str(error)) from error
    return record
