"""Sheets: several pictures in one PNG file, written band by band, so that few are in memory.

Knows Pillow and nothing of recipes or of the library.

    with path.open("wb") as file:
        write_grid(file, (Image.open(each) for each in paths), count=4)
"""

import io
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final

from PIL import Image

from seedgrid.core.errors import PictureError
from seedgrid.formats import png, png_chunks
from seedgrid.formats.png_chunks import Chunk

_SOFTWARE: Final = "SeedGrid sheet"
_COMPRESS_LEVEL: Final = 1


def write_grid(
    file: BinaryIO, images: Iterable[Image.Image], *, count: int, rows: int | None = None
) -> None:
    """Write images of one size in rows and columns, as diffusers' `make_image_grid` does.

    Args:
        file: Takes the PNG.
        images: Row by row, all of the first one's size; made when they are taken.
        count: How many, at least one; cells without a picture stay black.
        rows: From the top; by default as square as can be: four make 2x2, five to nine 3 columns.
    """
    columns = count // rows if rows else math.isqrt(count - 1) + 1
    num_rows = -(-count // columns)
    taken = iter(images)
    first = next(taken)
    width, height = columns * first.width, first.height
    taken = chain([first], taken)
    bands = (_row(islice(taken, columns), (width, height)) for _ in range(num_rows))
    write_png(file, width, num_rows * height, bands)


def make_sheet(images: Sequence[Image.Image]) -> Image.Image:
    """Return images of one size in one, as `write_grid` writes them; at least one."""
    buffer = io.BytesIO()
    write_grid(buffer, images, count=len(images))
    return Image.open(buffer, formats=["PNG"])


def write_png(file: BinaryIO, width: int, height: int, bands: Iterable[Image.Image]) -> None:
    """Write a PNG file that `is_sheet` knows again."""

    def write(kind: bytes, data: bytes) -> None:
        file.write(png_chunks.packed(Chunk(kind=kind, data=data)))

    file.write(png_chunks.SIGNATURE)
    write(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    write(b"tEXt", b"Software\0" + _SOFTWARE.encode("latin-1"))
    packer = zlib.compressobj(_COMPRESS_LEVEL)
    for band in bands:
        if data := packer.compress(_with_filters(band)):
            write(b"IDAT", data)
    write(b"IDAT", packer.flush())
    write(b"IEND", b"")


def is_sheet(path: Path) -> bool:
    """Tell whether a PNG file is a sheet: it has no recipe, and nobody should miss one."""
    try:
        texts = png.read_texts(path)
    except PictureError:
        return False
    return texts.get("Software") == _SOFTWARE and png.CHUNK_KEY not in texts


def _row(images: Iterable[Image.Image], size: tuple[int, int]) -> Image.Image:
    row = Image.new("RGB", size)
    for index, image in enumerate(images):
        row.paste(image, (index * image.width, 0))
    return row


def _with_filters(band: Image.Image) -> bytes:
    """Return the rows of a band as PNG has them: each behind the number of its filter, none."""
    data, stride = band.tobytes(), 3 * band.width
    return b"".join(b"\0" + data[at : at + stride] for at in range(0, len(data), stride))
