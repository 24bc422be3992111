"""Text in pictures: lines that fit, in the first font that has their letters. Knows Pillow only.

write(image, (24, 24), wrap("a red fox", 18, 500, 2), 18, 24)
"""

import functools
from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from seedgrid.storage.assets import assets_folder

INK: Final = "#1b1b1f"

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


def wrap(text: str, size_px: int, width_px: int, num_lines: int) -> list[str]:
    """Break a text into lines that fit; what is too much ends in an ellipsis.

    Scripts without spaces break between letters.
    """
    font = font_for(text, size_px)
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


def write(
    image: Image.Image, place: tuple[int, int], lines: Sequence[str], size_px: int, line_px: int
) -> None:
    """Write lines from their left upper corner, each in a font that has its letters."""
    pencil, (left, top) = ImageDraw.Draw(image), place
    for number, line in enumerate(lines):
        font = font_for(line, size_px)
        pencil.text((left, top + number * line_px), line, font=font, fill=INK)


def font_for(text: str, size_px: int) -> Font:
    """Return the first font that has every letter; the first of all when none has."""
    fonts = _fonts(size_px)
    letters = frozenset(text)
    return next((font for font in fonts if all(_has(font, letter) for letter in letters)), fonts[0])


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
