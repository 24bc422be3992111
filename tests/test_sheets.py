"""Contact sheets show every picture in its place, with labels that can be read."""

from __future__ import annotations

import io
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from pictures import make_lineage, make_picture
from PIL import Image

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, Lineage, Picture, new_id
from seedgrid.export import labels
from seedgrid.export.contact_sheets import is_matrix, make_pages, write_sheet
from seedgrid.export.labels import Block, Cell, lay_out, wrap
from seedgrid.export.sheets import is_sheet, make_sheet, write_grid
from seedgrid.library import Library

COLOURS = ((200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "library") as library:
        yield library


def add(library: Library, colour: tuple[int, int, int], **changes: object) -> Entry:
    picture = make_picture(**changes)
    pixels = np.broadcast_to(np.uint8(colour), picture.pixels.shape).copy()
    return library.add(
        Picture(
            pixels=pixels,
            recipe=picture.recipe,
            passport=picture.passport,
            lineage=picture.lineage,
        )
    )


def in_round(round_id: str, work_id: str, cell: int, **changes: object) -> Lineage:
    return make_lineage(round_id=round_id, work_id=work_id, cell=cell, **changes)


def a_grid(library: Library) -> list[Entry]:
    round_, work = new_id(), new_id()
    return [
        add(library, colour, seed=seed, width=64, height=64, lineage=in_round(round_, work, seed))
        for seed, colour in enumerate(COLOURS)
    ]


def drawn(entries: Sequence[Entry]) -> Image.Image:
    (page,) = make_pages(entries)
    return page.image()


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
    assert make_sheet(images).tobytes() == sheet.tobytes()


def test_a_table_has_its_rows_and_the_rest_stays_black() -> None:
    """Rows are as many as asked for; five pictures leave one of six cells empty."""
    images = [Image.new("RGB", (4, 2), COLOURS[0])] * 5

    assert sheet_of(images[:4], rows=4).size == (4, 8)
    assert sheet_of(images).size == (12, 4)
    assert sheet_of(images).getpixel((11, 3)) == (0, 0, 0)


def test_a_sheet_is_known_again(tmp_path: Path) -> None:
    """It has no recipe and says why."""
    with (tmp_path / "sheet.png").open("wb") as file:
        write_grid(file, [Image.new("RGB", (4, 2), COLOURS[0])], count=1)

    assert is_sheet(tmp_path / "sheet.png")


def test_a_grid_is_drawn_in_its_order(library: Library) -> None:
    """Four cells, two by two, the first one at the top left."""
    page = drawn(a_grid(library))

    assert colours_of(page) == list(COLOURS)
    assert page.width == 2 * labels.CELL_PX + 60


def test_labels_leave_ink_under_each_picture(library: Library) -> None:
    """Under every cell something is written."""
    entries = a_grid(library)[:1]

    page = drawn(entries)

    below = np.asarray(page.convert("L"))[-80:]
    assert (below < 128).any()


def test_prompts_times_seeds_are_a_matrix(library: Library) -> None:
    """One row a prompt, one column a seed, whatever order they come in."""
    entries = [
        add(library, colour, prompt=prompt, seed=seed)
        for colour, (prompt, seed) in zip(
            COLOURS, [("a fox", 42), ("a cat", 7), ("a cat", 42), ("a fox", 7)], strict=True
        )
    ]

    assert is_matrix(entries)
    page = drawn(entries)

    red, green, blue, yellow = COLOURS
    assert colours_of(page) == [red, yellow, blue, green]


def test_a_row_or_a_gap_is_no_matrix(library: Library) -> None:
    """One prompt, one seed, or a missing cell are drawn as a grid."""
    fox = [add(library, COLOURS[0], prompt="a fox", seed=seed) for seed in (1, 2)]
    cat = add(library, COLOURS[1], prompt="a cat", seed=1)

    assert not is_matrix(fox)
    assert not is_matrix([fox[0], cat])
    assert not is_matrix([*fox, cat])


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


def test_a_sheet_is_written_as_png_and_as_pdf(library: Library, tmp_path: Path) -> None:
    """Both are whole files of their kind; a long lineage takes several pages of the PDF."""
    work, parent = new_id(), None
    entries = []
    for _ in range(9):
        lineage = in_round(new_id(), work, 0, parent_id=parent)
        entries.append(add(library, COLOURS[0], prompt="한국어 fox 狐狸", lineage=lineage))
        parent = entries[-1].id

    write_sheet(entries, tmp_path / "sheet.png")
    write_sheet(entries, tmp_path / "sheet.PDF")

    with Image.open(tmp_path / "sheet.png") as image:
        assert image.height > 9 * labels.CELL_PX
    pdf = (tmp_path / "sheet.PDF").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") > 1


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
    font = labels._font("x", 15)
    for text in ("word " * 200, "狐" * 300, "x" * 3000, "a b"):
        lines = wrap(text, 15, 250, 2)
        assert len(lines) <= 2
        assert all(labels._font(line, 15).getlength(line) <= 251 for line in lines)
    assert wrap("a red fox", 15, 500, 2) == ["a red fox"]
    assert wrap("", 15, 500, 2) == []
    assert wrap("word " * 200, 15, 250, 2)[1].endswith("…")
    assert font.getlength("x") > 0


def test_no_more_of_a_text_is_measured_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a long prompt was measured for each line: a sheet of a thousand took a minute."""
    measured: list[int] = []
    getlength = labels.Font.getlength

    def counted(font: labels.Font, text: str) -> float:
        measured.append(len(text))
        return getlength(font, text)

    monkeypatch.setattr(labels.Font, "getlength", counted)
    counts = []
    for text in ("fox " * 100, "fox " * 1250):
        measured.clear()
        wrap(text, 15, 250, 2)
        counts.append(sum(measured))
    assert counts[0] == counts[1]


def test_words_in_common_are_read_no_further_than_they_are_common(library: Library) -> None:
    """The words of a thousand long prompts were in memory at once."""
    words = " ".join(f"w{number}" for number in range(800))
    entries = [library.add(make_picture(seed=seed, prompt=f"{seed} {words}")) for seed in range(20)]
    make_pages(entries)  # The fonts are there now.
    tracemalloc.start()
    make_pages(entries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(words) * 4


def test_a_page_is_never_too_high_to_be_drawn() -> None:
    """Blocks that do not fit on one page go on on the next."""
    image = Image.new("RGB", (8, 8), COLOURS[0])
    blocks = [Block(heading="a fox", cells=(Cell(open=lambda: image, caption="seed 1"),))] * 5

    pages = lay_out(blocks, columns=1, page_height=800)

    assert len(pages) == 3
    assert all(page.height <= 800 for page in pages)


def test_a_block_higher_than_a_page_goes_on_on_the_next() -> None:
    """No row is cut and none is lost."""
    image = Image.new("RGB", (8, 8), COLOURS[0])
    cells = (Cell(open=lambda: image, caption="seed 1"),) * 9

    pages = lay_out([Block(heading="a fox", cells=cells)], columns=1, page_height=800)

    assert all(page.height <= 800 for page in pages)
    num_red = sum(
        (np.asarray(page.image()) == np.uint8(COLOURS[0])).all(-1).sum() for page in pages
    )
    assert num_red == 9 * labels.CELL_PX**2


PEAK = """
import sys
from pathlib import Path
from seedgrid.export.contact_sheets import write_sheet
from seedgrid.library import Library
with Library(Path(sys.argv[1])) as library:
    entries = library.work(sys.argv[2])[: int(sys.argv[4])]
    write_sheet(entries, Path(sys.argv[3]))
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="its peak is asked of Linux")
@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_memory_does_not_grow_with_the_number_of_pictures(
    library: Library, tmp_path: Path, suffix: str
) -> None:
    """A sheet of 48 pictures of 2048 px once held them all: 905 MB."""
    round_, work = new_id(), new_id()
    sizes = {"width": 2048, "height": 2048}
    for cell in range(12):
        add(library, COLOURS[0], **sizes, seed=cell, lineage=in_round(round_, work, cell))

    def peak_kb(count: int) -> int:
        arguments = [str(library.folder), work, str(tmp_path / f"sheet.{suffix}"), str(count)]
        command = [sys.executable, "-c", PEAK, *arguments]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    whole_kb = 3 * 2048 * 2048 // 1024
    assert peak_kb(12) - peak_kb(2) < 3 * whole_kb
