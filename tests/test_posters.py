"""A poster holds the recipes of a work: who takes it in gets the whole tree back, painted again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pictures import make_picture
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from refusing import refused

from seedgrid.cli import main
from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Entry, new_id
from seedgrid.export.sheets import write_sheet
from seedgrid.formats import png
from seedgrid.formats.own_texts import WORK_KEY, read_work
from seedgrid.library.take_in import take_in
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend, Fault

SMALL: Any = {"width": 64, "height": 64, "num_inference_steps": 2}


@pytest.fixture
def poster(studio: Studio, tmp_path: Path) -> Path:
    """Of a work of three rounds, one of them a branch."""
    grid = studio.grid("a fox", seeds="0-3", **SMALL)
    artsy = studio.refine(grid[1], [", artsy", ", neon"])
    studio.refine(artsy[0], [", at night"])
    studio.refine(grid[2], [", in snow"])
    write_sheet(studio.library.work(grid[0].lineage.work_id), tmp_path / "poster.png")
    return tmp_path / "poster.png"


def brought_back(poster: Path, studio: Studio) -> list[Entry]:
    (taken,) = take_in(studio.library, [poster])
    assert taken.error is None
    run = studio.start_work(taken.work)
    if run is None:
        return []
    brought = list(run.result())
    assert run.differing == ()
    return brought


def test_a_poster_brings_the_whole_tree_back(
    studio: Studio, poster: Path, elsewhere: Studio
) -> None:
    """Elsewhere, each picture comes to its own place with the very bits; a second time nothing."""
    ours = {entry.id: entry for entry in studio.library.search("", limit=50).entries}
    theirs = brought_back(poster, elsewhere)
    assert brought_back(poster, elsewhere) == []
    assert len(elsewhere.library.work(theirs[0].lineage.work_id)) == len(ours) == 8
    for entry in theirs:
        assert entry.lineage == ours[entry.id].lineage
        assert entry.recipe == ours[entry.id].recipe
        assert entry.pixels_sha256 == ours[entry.id].pixels_sha256
        assert entry.origin == "painted here"


def test_a_poster_that_cannot_be_painted_stops_no_import(
    poster: Path, fake: FakeBackend, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a line, and the picture behind it comes in."""
    fake.faults.append(Fault())
    (tmp_path / "z.png").write_bytes(png.encode(make_picture()))
    paths = [str(poster), str(tmp_path / "z.png")]
    assert main(["import", *paths, "--library", str(tmp_path / "other")]) == 1
    printed = capsys.readouterr()
    assert poster.name in printed.err
    assert "z.png: taken in" in printed.out


def test_what_is_missing_of_a_work_comes_back_alone(studio: Studio, poster: Path) -> None:
    """One deletes a picture, and the poster gives it back."""
    gone = studio.library.search("night", limit=1).entries[0]
    studio.library.trash(gone.id)
    studio.library.empty_trash()
    (back,) = brought_back(poster, studio)
    assert (back.id, back.pixels_sha256) == (gone.id, gone.pixels_sha256)


def test_what_began_from_a_picture_comes_once_that_is_there(
    studio: Studio, elsewhere: Studio, tmp_path: Path
) -> None:
    """A large final needs its parent's pixels: the second time they are there."""
    (fox,) = studio.grid("a fox", seeds="0", **SMALL)
    large = studio.final(fox, strengths=[0.3])[0]
    write_sheet(studio.library.work(fox.lineage.work_id), tmp_path / "poster.png")
    for expected in ([fox.id], [large.id], []):
        assert [each.id for each in brought_back(tmp_path / "poster.png", elsewhere)] == expected


def test_a_sheet_of_several_works_brings_none(studio: Studio, tmp_path: Path) -> None:
    """It is a picture of pictures, as before."""
    entries = [studio.grid(words, seeds="0", **SMALL)[0] for words in ("a fox", "a boat")]
    write_sheet([studio.library.get(each.id) for each in entries], tmp_path / "sheet.png")
    assert WORK_KEY not in png.read_texts(tmp_path / "sheet.png")


@pytest.mark.parametrize("trouble", ["no JSON", "nothing", "twice", "two works", "no recipe"])
def test_a_text_that_is_no_work_is_refused(poster: Path, trouble: str) -> None:
    """Anybody can write such a text."""
    rows = json.loads(png.read_texts(poster)[WORK_KEY] or "")
    other = json.loads(json.dumps(rows[0]))
    other["lineage"] |= {"picture_id": new_id(), "work_id": new_id()}
    texts = {
        "no JSON": "[",
        "nothing": "[]",
        "twice": json.dumps([rows[0], rows[0]]),
        "two works": json.dumps([rows[0], other]),
        "no recipe": json.dumps([rows[0] | {"recipe": {}}]),
    }
    with refused(PictureError, "picture_record"):
        read_work(texts[trouble])


def test_a_poster_that_unpacks_to_too_much_is_refused(studio: Studio, tmp_path: Path) -> None:
    """Its text is bounded like any other, however small it is packed."""
    texts = PngInfo()
    texts.add_itxt(WORK_KEY, " " * 10_000_000, zip=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "bomb.png", pnginfo=texts)
    (taken,) = take_in(studio.library, [tmp_path / "bomb.png"])
    assert taken.error is not None
    assert taken.error.code == "picture_text"
