"""Labelled contact sheets of a grid, a matrix or a whole lineage, as PNG or PDF.

What is drawn follows from the pictures themselves: several rounds of one work are its lineage, all
prompts on all seeds are a matrix, everything else is a grid.

    write_sheet(library.work(work_id), Path("lineage.pdf"))
"""

import math
import re
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

from PIL import Image
from PIL.PdfParser import PdfBinary, encode_text

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.picture import Entry
from seedgrid.core.text import one_line
from seedgrid.export import sheets
from seedgrid.export.labels import Block, Cell, Page, lay_out
from seedgrid.export.words import caption_of, sheet_word
from seedgrid.formats import png
from seedgrid.locales import ENGLISH
from seedgrid.storage.files import open_atomically

_PARTS: Final = re.compile(r"\s+|\S+")
_PAGE_RATIO: Final = math.sqrt(2)
_PDF_DPI: Final = 144
_MAX_TITLE: Final = 200
_LINEAGE_COLUMNS: Final = 4
_MAX_COLUMNS: Final = 16


def write_sheet(entries: Sequence[Entry], path: Path, language: str = ENGLISH) -> None:
    """Draw pictures with their labels and write them as one PNG, or as a PDF of several pages.

    Args:
        entries: At least one, in the order in which they were made.
        path: Ends in `.png` or `.pdf`; replaced if it exists.
        language: Of what is said beside the prompts.
    """
    suffix = path.suffix.lower()
    if suffix not in (".png", ".pdf"):
        raise InputError("sheet_suffix", field="sheet", value=path.name)
    pages = make_pages(entries, as_pages=suffix == ".pdf", language=language)
    with open_atomically(path) as file:
        if suffix == ".pdf":
            _write_pdf(file, pages, title=one_line(entries[0].recipe.prompt, limit=_MAX_TITLE))
        else:
            sheets.write_png(file, pages[0].width, pages[0].height, pages[0].images())


def make_pages(
    entries: Sequence[Entry], *, as_pages: bool = False, language: str = ENGLISH
) -> list[Page]:
    """Lay out pictures with their labels; each is opened only when its row is drawn."""
    if not entries:
        raise InputError("export_nothing", field="picture")
    blocks, columns = _lay_out(entries, language)
    width = lay_out(blocks[:1], columns=columns)[0].width
    height = round(width * _PAGE_RATIO) if as_pages else None
    return lay_out(blocks, columns=columns, page_height=height)


def _write_pdf(file: BinaryIO, pages: Sequence[Page], *, title: str) -> None:
    """Append page after page, so that one alone is in memory.

    What is said of the whole is said with the last page: Pillow reads it again at every page, and
    does not write back what it has read.
    """
    # In hexadecimal, where no byte can end the text or be taken for the end of a line.
    said = {"title": PdfBinary(encode_text(title)) if title else None, "producer": "SeedGrid"}
    for page in pages:
        info = said if page is pages[-1] else {"title": None}
        append = page is not pages[0]
        page.image().save(file, "PDF", append=append, resolution=_PDF_DPI, **info)


def is_matrix(entries: Sequence[Entry]) -> bool:
    """Tell whether the pictures are several prompts, each on the same several seeds."""
    pairs = {(entry.recipe.prompt, entry.recipe.seed) for entry in entries}
    prompts, seeds = {prompt for prompt, _ in pairs}, {seed for _, seed in pairs}
    is_full = len(pairs) == len(entries) == len(prompts) * len(seeds)
    return is_full and len(prompts) > 1 and len(seeds) > 1 and len(seeds) <= _MAX_COLUMNS


def _lay_out(entries: Sequence[Entry], language: str) -> tuple[list[Block], int]:
    rounds = rounds_of(entries)
    if len(rounds) > 1 and len({entry.lineage.work_id for entry in entries}) == 1:
        return _lineage(rounds, language), _LINEAGE_COLUMNS
    if is_matrix(entries):
        return _matrix(entries, language), len({entry.recipe.seed for entry in entries})
    cells = tuple(cell_of(entry, entry.lineage.change, language) for entry in entries)
    columns = min(math.isqrt(len(entries) - 1) + 1, _MAX_COLUMNS)
    return [Block(heading=_common_words(entries), cells=cells)], columns


def rounds_of(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return pictures by the click that made them, in order, each round by its cells."""
    rounds: dict[str, list[Entry]] = {}
    for entry in entries:
        rounds.setdefault(entry.lineage.round_id, []).append(entry)
    return [sorted(made, key=lambda entry: entry.lineage.cell) for made in rounds.values()]


def _lineage(rounds: Sequence[Sequence[Entry]], language: str) -> list[Block]:
    """One block a round: where it came from, its pictures, and which was gone on from."""
    numbers = {entry.id: number for number, made in enumerate(rounds, 1) for entry in made}
    cells = {entry.id: entry.lineage.cell + 1 for made in rounds for entry in made}
    parents = {entry.lineage.parent_id for made in rounds for entry in made}
    blocks = []
    for number, made in enumerate(rounds, 1):
        parent = made[0].lineage.parent_id
        origin = ""
        if parent in numbers:
            data = {"number": numbers[parent], "cell": cells[parent]}
            origin = f"{sheet_word('from', language, **data)} · "
        blocks.append(
            Block(
                heading=f"{number} · {origin}{_common_words(made)}",
                cells=tuple(
                    cell_of(entry, entry.lineage.change, language, chosen=entry.id in parents)
                    for entry in made
                ),
            )
        )
    return blocks


def _matrix(entries: Sequence[Entry], language: str) -> list[Block]:
    """One block a prompt, the seeds in the same columns everywhere."""
    places = {(entry.recipe.prompt, entry.recipe.seed): entry for entry in entries}
    prompts = dict.fromkeys(prompt for prompt, _ in places)
    seeds = dict.fromkeys(seed for _, seed in places)
    return [
        Block(
            heading=prompt,
            cells=tuple(cell_of(places[prompt, seed], "", language) for seed in seeds),
        )
        for prompt in prompts
    ]


def cell_of(entry: Entry, change: str, language: str, *, chosen: bool = False) -> Cell:
    """Return a picture with its seed and what was changed under it."""
    return Cell(
        open=partial(_open, entry.path),
        caption=caption_of(entry.recipe, change, language),
        missing=sheet_word("missing", language),
        chosen=chosen,
    )


def _open(path: Path) -> Image.Image | None:
    """Decode a picture; None when its file is gone or damaged."""
    try:
        return Image.fromarray(png.read_pixels(path))
    except PictureError:
        return None


def _common_words(entries: Sequence[Entry]) -> str:
    prompts = [entry.recipe.prompt for entry in entries]
    # Words and the spaces between them in turn, no further than they are the same.
    parts = [(found[0] for found in _PARTS.finditer(prompt)) for prompt in prompts]
    columns = zip(*parts, strict=False)
    common = "".join(column[0] for column in takewhile(lambda words: len(set(words)) == 1, columns))
    # The last shared word may end in a comma in one prompt only.
    return common.strip(" ,;.") or prompts[0]
