"""The library keeps everything, finds it again, and notices what is damaged."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from command import start_python
from pictures import make_lineage, make_picture
from refusing import refused

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, new_id
from seedgrid.formats import png, png_chunks
from seedgrid.library import Library


def ids(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.id for entry in entries]


def test_a_picture_is_on_disk_when_add_returns(library: Library) -> None:
    """The entry's file holds the picture, recipe, lineage and pixels."""
    picture = make_picture()

    entry = library.add(picture)

    record, pixels = png.read_checked(entry.path)
    assert (record.recipe, record.lineage) == (picture.recipe, picture.lineage)
    assert np.array_equal(pixels, picture.pixels)
    assert entry.file_sha256 == entry.path.stem
    assert library.get(entry.id) == entry


def test_another_file_with_a_known_id_is_refused(library: Library) -> None:
    """Nobody can put another picture in the place of one that is there."""
    entry = library.add(make_picture())
    forged = make_picture(seed=8, lineage=entry.lineage)

    with refused(InputError, "picture_twice"):
        library.add(forged)

    assert library.get(entry.id) == entry


def test_add_again_copies_the_packed_pixels(library: Library) -> None:
    """The same picture at another place of the tree shares its pixels byte by byte."""
    entry = library.add(make_picture())

    again = library.add_again((entry, make_lineage()))[0]

    assert again.id != entry.id
    assert again.recipe == entry.recipe
    packed = [
        [part.data for part in png_chunks.split(path.read_bytes()) if part.kind == b"IDAT"]
        for path in (entry.path, again.path)
    ]
    assert packed[0] == packed[1]


def test_copies_are_kept_together_or_not_at_all(library: Library) -> None:
    """One place that is taken already, and none of the others is there either."""
    first, second = library.add(make_picture(seed=1)), library.add(make_picture(seed=2))
    taken = make_lineage().model_copy(update={"picture_id": first.id})

    with refused(InputError, "picture_twice"):
        library.add_again((first, make_lineage()), (second, taken))

    assert {entry.id for entry in library.search().entries} == {first.id, second.id}
    library.check(repair=True)
    places = [make_lineage() for _ in range(4)]
    again = library.add_again(*((second, place) for place in places))
    assert [entry.lineage for entry in again] == places
    assert library.check().is_clean


def test_a_recipe_is_remembered_under_its_passport_only(library: Library) -> None:
    """Another machine's picture of the same recipe does not count as known."""
    entry = library.add(make_picture())

    recipe_id = entry.recipe.id
    other = "11" * 32
    assert library.find_painted([recipe_id, other], entry.passport.digest) == {recipe_id: entry}
    assert library.find_painted([recipe_id], "00" * 32) == {}


def test_a_torn_file_is_not_remembered(library: Library) -> None:
    """A file that is there under its right name is re-hashed before it is trusted."""
    entry = library.add(make_picture())
    entry.path.write_bytes(entry.path.read_bytes()[:-100])

    assert library.find_painted([entry.recipe.id], entry.passport.digest) == {}


def test_find_takes_ids_and_their_beginnings(library: Library) -> None:
    """A picture is found by its id, by its recipe's id, and by the first digits of either."""
    entry = library.add(make_picture())
    library.add(make_picture(seed=8))

    for text in (entry.id, entry.id[:8], entry.recipe.id, entry.recipe.id[:8].upper()):
        assert library.find(text) == entry


WORDS = {
    "fox": "a Red fox, running",
    "castle": "castle by the sea; 50% fog",
    "chinese": "一只红色的狐狸在山水之间",
    "korean": "고양이와 서울의 밤",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fox", {"fox"}),
        ("RED FOX", {"fox"}),
        ("running red", {"fox"}),
        ("ed", {"fox"}),
        ("fox castle", set()),
        ("狐狸", {"chinese"}),
        ("밤", {"korean"}),
        ("50%", {"castle"}),
        ("%", {"castle"}),
        ("_", set()),
        ('"', set()),
        ('fox" OR "sea', set()),
        ("fox*", set()),
        ("prompt:fox", set()),
        ("a NEAR/2 fox", set()),
        ("", set(WORDS)),
    ],
)
def test_search_finds_parts_of_words_in_any_script(
    library: Library, text: str, found: set[str]
) -> None:
    """Every word looked for is in the prompt, in any letter case; nothing is a query language."""
    names = {library.add(make_picture(prompt=prompt)).id: name for name, prompt in WORDS.items()}

    entries = library.search(text).entries

    assert {names[entry.id] for entry in entries} == found


def test_the_trash_can_be_undone_until_it_is_emptied(library: Library) -> None:
    """Trashed pictures leave the answers, come back, and go for good only on request."""
    kept, gone = library.add(make_picture()), library.add(make_picture(seed=8))

    library.trash(kept.id, gone.id)
    assert library.search().entries == ()
    assert len(library.search(trashed=True).entries) == 2

    library.restore(kept.id)
    assert library.empty_trash() == 1
    assert ids(library.search().entries) == [kept.id]
    assert kept.path.exists()
    assert not gone.path.exists()
    assert library.check().is_clean


def test_a_lost_picture_stays_where_it_was_and_says_so(library: Library) -> None:
    """Every answer gives it, marked, before a check has found it out and after."""
    entry = library.add(make_picture())
    entry.path.unlink()

    for _ in range(2):
        answers = [
            library.get(entry.id),
            library.find(entry.id[:8]),
            *library.round(entry.lineage.round_id),
            *library.work(entry.lineage.work_id),
            *library.search("fox").entries,
            *(work.cover for work in library.works().works),
        ]
        assert [(answer.id, answer.lost) for answer in answers] == [(entry.id, True)] * 6
        library.check(repair=True)

    library.trash(entry.id)
    assert library.empty_trash() == 1
    assert library.check().is_clean
    for unknown in (entry.id, "\ud800"):
        with refused(InputError, "picture_unknown"):
            library.get(unknown)


def test_a_tree_keeps_the_branch_that_is_in_the_trash(library: Library) -> None:
    """Rounds and works give it, marked; searches and the list of works leave it out."""
    lineage = make_lineage()
    kept = library.add(make_picture(lineage=lineage))
    changes = {"picture_id": new_id(), "cell": 1}
    gone = library.add(make_picture(seed=8, lineage=lineage.model_copy(update=changes)))
    library.trash(gone.id)

    for answer in (library.round(lineage.round_id), library.work(lineage.work_id)):
        assert [(entry.id, entry.trashed) for entry in answer] == [
            (kept.id, False),
            (gone.id, True),
        ]
    assert library.get(gone.id).trashed
    assert ids(library.search().entries) == [kept.id]
    (work,) = library.works().works
    assert (work.cover.id, work.num_pictures) == (kept.id, 1)


def test_the_cover_of_a_work_is_a_picture_that_can_be_shown(library: Library) -> None:
    """The newest one whose file is there, or a lost one when all are."""
    lineage = make_lineage()
    first = library.add(make_picture(lineage=lineage))
    changes = {"picture_id": new_id(), "cell": 1}
    second = library.add(make_picture(seed=8, lineage=lineage.model_copy(update=changes)))

    second.path.unlink()
    assert library.works().works[0].cover == first
    first.path.unlink()
    assert library.works().works[0].cover.lost


ADD_TEN = """
import sys
from pathlib import Path
from typing import Any
from pictures import make_picture
from seedgrid.library import Library
library = Library(Path(sys.argv[1]))
for seed in range(10):
    library.set_note(library.add(make_picture(seed=seed)).id, sys.argv[2])
"""


def test_processes_share_a_library_from_its_first_moment(tmp_path: Path) -> None:
    """Three processes that make the library at once and write to it lose nothing."""
    folder = tmp_path / "library"

    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}  # Ours is where it runs.
    processes = [start_python("-c", ADD_TEN, folder, str(n), env=environment) for n in range(3)]

    assert [process.communicate()[1] for process in processes] == ["", "", ""]
    library = Library(folder)
    assert len(library.search(limit=100).entries) == 30
    assert library.check().is_clean


def test_a_locked_database_is_told_and_works_again(tmp_path: Path) -> None:
    """Another program that keeps the database gives one sentence; nothing is lost."""
    library = Library(tmp_path / "library", busy_timeout_s=0.05)
    entry = library.add(make_picture())
    other = sqlite3.connect(library.folder / "library.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    for action in (
        lambda: library.add(make_picture(seed=8)),
        lambda: library.set_favourite(entry.id, True),
        lambda: library.get(entry.id),
    ):
        with refused(LibraryError, "library_locked"):
            action()
    other.close()

    assert library.get(entry.id) == entry
    library.add(make_picture(seed=9))
    again = Library(library.folder)
    assert len(again.search().entries) == 2
    assert again.check().is_clean
