"""Pictures with words under them, laid out on pages: headings, rows of cells, captions.

A page is drawn band by band, and a picture is opened when its row is drawn: memory holds one row,
whatever the number of pictures. Knows Pillow and nothing of recipes or of the library.

    pages = lay_out([Block(heading="a red fox", cells=(Cell(open=load, caption="seed 7"),))])
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from seedgrid.storage.assets import assets_folder

CELL_PX: Final = 256
MAX_PAGE_PX: Final = 60_000

_MARGIN: Final = 24
_GAP: Final = 12
LINE: Final = 20
TEXT_PX: Final = 15
HEADING_PX: Final = 18
HEADING_LINE: Final = 24
_CAPTION_LINES: Final = 2
_HEADING_LINES: Final = 3
PAPER: Final = "#ffffff"
INK: Final = "#1b1b1f"
FAINT: Final = "#d8d8de"
CHOSEN: Final = "#d9480f"

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
        open: Gives the picture when it is drawn; None draws an empty frame: it is missing.
        missing: What follows the caption where the picture is missing.
        chosen: Draws a coloured frame: the artist went on from here.
    """

    open: Callable[[], Image.Image | None]
    caption: str
    missing: str = ""
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class Block:
    """A heading and its cells, row by row."""

    heading: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Band:
    """A part of a page from its left to its right edge, drawn when it is asked for."""

    height: int
    draw: Callable[[], Image.Image]


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is one under the other."""

    width: int
    bands: tuple[Band, ...]

    @property
    def height(self) -> int:
        """In pixels."""
        return sum(band.height for band in self.bands)

    def images(self) -> Iterator[Image.Image]:
        """Draw it, a band at a time, from the top: RGB."""
        return (band.draw() for band in self.bands)

    def image(self) -> Image.Image:
        """Draw it as one RGB image."""
        page = Image.new("RGB", (self.width, self.height), PAPER)
        top = 0
        for band in self.images():
            page.paste(band, (0, top))
            top += band.height
        return page


def lay_out(blocks: Sequence[Block], *, columns: int, page_height: int | None = None) -> list[Page]:
    """Lay out blocks one under the other; nothing is drawn yet.

    Args:
        blocks: At least one.
        columns: Cells in a row.
        page_height: A new page begins before a block that would go beyond it, or before a row of
            a block that is higher than a page; None is one page.
    """
    width = 2 * _MARGIN + columns * CELL_PX + (columns - 1) * _GAP
    limit = min(page_height or MAX_PAGE_PX, MAX_PAGE_PX) - 2 * _MARGIN
    pages: list[list[Band]] = [[]]
    for block in blocks:
        bands = _bands(block, columns, width)
        if _height(bands) <= limit < _height(pages[-1]) + _height(bands):
            pages.append([])
        for band in bands:
            if pages[-1] and _height(pages[-1]) + band.height > limit:
                pages.append([])
            pages[-1].append(band)
    margin = Band(height=_MARGIN, draw=partial(Image.new, "RGB", (width, _MARGIN), PAPER))
    return [Page(width=width, bands=(margin, *bands, margin)) for bands in pages]


def _height(bands: Sequence[Band]) -> int:
    return sum(band.height for band in bands)


def _bands(block: Block, columns: int, width: int) -> list[Band]:
    lines = wrap(block.heading, HEADING_PX, width - 2 * _MARGIN, _HEADING_LINES)
    height = len(lines) * HEADING_LINE + _GAP
    bands = [Band(height=height, draw=partial(_draw_heading, lines, (width, height)))]
    for start in range(0, len(block.cells), columns):
        cells, is_last = block.cells[start : start + columns], start + columns >= len(block.cells)
        row_height = CELL_PX + _CAPTION_LINES * LINE + _GAP + (_GAP if is_last else 0)
        draw = partial(_draw_row, cells, (width, row_height))
        bands.append(Band(height=row_height, draw=draw))
    return bands


def _draw_heading(lines: Sequence[str], size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, PAPER)
    write(image, (_MARGIN, 0), lines, HEADING_PX, HEADING_LINE)
    return image


def _draw_row(cells: Sequence[Cell], size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, PAPER)
    for index, cell in enumerate(cells):
        left = _MARGIN + index * (CELL_PX + _GAP)
        is_there = draw_picture(image, cell, left, CELL_PX)
        caption = cell.caption if is_there else f"{cell.caption} {cell.missing}"
        lines = wrap(caption, TEXT_PX, CELL_PX, _CAPTION_LINES)
        write(image, (left, CELL_PX + 2), lines, TEXT_PX, LINE)
    return image


def draw_picture(image: Image.Image, cell: Cell, left: int, side_px: int) -> bool:
    """Draw a cell's picture at the top of a row, in the middle of a square; False if it is lost."""
    pencil = ImageDraw.Draw(image)
    frame = (left, 0, left + side_px - 1, side_px - 1)
    picture = cell.open()
    if picture is None:
        pencil.rectangle(frame, outline=FAINT)
    else:
        small = fitted(picture, side_px)
        image.paste(small, (left + (side_px - small.width) // 2, (side_px - small.height) // 2))
    if cell.chosen:
        pencil.rectangle(frame, outline=CHOSEN, width=max(2, side_px // 50))
    return picture is not None


def fitted(image: Image.Image, side_px: int) -> Image.Image:
    """Return an image so large that its longer side has this size; RGB."""
    scale = side_px / max(image.size)
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
    """Return how many letters from the beginning fit; at least one.

    Only about as much of a text is measured as fits, however long it is.
    """
    low, high = 1, 1
    while high < len(text) and font.getlength(text[:high]) <= width_px:
        low, high = high, min(2 * high, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if font.getlength(text[:middle]) <= width_px else (low, middle - 1)
        )
    return low


def write(
    image: Image.Image, place: tuple[int, int], lines: Sequence[str], size_px: int, line_px: int
) -> None:
    """Write lines from their left upper corner, each in a font that has its letters."""
    pencil, (left, top) = ImageDraw.Draw(image), place
    for number, line in enumerate(lines):
        font = _font(line, size_px)
        pencil.text((left, top + number * line_px), line, font=font, fill=INK)


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
