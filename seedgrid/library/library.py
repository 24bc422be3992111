"""Library: a folder with all pictures, and an index, shared by threads and processes.

    entry = Library(Path("art")).add(picture)

When `add` returns, the picture survives kill -9, a power cut and a full disk.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import main_thread
from typing import Final, Protocol

from seedgrid.core.checks import check_prompt
from seedgrid.core.errors import InputError, LibraryError, Notice
from seedgrid.core.picture import (
    Entry,
    Lineage,
    Origin,
    Picture,
    Pixels,
    changed_tags,
    pixels_sha256,
)
from seedgrid.core.recipe import Recipe
from seedgrid.core.text import expanded
from seedgrid.formats import png
from seedgrid.formats.own_texts import signed
from seedgrid.library import rebuild
from seedgrid.library.database import Database, insert, marks_row
from seedgrid.library.picture_files import PictureFiles
from seedgrid.library.rebuild import Report
from seedgrid.library.search import Searches
from seedgrid.storage import starts
from seedgrid.storage.files import check_room, make_folder

_BESIDE_PIXELS: Final = 16 * 1024  # Bytes of recipe and row, beside those of the raw pixels

_File = tuple[bytes, Entry]  # a PNG file and its entry


class LibraryQuota(Protocol):
    """Limits a library and counts its bytes."""

    def may_grow(self) -> None:
        """Called by `check_room`, `add_png`, `keep_start`, for a new folder; raises to refuse."""

    def added(self, picture_ids: Sequence[str], num_bytes: int) -> None:
        """Called with new pictures and the number of new bytes."""

    def deleted(self, picture_ids: Sequence[str]) -> None:
        """Called with deleted pictures."""


class Library(Searches):
    """All pictures with their lineage, marks and files; the folder is created for the first one.

    A change of marks applies to all given pictures or to none. `busy_timeout_s` is the wait for
    another process that is writing; `quota` sets limits and counts bytes. Raise LibraryError if
    the folder or its database cannot be used; after any error the rows are as before.
    """

    def __init__(
        self, folder: Path, *, busy_timeout_s: float = 30.0, quota: LibraryQuota | None = None
    ) -> None:
        self.folder = expanded(folder).absolute()
        database = Database(self.folder / "library.db", timeout_s=busy_timeout_s)
        super().__init__(PictureFiles(self.folder), database)
        self._quota = quota
        # What was repaired when the library was opened
        self.notices: tuple[Notice, ...] = rebuild.make_usable(self._files, database)
        if self.starts.is_dir():
            starts.add_folder(self.starts)

    @property
    def starts(self) -> Path:
        """The folder of start pictures and masks."""
        return self.folder / "starts"

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Create the folder and check that pictures of these recipes fit; raise `disk_low`."""
        self._ask_to_grow()
        make_folder(self.folder)
        sizes = [3 * recipe.width * recipe.height + _BESIDE_PIXELS for recipe in recipes]
        check_room(self.folder, sum(sizes))

    def add(self, picture: Picture) -> Entry:
        """Add a picture painted here, safe on disk at return; an error changes no other picture."""
        return self.add_together([picture])[0]

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Add a few pictures, all or none; they are encoded in parallel."""
        if main_thread().is_alive():
            with ThreadPoolExecutor(max_workers=8) as threads:
                packed = list(threads.map(_encoded, pictures))
        else:  # The program ends: its engine saves the last pictures, and no thread can start.
            packed = list(map(_encoded, pictures))
        pairs = zip(packed, pictures, strict=True)
        return self._insert_all([self._with_entry(*pair, "painted here") for pair in pairs])

    def add_png(self, data: bytes) -> Entry:
        """Add a SeedGrid PNG file once, unchanged, as "taken in": its recipe may be false.

        Raise PictureError: the file has no recipe, is damaged, or its pixels were altered;
        `picture_twice`: its id is another file's; LibraryError: full, read-only or locked.
        """
        record, _ = png.read_checked(data)
        self._ask_to_grow()
        return self._insert_all([self._with_entry(data, record, "taken in")])[0]

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Add copies of pictures with other lineages, without painting; raise `picture_lost`."""
        files = []
        for entry, lineage in copies:
            data = self._files.read(entry.file_sha256)
            if data is None:
                raise LibraryError("picture_lost", value=entry.id)
            has_start = bool(entry.recipe.kept_pixels)
            data = signed(png.rewrite(data, lineage=lineage), has_start=has_start)
            files.append(self._with_entry(data, replace(entry, lineage=lineage), entry.origin))
        return self._insert_all(files)

    def keep_start(self, pixels: Pixels) -> str:
        """Store a start picture or mask; return the SHA-256 of its pixels."""
        file = self.starts / f"{pixels_sha256(pixels)}.png"
        if file.is_file():
            return starts.write(self.starts, pixels)
        self._ask_to_grow()
        sha256 = starts.write(self.starts, pixels)
        if self._quota is not None:
            self._quota.added((), file.stat().st_size)
        return sha256

    def mark_verified(self, picture_id: str) -> Entry:
        """Set the origin to "verified here"; a picture "painted here" stays so."""

        def verified(entry: Entry) -> Entry:
            return entry if entry.checked else replace(entry, origin="verified here")

        return self._change([picture_id], verified)[0]

    def set_favourite(self, picture_id: str, favourite: bool) -> Entry:
        """Mark or unmark a favourite."""
        return self.set_favourites((picture_id,), favourite)[0]

    def set_favourites(self, picture_ids: Sequence[str], favourite: bool) -> tuple[Entry, ...]:
        """Mark or unmark favourites."""
        return self._change(picture_ids, lambda entry: replace(entry, favourite=favourite))

    def set_note(self, picture_id: str, note: str) -> Entry:
        """Set the note of a picture; raises as `check_prompt`."""
        text = check_prompt(note, field="note")
        return self._change((picture_id,), lambda entry: replace(entry, note=text))[0]

    def tag(
        self, picture_ids: Sequence[str], *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[Entry, ...]:
        """Add and remove tags of pictures; raises as `core.picture.changed_tags`."""
        return self._change(
            picture_ids,
            lambda entry: replace(entry, tags=changed_tags(entry.tags, add=add, remove=remove)),
        )

    def trash(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Move pictures to the trash; their files stay."""
        return self._change(picture_ids, lambda entry: replace(entry, trashed=True))

    def restore(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Restore pictures from the trash."""
        return self._change(picture_ids, lambda entry: replace(entry, trashed=False))

    def empty_trash(self) -> int:
        """Delete the pictures in the trash, files and rows; return how many."""
        with self._database.writes() as connection:
            statement = "SELECT picture_id, file_sha256 FROM pictures WHERE trashed = 1"
            rows = connection.execute(statement).fetchall()
            # Files first: a file without a row would come back when the library is rebuilt.
            for row in rows:
                self._files.remove(row["file_sha256"])
            connection.execute("DELETE FROM pictures WHERE trashed = 1")
            connection.execute(
                "DELETE FROM recipes WHERE recipe_id NOT IN (SELECT recipe_id FROM pictures)"
            )
        if self._quota is not None:
            self._quota.deleted([row["picture_id"] for row in rows])
        return len(rows)

    def check(self, *, repair: bool = False) -> Report:
        """Check every file and every row.

        `repair` adds missing rows, moves damaged files away, and rebuilds a faulty database.
        """
        report = rebuild.inspect(self._files, self._database)
        if repair and not report.is_clean:
            rebuild.repair(self._files, self._database, report)
        return report

    def file_of(self, picture_id: str) -> Path | None:
        """Return the path of a picture's file; None for an unknown picture."""
        statement = "SELECT file_sha256 FROM pictures WHERE picture_id = ?"
        with self._database.reads() as connection:
            row = connection.execute(statement, (picture_id,)).fetchone()
        return None if row is None else self._files.path(row["file_sha256"])

    def _ask_to_grow(self) -> None:
        if self._quota is not None:
            self._quota.may_grow()

    def _with_entry(
        self, data: bytes, picture: Picture | png.PngRecord | Entry, origin: Origin
    ) -> _File:
        file_sha256 = hashlib.sha256(data).hexdigest()
        return data, self._files.new_entry(file_sha256, picture, origin)

    def _insert_all(self, files: Sequence[_File]) -> tuple[Entry, ...]:
        """Add PNG files, all rows or none; files are on the disk before rows are committed."""
        if not self.folder.exists():
            self._ask_to_grow()
        added: list[Entry] = []
        num_bytes: dict[str, int] = {}  # of each new file, by picture id
        with self._database.writes() as connection:
            for data, entry in files:
                existing = self._existing(connection, entry)
                if existing is None:
                    insert(connection, entry)
                    num_bytes[entry.id] = len(data)
                added.append(existing or entry)
            for data, _ in files:
                self._files.write(data)
        if self._quota is not None and num_bytes:
            self._quota.added([*num_bytes], sum(num_bytes.values()))
        return tuple(added)

    def _existing(self, connection: sqlite3.Connection, entry: Entry) -> Entry | None:
        """Return the picture that has an entry's id; raise `picture_twice` if its file differs."""
        try:
            existing = self._one(connection, entry.id)
        except InputError:
            return None
        if existing.file_sha256 != entry.file_sha256:
            raise InputError("picture_twice", field="picture", value=entry.id)
        return replace(existing, lost=False)

    def _change(
        self, picture_ids: Sequence[str], changed: Callable[[Entry], Entry]
    ) -> tuple[Entry, ...]:
        with self._database.writes() as connection:
            entries = tuple(changed(self._one(connection, each)) for each in picture_ids)
            connection.executemany(
                """
                UPDATE pictures SET favourite = :favourite, note = :note, trashed = :trashed,
                    tags = :tags, origin = :origin WHERE picture_id = :id
                """,
                [marks_row(entry) | {"id": entry.id} for entry in entries],
            )
        self._database.back_up()
        return entries


def _encoded(picture: Picture) -> bytes:
    return signed(png.encode(picture), has_start=bool(picture.recipe.kept_pixels))
