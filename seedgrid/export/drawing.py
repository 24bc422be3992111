"""Draws pages of pictures with headings and captions."""

import functools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from seedgrid.core.errors import InputError
from seedgrid.storage.files import assets_folder

# Sizes of pictures: the largest is used that keeps a page in `_MAX_PIXELS` and `_MAX_SIDE_PX`
_CELLS_PX: Final = (256, 192, 128, 96, 64)
_MAX_PIXELS: Final = 24_000_000
_MAX_SIDE_PX: Final = 60_000
_CAPTION_FROM_PX: Final = 128  # smaller pictures have no captions
_MARGIN: Final = 24
_GAP: Final = 12
_CAPTION_PX, _CAPTION_LINE, _CAPTION_LINES = 15, 20, 2
_HEADING_PX, _HEADING_LINE, _HEADING_LINES = 18, 24, 3
_PAPER: Final = "#ffffff"
_FAINT: Final = "#d8d8de"
_CHOSEN: Final = "#d9480f"
_INK: Final = "#1b1b1f"
_QUIET: Final = "#6b6b73"

_INTER: Final = assets_folder() / "fonts" / "inter.woff2"
# Inter has no Chinese or Korean letters: fonts of common systems, the first available one is used.
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
    """One picture with its caption."""

    # Returns the picture when it is drawn; None for a missing one, of which a frame is drawn
    load: Callable[[], Image.Image | None]
    caption: str
    missing: str = ""  # added to the caption of a missing picture
    chosen: bool = False  # whether it was refined, and has a coloured frame


@dataclass(frozen=True, kw_only=True)
class Block:
    """A heading and its cells, row by row."""

    heading: str
    cells: tuple[Cell, ...]


def draw(blocks: Sequence[Block], *, columns: int, footer: str = "") -> Image.Image:
    """Draw blocks and a footer, opening pictures as they are drawn; raise `sheet_large`."""
    cell_px, width, height = _fitting_size(blocks, columns)
    page, top = Image.new("RGB", (width, height), _PAPER), _MARGIN
    for block in blocks:
        lines = _heading_lines(block, width)
        write(page, (_MARGIN, top), lines, _HEADING_PX, _HEADING_LINE)
        top += len(lines) * _HEADING_LINE + _GAP
        for number, cell in enumerate(block.cells):
            row, column = divmod(number, columns)
            corner = (_MARGIN + column * (cell_px + _GAP), top + row * _row_px(cell_px))
            _draw_cell(page, cell, corner, cell_px)
        top += -(-len(block.cells) // columns) * _row_px(cell_px) + _GAP
    lines = wrap(footer, _CAPTION_PX, width - 2 * _MARGIN, 1)
    write(page, (_MARGIN, height - _MARGIN), lines, _CAPTION_PX, _CAPTION_LINE, _QUIET)
    return page


def _fitting_size(blocks: Sequence[Block], columns: int) -> tuple[int, int, int]:
    """Return the size of a picture, and width and height of the page, in pixels."""
    for cell_px in _CELLS_PX:
        width = 2 * _MARGIN + columns * (cell_px + _GAP) - _GAP
        rows = sum(-(-len(block.cells) // columns) for block in blocks)
        headings = sum(len(_heading_lines(block, width)) * _HEADING_LINE for block in blocks)
        height = 2 * _MARGIN + headings + rows * _row_px(cell_px) + 2 * _GAP * len(blocks)
        if width * height <= _MAX_PIXELS and height <= _MAX_SIDE_PX:
            return cell_px, width, height
    raise InputError("sheet_large", field="sheet", value=f"{width}x{height}")


def _heading_lines(block: Block, width: int) -> list[str]:
    return wrap(block.heading, _HEADING_PX, width - 2 * _MARGIN, _HEADING_LINES)


def _row_px(cell_px: int) -> int:
    captions = _CAPTION_LINES * _CAPTION_LINE if cell_px >= _CAPTION_FROM_PX else 0
    return cell_px + captions + _GAP


def _draw_cell(page: Image.Image, cell: Cell, corner: tuple[int, int], cell_px: int) -> None:
    """Draw a picture in the middle of its square, its frame and its caption."""
    (left, top), pencil = corner, ImageDraw.Draw(page)
    frame = (left, top, left + cell_px - 1, top + cell_px - 1)
    picture, caption = cell.load(), cell.caption
    if picture is None:
        pencil.rectangle(frame, outline=_FAINT)
        caption = f"{caption} {cell.missing}"
    else:
        scale = cell_px / max(picture.size)
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        page.paste(small, (left + (cell_px - size[0]) // 2, top + (cell_px - size[1]) // 2))
    if cell.chosen:
        pencil.rectangle(frame, outline=_CHOSEN, width=max(2, cell_px // 50))
    if cell_px >= _CAPTION_FROM_PX:
        lines = wrap(caption, _CAPTION_PX, cell_px, _CAPTION_LINES)
        write(page, (left, top + cell_px + 2), lines, _CAPTION_PX, _CAPTION_LINE)


def wrap(text: str, size_px: int, width_px: int, num_lines: int) -> list[str]:
    """Break a text into lines, at spaces if it has any; an ellipsis ends a text that is cut."""
    font = font_for(text, size_px)
    lines: list[str] = []
    rest = " ".join(text.split())
    while rest and len(lines) < num_lines:
        count = _num_fitting(rest, font, width_px)
        if count < len(rest) and len(lines) == num_lines - 1:
            short = rest[: _num_fitting(rest, font, width_px - int(font.getlength("…")))]
            return [*lines, short.rstrip() + "…"]
        space = rest.rfind(" ", 0, count + 1)
        if count < len(rest) and space > 0:
            count = space
        lines.append(rest[:count].rstrip())
        rest = rest[count:].lstrip()
    return lines


def write(
    image: Image.Image,
    place: tuple[int, int],
    lines: Sequence[str],
    size_px: int,
    line_px: int,
    colour: str = _INK,
) -> None:
    """Draw lines from the upper left corner `place`, each in the first font with its letters."""
    pencil, (left, top) = ImageDraw.Draw(image), place
    for number, line in enumerate(lines):
        font = font_for(line, size_px)
        pencil.text((left, top + number * line_px), line, font=font, fill=colour)


def font_for(text: str, size_px: int) -> Font:
    """Return the first font with every letter of a text, else the first font."""
    fonts = _fonts(size_px)
    letters = frozenset(text)
    return next((font for font in fonts if all(_has(font, letter) for letter in letters)), fonts[0])


def _num_fitting(text: str, font: Font, width_px: int) -> int:
    """Return how many letters of a text fit into a width, at least one."""
    counts = range(1, len(text) + 1)
    fitting = bisect_right(counts, float(width_px), key=lambda count: font.getlength(text[:count]))
    return max(1, fitting)


@functools.cache
def _fonts(size_px: int) -> tuple[Font, ...]:
    fonts = []
    for name in (str(_INTER), *_SYSTEM_FONTS):
        try:
            fonts.append(ImageFont.truetype(name, size_px))
        except OSError:
            continue
    default = ImageFont.load_default(size_px)
    return (*fonts, default) if isinstance(default, ImageFont.FreeTypeFont) else tuple(fonts)


@functools.lru_cache(maxsize=20_000)
def _has(font: Font, letter: str) -> bool:
    """Tell whether a font has a letter; no font has U+10FFFF, so missing ones look like it."""
    return letter.isspace() or bytes(font.getmask(letter)) != bytes(font.getmask("\U0010ffff"))
