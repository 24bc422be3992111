"""Several pictures in one PNG file: a plain grid, a contact sheet, or the poster of a work.

Several rounds of one work become a poster, a block for each. A sheet of one work contains
its pictures' recipes as a text, if that is not too long: importing the sheet paints them again.
"""

import math
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, takewhile
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Final

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe, describe_mix
from seedgrid.export.drawing import Block, Cell, draw
from seedgrid.formats import png
from seedgrid.formats.own_texts import MARK_KEY, WORK_KEY, mark_text, write_work
from seedgrid.locales import ENGLISH, english, locales
from seedgrid.storage.files import open_atomically
from seedgrid.storage.unpacking import MAX_METADATA_BYTES

_COMPRESS_LEVEL: Final = 1
_WORDS_AND_SPACES: Final = re.compile(r"\s+|\S+")
_POSTER_COLUMNS: Final = 4
_MAX_COLUMNS: Final = 16
_MAX_GRID_PIXELS: Final = 100_000_000


def write_sheet(entries: Sequence[Entry], path: Path, language: str = ENGLISH) -> None:
    """Draw pictures in their order as one PNG file, with captions in `language`.

    Raise `sheet_suffix`, `export_nothing`, or `sheet_large` for too many pictures.
    """
    if path.suffix.lower() != ".png":
        raise InputError("sheet_suffix", field="sheet", value=path.name)
    blocks, columns = blocks_of(entries, language)
    work = _work_of(entries)
    footer = sheet_word("brings", language) if work else ""
    page = draw(blocks, columns=columns, footer=footer)
    with open_atomically(path) as file:
        _save(file, page, has_start=any(entry.recipe.kept_pixels for entry in entries), work=work)


def _work_of(entries: Sequence[Entry]) -> str:
    """Return the text with a work's recipes; empty for several works, or if it is too long."""
    if len({entry.lineage.work_id for entry in entries}) > 1:
        return ""
    text = write_work(entries)
    return text if len(text.encode()) <= MAX_METADATA_BYTES // 2 else ""


def write_grid(
    file: BinaryIO, images: Iterable[Image.Image], *, count: int, rows: int | None = None
) -> None:
    """Write images side by side, without words; see `make_grid`."""
    _save(file, make_grid(images, count=count, rows=rows), has_start=False)


def make_grid(images: Iterable[Image.Image], *, count: int, rows: int | None = None) -> Image.Image:
    """Return images of one size in rows and columns, as diffusers' `make_image_grid` does.

    Missing cells stay black; above 100 megapixels images are reduced. By default the
    grid is nearly square: four images make 2x2, five to nine have 3 columns.
    """
    columns = count // rows if rows else math.isqrt(count - 1) + 1
    num_rows = -(-count // columns)
    iterator = iter(images)
    first = next(iterator)
    num_pixels = columns * num_rows * first.width * first.height
    scale = min(1.0, math.sqrt(_MAX_GRID_PIXELS / num_pixels))
    size = (max(1, int(first.width * scale)), max(1, int(first.height * scale)))
    grid = Image.new("RGB", (columns * size[0], num_rows * size[1]))
    for number, image in enumerate(chain([first], iterator)):
        row, column = divmod(number, columns)
        cell = image if image.size == size else image.resize(size, Image.Resampling.LANCZOS)
        grid.paste(cell, (column * size[0], row * size[1]))
    return grid


def _save(file: BinaryIO, image: Image.Image, *, has_start: bool, work: str = "") -> None:
    texts = PngInfo()
    if work:
        texts.add_itxt(WORK_KEY, work, zip=True)
    texts.add_text("Software", png.SHEET_SOFTWARE)
    texts.add_itxt(MARK_KEY, mark_text(has_start=has_start))
    image.save(file, "PNG", compress_level=_COMPRESS_LEVEL, pnginfo=texts)


def blocks_of(entries: Sequence[Entry], language: str = ENGLISH) -> tuple[list[Block], int]:
    """Return the blocks and the number of columns of a sheet; no file is opened."""
    if not entries:
        raise InputError("export_nothing", field="picture")
    rounds: dict[str, list[Entry]] = {}
    for entry in entries:
        rounds.setdefault(entry.lineage.round_id, []).append(entry)
    if len(rounds) > 1 and len({entry.lineage.work_id for entry in entries}) == 1:
        ordered = [sorted(each, key=attrgetter("lineage.cell")) for each in rounds.values()]
        return _poster(ordered, language), _POSTER_COLUMNS
    has_one_prompt = len({entry.recipe.prompt for entry in entries}) == 1
    changes = (e.lineage.change or ("" if has_one_prompt else e.recipe.prompt) for e in entries)
    cells = tuple(_cell_of(*pair, language) for pair in zip(entries, changes, strict=True))
    columns = min(math.isqrt(len(entries) - 1) + 1, _MAX_COLUMNS)
    return [Block(heading=_shared_prefix(entries), cells=cells)], columns


def _poster(rounds: Sequence[Sequence[Entry]], language: str) -> list[Block]:
    """Return a block for each round, with its parent's position; refined pictures are marked."""
    positions = {
        entry.id: {"number": number, "cell": entry.lineage.cell + 1}
        for number, entries in enumerate(rounds, 1)
        for entry in entries
    }
    parents = {entry.lineage.parent_id for entries in rounds for entry in entries}
    blocks = []
    for number, entries in enumerate(rounds, 1):
        parent = positions.get(entries[0].lineage.parent_id or "")
        origin = f"{sheet_word('from', language, **parent)} · " if parent else ""
        cells = tuple(
            _cell_of(entry, entry.lineage.change, language, chosen=entry.id in parents)
            for entry in entries
        )
        blocks.append(Block(heading=f"{number} · {origin}{_shared_prefix(entries)}", cells=cells))
    return blocks


def _cell_of(entry: Entry, change: str, language: str, *, chosen: bool = False) -> Cell:
    """Return a cell with the seed and the change as its caption."""
    return Cell(
        load=partial(_load, entry.path),
        caption=caption_of(entry.recipe, change, language),
        missing=sheet_word("missing", language),
        chosen=chosen,
    )


def _load(path: Path) -> Image.Image | None:
    """Decode a picture; None when its file is gone or damaged."""
    try:
        return Image.fromarray(png.read_pixels(path))
    except PictureError:
        return None


def _shared_prefix(entries: Sequence[Entry]) -> str:
    prompts = [entry.recipe.prompt for entry in entries]
    # Words and spaces of the prompts, side by side, up to the first difference.
    parts = [(match[0] for match in _WORDS_AND_SPACES.finditer(prompt)) for prompt in prompts]
    columns = zip(*parts, strict=False)
    common = "".join(column[0] for column in takewhile(lambda words: len(set(words)) == 1, columns))
    # The last common word may end in a comma: `a fox, artsy` and `a fox, trending`.
    return common.strip(" ,;.") or prompts[0]


def caption_of(recipe: Recipe, change: str, language: str) -> str:
    """Return a caption: a picture's seed, and its change as it was written, or its noise mix."""
    if change and change == describe_mix(recipe):
        shares = [(f"{share.weight:.0%}"[:-1], share.seed) for share in recipe.noise_mix]
        change = " + ".join(sheet_word("mix", language, percent=p, seed=seed) for p, seed in shares)
    seed = sheet_word("seed", language, seed=recipe.seed)
    return f"{seed} · {change.strip(' ,')}" if change else seed


def sheet_word(name: str, language: str, **data: int | str) -> str:
    """Return a sentence of the sheets, filled in; the English one if there is no other."""
    key = f"sheet_{name}"
    words = locales()[language].later if language in locales() else {}
    return (words.get(key) or english().later[key]).format(**data)
