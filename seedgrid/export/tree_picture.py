"""A tree as one PNG: each click a row of pictures, a line from each pick to what came of it.

Drawn band by band from the top, each picture opened when its row is drawn: memory holds one row,
whatever the number of pictures. The more there are, the smaller they are.

    write_tree(library.work(work_id), Path("tree.png"))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry, without_circles
from seedgrid.core.text import one_line
from seedgrid.export import sheets
from seedgrid.export.contact_sheets import cell_of, rounds_of
from seedgrid.export.labels import CHOSEN, PAPER, Band, Cell, draw_picture, wrap, write
from seedgrid.locales import ENGLISH
from seedgrid.storage.files import open_atomically

_SIZES_PX: Final = (176, 144, 112, 80, 56, 40, 28)
_MAX_SIDE_PX: Final = 12_000
_MAX_PIXELS: Final = 50_000_000
_LARGEST: Final = 200_000_000
"""Pixels of the smallest pictures; a thousand in rounds of four stay below."""
_WIDEST_PX: Final = 100_000
"""A row is in memory at once."""
_MARGIN: Final = 28
_GAP: Final = 8
_LINK: Final = 52
_CAPTION_FROM_PX: Final = 112
"""Smaller pictures have no words under them: nobody could read them."""
_CAPTION_LINES: Final = 2
_CAPTION_LINE: Final = 17
_CAPTION_PX: Final = 13
_TITLE_PX: Final = 20
_TITLE_LINE: Final = 27
_TITLE_LINES: Final = 2
_MAX_TITLE: Final = 400
_FINE: Final = 2
"""Lines are drawn so many times larger and made smaller again: without steps in them."""
_BENDS: Final = 24


@dataclass(frozen=True)
class _Place:
    """A round in the tree.

    Attributes:
        depth: How many picks lead to it.
        left: In cells and gaps between rounds, from the left edge.
        gaps: So many gaps lie left of it.
        across: Its pictures in a row.
        parent: The number of the round it came from, and the picture's place in that.
    """

    cells: tuple[Cell, ...]
    depth: int
    left: int
    gaps: int
    across: int
    parent: tuple[int, int] | None

    @property
    def num_rows(self) -> int:
        return -(-len(self.cells) // self.across)


@dataclass(frozen=True)
class _Size:
    """How large everything is, in pixels."""

    cell: int

    @property
    def caption(self) -> int:
        return _CAPTION_LINES * _CAPTION_LINE + 6 if self.cell >= _CAPTION_FROM_PX else 0

    @property
    def gap(self) -> int:
        return max(2, self.cell // 22)

    @property
    def between(self) -> int:
        return max(8, self.cell // 6)

    @property
    def row(self) -> int:
        return self.cell + self.caption + self.gap

    def left(self, place: _Place, column: float = 0) -> int:
        """Where a column of a round begins."""
        across = round((place.left + column) * (self.cell + self.gap))
        return _MARGIN + across + place.gaps * self.between


def write_tree(entries: Sequence[Entry], path: Path, language: str = ENGLISH) -> None:
    """Draw a work and write it.

    Args:
        entries: Of one work, at least one, oldest first. What is not there leaves a gap; a round
            whose parent is not there stands at the top.
        path: Ends in `.png`; replaced if it exists.
        language: Of what is said beside the prompts.
    """
    if path.suffix.lower() != ".png":
        raise InputError("tree_suffix", field="tree", value=path.name)
    width, bands = draw_tree(entries, language)
    with open_atomically(path) as file:
        height = sum(band.height for band in bands)
        sheets.write_png(file, width, height, (band.draw() for band in bands))


def draw_tree(entries: Sequence[Entry], language: str = ENGLISH) -> tuple[int, list[Band]]:
    """Lay a work out; nothing is opened yet."""
    if not entries:
        raise InputError("export_nothing", field="picture")
    places = _places(entries, language)
    size = _fitting(places)
    width = _width(places, size)
    title = one_line(entries[0].recipe.words, limit=_MAX_TITLE)
    lines = wrap(title, _TITLE_PX, width - 2 * _MARGIN, _TITLE_LINES)
    height = _MARGIN + len(lines) * _TITLE_LINE + _GAP
    bands = [Band(height=height, draw=partial(_draw_title, lines, (width, height)))]
    layers: dict[int, list[_Place]] = {}
    for place in sorted(places, key=lambda each: each.depth):
        layers.setdefault(place.depth, []).append(place)
    for layer, below in zip(layers.values(), [*list(layers.values())[1:], []], strict=True):
        bands += _layer_bands(places, layer, below, size, width)
    return width, bands


def _places(entries: Sequence[Entry], language: str) -> list[_Place]:
    """Give each round its place: below its parent, or in the next free column beside."""
    rounds = rounds_of(entries)
    number_of = {
        entry.id: (n, at) for n, made in enumerate(rounds) for at, entry in enumerate(made)
    }
    said = [number_of.get(made[0].lineage.parent_id or "") for made in rounds]
    above = without_circles({n: place[0] if place else None for n, place in enumerate(said)})
    parents = [None if above[n] is None else place for n, place in enumerate(said)]
    chosen = {entry.lineage.parent_id for entry in entries}
    places: dict[int, _Place] = {}
    free: dict[int, tuple[int, int]] = {}  # by depth: the first free column, and the gaps before it
    for number, depth in _walk(parents):
        made, parent = rounds[number], parents[number]
        across = min(len(made), max(4, round(len(made) ** 0.5)))
        over = places[parent[0]] if parent else None
        start = (over.left, over.gaps) if over else (0, 0)
        left, gaps = max(start, free.get(depth, (0, 0)))
        cells = tuple(cell_of(e, e.lineage.change, language, chosen=e.id in chosen) for e in made)
        places[number] = _Place(cells, depth, left, gaps, across, parent)
        free[depth] = (left + across, gaps + 1)
    return [places[number] for number in range(len(rounds))]


def _walk(parents: Sequence[tuple[int, int] | None]) -> Iterator[tuple[int, int]]:
    """Go through the rounds from the top, each before its children, these from left to right."""
    children: dict[int | None, list[int]] = {}
    for number, parent in sorted(enumerate(parents), key=lambda one: (one[1] or (0, 0), one[0])):
        children.setdefault(parent[0] if parent else None, []).append(number)
    waiting = [(number, 0) for number in reversed(children.get(None, []))]
    while waiting:
        number, depth = waiting.pop()
        yield number, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(number, []))]


def _fitting(places: Sequence[_Place]) -> _Size:
    """Return the largest size at which the whole is no larger than can be looked at.

    Raises:
        InputError: `tree_large`: it is far larger at the smallest, too.
    """
    for size in map(_Size, _SIZES_PX):
        width, height = _width(places, size), _height(places, size)
        if max(width, height) <= _MAX_SIDE_PX and width * height <= _MAX_PIXELS:
            return size
    if width > _WIDEST_PX or width * height > _LARGEST:
        raise InputError("tree_large", field="tree", value=f"{width}x{height}")
    return size


def _width(places: Sequence[_Place], size: _Size) -> int:
    return max(size.left(place, place.across) for place in places) - size.gap + _MARGIN


def _height(places: Sequence[_Place], size: _Size) -> int:
    rows: dict[int, int] = {}
    for place in places:
        rows[place.depth] = max(rows.get(place.depth, 0), place.num_rows)
    return sum(rows.values()) * size.row + len(rows) * _LINK


def _layer_bands(
    places: Sequence[_Place],
    layer: Sequence[_Place],
    below: Sequence[_Place],
    size: _Size,
    width: int,
) -> list[Band]:
    """What rounds of one depth look like, and the lines to those below."""
    bands = [
        Band(height=size.row, draw=partial(_draw_row, layer, row, size, width))
        for row in range(max(place.num_rows for place in layer))
    ]
    links = []
    for place in below:
        number, cell = place.parent or (0, 0)
        above = places[number]
        start = size.left(above, cell % above.across) + size.cell // 2
        end = (size.left(place) + size.left(place, place.across) - size.gap) // 2
        links.append((start, end))
    height = _LINK if links else _MARGIN
    return [*bands, Band(height=height, draw=partial(_draw_links, links, (width, height)))]


def _draw_title(lines: Sequence[str], size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, PAPER)
    write(image, (_MARGIN, _MARGIN), lines, _TITLE_PX, _TITLE_LINE)
    return image


def _draw_row(places: Sequence[_Place], row: int, size: _Size, width: int) -> Image.Image:
    image = Image.new("RGB", (width, size.row), PAPER)
    for place in places:
        cells = place.cells[row * place.across : (row + 1) * place.across]
        for column, cell in enumerate(cells):
            left = size.left(place, column)
            draw_picture(image, cell, left, size.cell)
            if size.caption:
                lines = wrap(cell.caption, _CAPTION_PX, size.cell, _CAPTION_LINES)
                write(image, (left, size.cell + 4), lines, _CAPTION_PX, _CAPTION_LINE)
    return image


def _draw_links(links: Sequence[tuple[int, int]], size: tuple[int, int]) -> Image.Image:
    """Draw each line as a bend that leaves and arrives upright."""
    large = (size[0] * _FINE, size[1] * _FINE)
    mask = Image.new("L", large if links else size)
    pencil = ImageDraw.Draw(mask)
    for start, end in links:
        points = [_bend(at / _BENDS, start, end, size[1]) for at in range(_BENDS + 1)]
        pencil.line(points, fill=255, width=2 * _FINE, joint="curve")
    image = Image.new("RGB", size, PAPER)
    image.paste(CHOSEN, (0, 0, *size), mask.resize(size, Image.Resampling.BOX))
    return image


def _bend(at: float, start: int, end: int, height: int) -> tuple[float, float]:
    """Return a point of a Bézier curve whose ends stand upright, `_FINE` times as large."""
    across = 3 * at**2 - 2 * at**3
    down = 1.5 * at * (1 - at) + at**3
    return (start + (end - start) * across) * _FINE, down * height * _FINE
