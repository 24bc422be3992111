"""Sheets: several pictures in one, side by side.

Knows Pillow and nothing of recipes or of the library.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from seedgrid.core.errors import PictureError
from seedgrid.formats import png

_SOFTWARE: Final = "SeedGrid sheet"


def make_grid(images: Sequence[Image.Image], rows: int, columns: int) -> Image.Image:
    """Paste images of one size into rows and columns, as diffusers' `make_image_grid` does.

    Args:
        images: At most `rows * columns`, row by row, all of the first one's size.
        rows: From the top.
        columns: From the left.

    Returns:
        RGB; cells without a picture stay black.

    Raises:
        ValueError: There are more images than cells, or none.
    """
    if not 0 < len(images) <= rows * columns:
        raise ValueError(f"{len(images)} images do not fit {rows} x {columns} cells")
    width, height = images[0].size
    sheet = Image.new("RGB", (columns * width, rows * height))
    for index, image in enumerate(images):
        sheet.paste(image, (index % columns * width, index // columns * height))
    return sheet


def make_sheet(images: Sequence[Image.Image]) -> Image.Image:
    """Paste images of one size as square as can be: four make 2x2, five to nine 3 columns."""
    columns = math.isqrt(len(images) - 1) + 1 if images else 1
    return make_grid(images, -(-len(images) // columns), columns)


def encode(sheet: Image.Image) -> bytes:
    """Write a sheet as a PNG file that `is_sheet` knows again."""
    texts = PngInfo()
    texts.add_text("Software", _SOFTWARE)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG", pnginfo=texts, compress_level=1)
    return buffer.getvalue()


def is_sheet(path: Path) -> bool:
    """Tell whether a PNG file is a sheet: it has no recipe, and nobody should miss one."""
    try:
        return png.read_texts(path).get("Software") == _SOFTWARE
    except PictureError:
        return False
