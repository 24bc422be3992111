"""The PNG files are the truth: the database can always be made again from them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pictures import make_lineage, make_picture
from refusing import refused

from seedgrid.core.errors import LibraryError
from seedgrid.core.picture import new_id
from seedgrid.library import Library
from seedgrid.library.database import VERSION, Database
from seedgrid.library.picture_files import PictureFiles
from seedgrid.library.rebuild import rebuild


def change_database(library: Library, statement: str, *values: object) -> None:
    """Change rows behind the library's back."""
    with contextlib.closing(sqlite3.connect(library.folder / "library.db")) as connection:
        connection.execute(statement, values)
        connection.commit()


def test_everything_but_late_marks_comes_back_without_the_database(library: Library) -> None:
    """Tree, recipes and pixels come from the files, marks from the backup of the day."""
    work = new_id()
    root = library.add(make_picture(lineage=make_lineage(work_id=work)))
    child = make_lineage(work_id=work, parent_id=root.id, change=", artsy")
    entries = [root, library.add(make_picture(prompt="a red fox, artsy", lineage=child))]
    library.set_favourite(root.id, True)  # The first mark of a day is followed by the backup.
    library.set_note(root.id, "later than the backup")
    (library.folder / "library.db").unlink()

    again = Library(library.folder)

    assert [notice.code for notice in again.notices] == ["library_rebuilt"]
    expected = [replace(entry, origin="not checked") for entry in entries]
    assert again.work(work) == (replace(expected[0], favourite=True), expected[1])
    assert again.check().is_clean


def test_a_backup_from_a_wrong_clock_is_made_again(library: Library) -> None:
    """It is from the future, and kept newer ones away until then."""
    entry, backup = library.add(make_picture()), library.folder / "library.backup.db"
    library.set_favourite(entry.id, True)
    os.utime(backup, (4e9, 4e9))
    library.set_note(entry.id, "later")
    assert backup.stat().st_mtime < 4e9


def test_a_stopped_rebuild_loses_nothing(library: Library, monkeypatch: Any) -> None:
    """The database stays in its place while all pictures are read."""
    library.add(make_picture())
    monkeypatch.setattr(PictureFiles, "new_entry", lambda *_: sys.exit())
    with pytest.raises(SystemExit):
        rebuild(PictureFiles(library.folder), Database(library.folder / "library.db", timeout_s=1))
    assert (library.folder / "library.db").is_file()


@pytest.mark.parametrize("content", [b"", b"this is text", b"\0" * 4096, None])
def test_a_wrecked_database_beside_pictures_is_no_new_library(
    library: Library, content: bytes | None
) -> None:
    """Empty, text, zeros or truncated: it is moved aside, and the pictures are found again."""
    entry = library.add(make_picture())
    library.set_favourite(entry.id, True)
    database = library.folder / "library.db"
    database.write_bytes(database.read_bytes()[:5000] if content is None else content)
    with refused(LibraryError, "library_damaged"):
        library.get(entry.id)

    again = Library(library.folder)

    assert again.get(entry.id).favourite
    assert again.notices
    assert list((library.folder / "damaged").glob("*library.db"))
    assert library.get(entry.id) == again.get(entry.id)


def test_a_deleted_picture_does_not_come_back(library: Library) -> None:
    """Its file goes before its row, so a rebuild cannot find it."""
    kept, gone = library.add(make_picture()), library.add(make_picture(seed=8))
    library.trash(gone.id)
    library.empty_trash()
    (library.folder / "library.db").unlink()

    assert [entry.id for entry in Library(library.folder).search().entries] == [kept.id]


def test_a_newer_library_is_refused_and_left_alone(library: Library) -> None:
    """An older SeedGrid does not touch what a later one made."""
    library.add(make_picture())
    change_database(library, f"PRAGMA user_version = {VERSION + 1}")
    before = (library.folder / "library.db").read_bytes()

    with refused(LibraryError, "library_newer"):
        Library(library.folder)

    assert (library.folder / "library.db").read_bytes() == before


def test_a_file_without_a_row_is_adopted(library: Library) -> None:
    """What a killed process wrote last is found by the check and gets its row."""
    entry = library.add(make_picture())
    change_database(library, "DELETE FROM pictures")

    assert library.check().orphaned == (entry.file_sha256,)
    library.check(repair=True)

    assert library.get(entry.id) == replace(entry, origin="not checked")
    assert library.check().is_clean


@pytest.mark.parametrize("statement", ["seed = 6", "prompt = 'a red fix'", "work_id = 'ab'"])
def test_a_row_that_is_not_what_its_file_says_is_made_again(
    library: Library, statement: str
) -> None:
    """The check compares each row with its file; the marks stay."""
    entry = library.set_favourite(library.add(make_picture()).id, True)
    change_database(library, f"UPDATE pictures SET {statement}")  # noqa: S608

    assert library.check(repair=True).rows == (entry.id,)

    assert library.get(entry.id) == replace(entry, origin="not checked")
    assert library.check().is_clean


def test_a_damaged_recipe_is_never_shown(library: Library) -> None:
    """It does not fit its id; the check brings it back."""
    entry = library.add(make_picture())
    change_database(library, "UPDATE recipes SET json = replace(json, 'fox', 'fix')")
    with refused(LibraryError, "library_damaged"):
        library.get(entry.id)

    library.check(repair=True)

    assert library.get(entry.id).recipe == entry.recipe


def test_a_missing_file_is_told_and_welcome_back(library: Library) -> None:
    """The picture is lost, its recipe stays; it is whole when its file is put back."""
    entry = library.add(make_picture())
    data = entry.path.read_bytes()
    entry.path.unlink()

    assert library.check(repair=True).missing == (entry.id,)
    assert library.get(entry.id) == replace(entry, lost=True)
    assert library.add_png(data) == entry
    assert library.check().is_clean


def test_a_damaged_file_is_set_aside(library: Library) -> None:
    """One flipped bit in a file is found; the file is kept out of the way."""
    entry = library.add(make_picture())
    data = bytearray(entry.path.read_bytes())
    data[-30] ^= 1
    entry.path.write_bytes(data)

    report = library.check(repair=True)

    assert (report.damaged, report.missing) == ((entry.file_sha256,), (entry.id,))
    assert library.get(entry.id).lost
    assert [path.read_bytes() for path in (library.folder / "damaged").iterdir()] == [data]


def test_every_connection_waits_for_the_disk(tmp_path: Path) -> None:
    """`synchronous` belongs to a connection: each must be EXTRA, with a rollback journal."""
    database = Database(tmp_path / "library.db", timeout_s=1)
    with database.writes() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        ]
    assert found == [3, "delete"]
