"""A library that is deleted, replaced or overwritten while it is open is made again and goes on."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import make_picture

from seedgrid.library import Library, objects
from seedgrid.library.objects import Objects
from seedgrid.library.storage import LibraryStorage
from seedgrid.web.state.visitor_libraries import VisitorLibraries

ROOT = Path(__file__).parent.parent


def overwrite(folder: Path) -> None:
    (folder / "library.db").write_bytes(b"what somebody wrote by mistake" * 1000)


def replace(folder: Path) -> None:
    (folder / "other").write_bytes(b"SQLite format 4 or so" * 1000)
    (folder / "other").replace(folder / "library.db")


def copy_another_over(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "other")) as other:
        other.execute("CREATE TABLE pictures (number INTEGER)")
        other.commit()
    (folder / "library.db").write_bytes((folder / "other").read_bytes())
    (folder / "other").unlink()


def empty(folder: Path) -> None:
    (folder / "library.db").write_bytes(b"")


def delete(folder: Path) -> None:
    (folder / "library.db").unlink()


@pytest.mark.parametrize("harm", [overwrite, replace, copy_another_over, empty, delete])
@pytest.mark.parametrize("has_read", [False, True])
def test_a_database_that_is_lost_while_open_is_made_again(
    tmp_path: Path, harm: Callable[[Path], None], has_read: bool
) -> None:
    """What was painted before and what is painted after are both there, and stay."""
    with Library(tmp_path) as library:
        library.set_favourite(library.add(make_picture(seed=1)).id, True)
        harm(tmp_path)
        if has_read:
            assert [entry.favourite for entry in library.search().entries] == [True]
        library.add(make_picture(seed=2))
        assert [entry.recipe.seed for entry in library.search().entries] == [2, 1]
        assert library.check().is_clean
        assert "library_rebuilt" in [notice.code for notice in library.notices]
    with Library(tmp_path) as library:
        assert [entry.recipe.seed for entry in library.search().entries] == [2, 1]


@pytest.mark.parametrize("has_read", [False, True])
def test_a_folder_that_is_deleted_while_open_is_made_again(tmp_path: Path, has_read: bool) -> None:
    """It once showed pictures that were gone, and kept no new ones, until the program ended."""
    folder = tmp_path / "art"
    with Library(folder) as library:
        gone = library.add(make_picture(seed=1))
        shutil.rmtree(folder)
        if has_read:
            assert library.search().entries == ()
            assert library.file_of(gone.id) is None
        picture = make_picture(seed=2)
        library.check_room([picture.recipe])
        kept = library.add(picture)
        library.set_note(kept.id, "after")
        assert [entry.note for entry in library.search().entries] == ["after"]
        assert library.check().is_clean
    with Library(folder) as library:
        assert [entry.id for entry in library.search().entries] == [kept.id]


@pytest.mark.parametrize(
    ("owner", "moment"),
    [
        (Objects, "open_session"),
        (Objects, "read"),
        (objects, "write_atomically"),
        (LibraryStorage, "_insert"),
        (LibraryStorage, "_heal_twins"),
    ],
)
def test_a_folder_that_is_deleted_while_it_is_written_is_made_again(
    tmp_path: Path, owner: object, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run once ended there with a sentence, and its pictures were gone; now they are saved again.

    The folder really goes, in the very moment before a step of saving.
    """
    folder = tmp_path / "art"
    true, left = getattr(owner, moment), [1]

    def deleting(*args: object, **named: object) -> object:
        if left:
            left.pop()
            folder.rename(tmp_path / "gone")  # At once: another thread writes into it.
            shutil.rmtree(tmp_path / "gone", ignore_errors=True)
        return true(*args, **named)

    with Library(folder) as library:
        library.add(make_picture(seed=1))
        monkeypatch.setattr(owner, moment, deleting)
        kept = library.add_together([make_picture(seed=2), make_picture(seed=3)])
        assert not left
        assert {entry.id for entry in library.search().entries} == {entry.id for entry in kept}
        assert all(entry.path.is_file() for entry in kept)
        assert all(entry.checked for entry in library.search().entries)
        assert library.check().is_clean


def lose(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize("harm", [overwrite, replace, empty, delete, lose])
@pytest.mark.parametrize("has_read", [False, True])
def test_a_visitors_library_is_made_again_too(
    tmp_path: Path, harm: Callable[[Path], None], has_read: bool
) -> None:
    """Those of a public page once answered every click with an error from then on."""
    library = VisitorLibraries(tmp_path).of("a" * 32)
    before = library.add(make_picture(seed=1))
    harm(library.folder)
    kept = [] if harm is lose else [1]
    if has_read:
        assert [entry.recipe.seed for entry in library.work(before.lineage.work_id)] == kept
        assert (library.file_of(before.id) is None) == (harm is lose)
    after = library.add(make_picture(seed=2))
    assert library.set_favourite(after.id, True).favourite
    assert [entry.recipe.seed for entry in library.search().entries] == [2, *kept]


def test_two_that_have_it_open_agree_on_what_was_made_again(tmp_path: Path) -> None:
    with Library(tmp_path) as one, Library(tmp_path) as other:
        one.add(make_picture(seed=1))
        assert len(other.search().entries) == 1
        (tmp_path / "library.db").unlink()
        one.add(make_picture(seed=2))
        other.add(make_picture(seed=3))
        for library in (one, other):
            assert [entry.recipe.seed for entry in library.search().entries] == [3, 2, 1]


OPEN_MANY = """
import sys, threading
from pathlib import Path
from seedgrid.library import Library, objects
from seedgrid.library.objects import Objects
from seedgrid.library.storage import LibraryStorage
start = threading.Barrier(8)
errors = []
def open_one(number):
    start.wait()
    try:
        Library(Path(sys.argv[1]) / str(number)).close()
    except BaseException as error:
        errors.append(repr(error))
for turn in range(3):
    threads = [threading.Thread(target=open_one, args=(8 * turn + n,)) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(errors)
"""


def test_many_new_libraries_open_at_once(tmp_path: Path) -> None:
    """Two migrations in one process took each other's globals: KeyError, a hang, a crash."""
    command = [sys.executable, "-c", OPEN_MANY, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
