"""Pictures with words under them, laid out on pages: headings, rows of cells, captions.

Knows Pillow and nothing of recipes or of the library.

    pages = draw([Block(heading="a red fox", cells=(Cell(image=image, caption="seed 7"),))])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from seedgrid.storage.assets import assets_folder

CELL_PX: Final = 256
MAX_PAGE_PX: Final = 60_000

_MARGIN: Final = 24
_GAP: Final = 12
_LINE: Final = 20
_TEXT_PX: Final = 15
_HEADING_PX: Final = 18
_CAPTION_LINES: Final = 2
_HEADING_LINES: Final = 3
_PAPER: Final = "#ffffff"
_INK: Final = "#1b1b1f"
_FAINT: Final = "#d8d8de"
_CHOSEN: Final = "#d9480f"

_INTER: Final = assets_folder() / "fonts" / "inter.woff2"
# Inter holds no Chinese or Korean: these are what systems bring, the first that is there is used.
_SYSTEM_FONTS: Final = (
    "NotoSansCJK-Regular.ttc",
    "PingFang.ttc",
    "AppleSDGothicNeo.ttc",
    "msyh.ttc",
    "malgun.ttf",
    "wqy-zenhei.ttc",
    "DejaVuSans.ttf",
)

Font = ImageFont.FreeTypeFont


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One picture with its caption.

    Attributes:
        image: None draws an empty frame: the picture is missing.
        chosen: Draws a coloured frame: the artist went on from here.
    """

    image: Image.Image | None
    caption: str
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class Block:
    """A heading and its cells, row by row."""

    heading: str
    cells: tuple[Cell, ...]


def draw(
    blocks: Sequence[Block], *, columns: int, page_height: int | None = None
) -> list[Image.Image]:
    """Draw blocks one under the other.

    Args:
        blocks: At least one.
        columns: Cells in a row.
        page_height: A new page begins before a block that would go beyond it; None is one page.

    Returns:
        RGB pages of equal width, each as high as what is on it.
    """
    width = 2 * _MARGIN + columns * CELL_PX + (columns - 1) * _GAP
    drawn = [_draw_block(block, columns, width) for block in blocks]
    pages: list[list[Image.Image]] = [[]]
    limit = min(page_height or MAX_PAGE_PX, MAX_PAGE_PX)
    for part in drawn:
        if pages[-1] and 2 * _MARGIN + sum(p.height for p in pages[-1]) + part.height > limit:
            pages.append([])
        pages[-1].append(part)
    return [_stack(parts, width) for parts in pages]


def _stack(parts: Sequence[Image.Image], width: int) -> Image.Image:
    page = Image.new("RGB", (width, 2 * _MARGIN + sum(part.height for part in parts)), _PAPER)
    top = _MARGIN
    for part in parts:
        page.paste(part, (0, top))
        top += part.height
    return page


def _draw_block(block: Block, columns: int, width: int) -> Image.Image:
    heading = wrap(block.heading, _HEADING_PX, width - 2 * _MARGIN, _HEADING_LINES)
    num_rows = -(-len(block.cells) // columns)
    row_height = CELL_PX + _CAPTION_LINES * _LINE + _GAP
    top = len(heading) * (_LINE + 4) + _GAP
    image = Image.new("RGB", (width, top + num_rows * row_height + _GAP), _PAPER)
    pencil = ImageDraw.Draw(image)
    for number, line in enumerate(heading):
        _write(pencil, (_MARGIN, number * (_LINE + 4)), line, _HEADING_PX)
    for index, cell in enumerate(block.cells):
        left = _MARGIN + index % columns * (CELL_PX + _GAP)
        _draw_cell(image, pencil, cell, left, top + index // columns * row_height)
    return image


def _draw_cell(
    image: Image.Image, pencil: ImageDraw.ImageDraw, cell: Cell, left: int, top: int
) -> None:
    frame = (left, top, left + CELL_PX - 1, top + CELL_PX - 1)
    if cell.image is None:
        pencil.rectangle(frame, outline=_FAINT)
    else:
        small = _fitted(cell.image)
        place = (left + (CELL_PX - small.width) // 2, top + (CELL_PX - small.height) // 2)
        image.paste(small, place)
    if cell.chosen:
        pencil.rectangle(frame, outline=_CHOSEN, width=4)
    for number, line in enumerate(wrap(cell.caption, _TEXT_PX, CELL_PX, _CAPTION_LINES)):
        _write(pencil, (left, top + CELL_PX + 2 + number * _LINE), line, _TEXT_PX)


def _fitted(image: Image.Image) -> Image.Image:
    scale = CELL_PX / max(image.size)
    size = tuple(max(1, round(side * scale)) for side in image.size)
    return image.convert("RGB").resize((size[0], size[1]), Image.Resampling.LANCZOS)


def wrap(text: str, size_px: int, width_px: int, num_lines: int) -> list[str]:
    """Break a text into lines that fit; what is too much ends in an ellipsis.

    Scripts without spaces break between letters.
    """
    font = _font(text, size_px)
    lines: list[str] = []
    rest = " ".join(text.split())
    while rest and len(lines) < num_lines:
        count = _fitting(rest, font, width_px)
        if count < len(rest) and len(lines) == num_lines - 1:
            short = rest[: _fitting(rest, font, width_px - int(font.getlength("…")))]
            return [*lines, short.rstrip() + "…"]
        space = rest.rfind(" ", 0, count + 1)
        if count < len(rest) and space > 0:
            count = space
        lines.append(rest[:count].rstrip())
        rest = rest[count:].lstrip()
    return lines


def _fitting(text: str, font: Font, width_px: int) -> int:
    """Return how many letters from the beginning fit; at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if font.getlength(text[:middle]) <= width_px else (low, middle - 1)
        )
    return low


def _write(pencil: ImageDraw.ImageDraw, place: tuple[int, int], text: str, size_px: int) -> None:
    pencil.text(place, text, font=_font(text, size_px), fill=_INK)


def _font(text: str, size_px: int) -> Font:
    """Return the first font that has every letter; the first of all when none has."""
    fonts = _fonts(size_px)
    letters = frozenset(text)
    return next((font for font in fonts if all(_has(font, letter) for letter in letters)), fonts[0])


@functools.cache
def _fonts(size_px: int) -> tuple[Font, ...]:
    found = []
    for name in (str(_INTER), *_SYSTEM_FONTS):
        try:
            found.append(ImageFont.truetype(name, size_px))
        except OSError:
            continue
    default = ImageFont.load_default(size_px)
    return (*found, default) if isinstance(default, ImageFont.FreeTypeFont) else tuple(found)


@functools.lru_cache(maxsize=20_000)
def _has(font: Font, letter: str) -> bool:
    """Tell whether a font draws more than its sign for "missing"."""
    return letter.isspace() or bytes(font.getmask(letter)) != bytes(font.getmask("\U0010ffff"))
