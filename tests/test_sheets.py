"""Contact sheets show every picture in its place, with labels that can be read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pictures import make_lineage, make_picture
from PIL import Image

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, Lineage, new_id
from seedgrid.export.drawing import Block, Cell, draw, font_for, wrap
from seedgrid.export.sheets import blocks_of, make_grid, write_grid, write_sheet
from seedgrid.library import Library

COLOURS = ((200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30))


def add(library: Library, colour: tuple[int, int, int], **changes: object) -> Entry:
    picture = make_picture(**changes)
    pixels = np.broadcast_to(np.uint8(colour), picture.pixels.shape).copy()
    return library.add(replace(picture, pixels=pixels))


def in_round(round_id: str, work_id: str, cell: int, **changes: object) -> Lineage:
    return make_lineage(round_id=round_id, work_id=work_id, cell=cell, **changes)


def a_grid(library: Library) -> list[Entry]:
    round_, work = new_id(), new_id()
    return [
        add(library, colour, seed=seed, width=64, height=64, lineage=in_round(round_, work, seed))
        for seed, colour in enumerate(COLOURS)
    ]


def drawn(entries: Sequence[Entry]) -> Image.Image:
    blocks, columns = blocks_of(entries)
    return draw(blocks, columns=columns)


def colours_of(page: Image.Image) -> list[tuple[int, int, int]]:
    """Return which of the test's colours are on a page, by their first place, row by row."""
    pixels = np.asarray(page)
    places = {
        colour: np.argwhere((pixels == np.uint8(colour)).all(-1)).min(0).tolist()
        for colour in COLOURS
        if (pixels == np.uint8(colour)).all(-1).any()
    }
    return sorted(places, key=lambda colour: places[colour])


def sheet_of(images: Sequence[Image.Image], rows: int | None = None) -> Image.Image:
    file = io.BytesIO()
    write_grid(file, iter(images), count=len(images), rows=rows)
    return Image.open(file, formats=["PNG"])


def test_four_pictures_make_two_by_two() -> None:
    """As `make_image_grid` of diffusers does it."""
    images = [Image.new("RGB", (4, 2), colour) for colour in COLOURS]

    sheet = sheet_of(images)

    assert sheet.size == (8, 4)
    assert [sheet.getpixel(place) for place in ((0, 0), (4, 0), (0, 2), (4, 2))] == list(COLOURS)
    assert make_grid(images, count=4).tobytes() == sheet.tobytes()


def test_a_grid_is_drawn_in_its_order(library: Library) -> None:
    """Four cells, two by two, the first one at the top left."""
    page = drawn(a_grid(library))

    assert colours_of(page) == list(COLOURS)
    assert page.width == 2 * 256 + 60


def test_a_lineage_shows_its_rounds_and_who_was_chosen(library: Library) -> None:
    """Rounds lie under each other; the picture that was refined has a coloured frame."""
    grid = a_grid(library)
    round_, work = new_id(), grid[0].lineage.work_id
    child = add(
        library,
        (10, 10, 10),
        prompt="a red fox, artsy",
        lineage=in_round(round_, work, 0, parent_id=grid[2].id, change=", artsy"),
    )

    page = drawn([*grid, child])

    pixels = np.asarray(page)
    frame = np.argwhere((pixels == np.uint8((217, 72, 15))).all(-1))
    blue = np.argwhere((pixels == np.uint8(COLOURS[2])).all(-1))
    dark = np.argwhere((pixels == np.uint8((10, 10, 10))).all(-1))
    assert abs(frame.mean(0) - blue.mean(0)).max() < 2
    assert dark[:, 0].min() > blue[:, 0].max()


def test_a_missing_picture_keeps_its_place(library: Library) -> None:
    """A file that is gone leaves an empty frame, and the others where they are."""
    entries = a_grid(library)
    entries[0].path.unlink()

    page = drawn(entries)

    assert colours_of(page) == list(COLOURS[1:])


def test_a_poster_of_a_long_work_is_one_file(library: Library, tmp_path: Path) -> None:
    """One row a round, in letters of any language, in the page's own words; and it is marked."""
    work, parent = new_id(), None
    entries = []
    for _ in range(9):
        lineage = in_round(new_id(), work, 0, parent_id=parent)
        entries.append(add(library, COLOURS[0], prompt="한국어 fox 狐狸", lineage=lineage))
        parent = entries[-1].id
    for language in ("zh", "en"):
        write_sheet(entries, tmp_path / f"{language}.png", language)
    with Image.open(tmp_path / "zh.png") as chinese, Image.open(tmp_path / "en.png") as english:
        assert chinese.height == english.height > 9 * 256
        assert chinese.tobytes() != english.tobytes()
        assert "trainedAlgorithmicMedia" in english.text["XML:com.adobe.xmp"]


@pytest.mark.parametrize("per_round", [1, 4, 500])
def test_a_thousand_pictures_stay_within_bounds(per_round: int) -> None:
    """The more there are, the smaller they are; what nobody could look at is refused."""
    cells = (Cell(load=lambda: None, caption="seed 1"),) * per_round
    blocks = [Block(heading="a red fox", cells=cells)] * (1000 // per_round)
    if per_round == 1:
        with pytest.raises(InputError, match="pixels"):
            draw(blocks, columns=4)
    else:
        page = draw(blocks, columns=4)
        assert page.width * page.height <= 24_000_000


def test_what_cannot_be_drawn_is_told(library: Library, tmp_path: Path) -> None:
    """No picture, another suffix, a folder that is not there: each has its sentence."""
    entries = a_grid(library)
    for chosen, name, code in (
        ([], "sheet.png", "export_nothing"),
        (entries, "sheet.jpg", "sheet_suffix"),
        (entries, "nowhere/sheet.png", "folder_refuses"),
    ):
        with pytest.raises((InputError, LibraryError)) as caught:
            write_sheet(chosen, tmp_path / name)
        assert caught.value.code == code
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_long_words_are_broken_and_cut() -> None:
    """Every line fits, all is kept while there is room, and the rest ends in an ellipsis."""
    font = font_for("x", 15)
    for text in ("word " * 200, "狐" * 300, "x" * 3000, "a b"):
        lines = wrap(text, 15, 250, 2)
        assert len(lines) <= 2
        assert all(font_for(line, 15).getlength(line) <= 251 for line in lines)
    assert wrap("a red fox", 15, 500, 2) == ["a red fox"]
    assert wrap("", 15, 500, 2) == []
    assert wrap("word " * 200, 15, 250, 2)[1].endswith("…")
    assert font.getlength("x") > 0
