"""Library: a folder with all pictures, and an index, shared by threads and processes.

    entry = Library(Path("art")).add(picture)

When `add` returns, the picture survives kill -9, a power cut and a full disk.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
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
from seedgrid.formats import png
from seedgrid.formats.own_texts import signed
from seedgrid.library import rebuild
from seedgrid.library.database import Database, Files
from seedgrid.library.rebuild import Report, insert, new_entry
from seedgrid.library.search import Searches
from seedgrid.storage import starts
from seedgrid.storage.files import check_room, make_folder

_BESIDE_PIXELS: Final = 16 * 1024  # Of recipe and row; packed pixels are never larger than raw ones

_File = tuple[bytes, Entry]  # a PNG file and its entry


class Watcher(Protocol):
    """Limits a library and counts its bytes."""

    def may_grow(self) -> None:
        """Called before its folder is made and before new pictures; it may raise."""

    def added(self, picture_ids: Sequence[str], num_bytes: int) -> None:
        """Called with new pictures and the number of new bytes."""

    def deleted(self, picture_ids: Sequence[str]) -> None:
        """Called with deleted pictures."""


class Library(Searches):
    """All pictures with their lineage, marks and files; the folder is made with the first one.

    A change of marks applies to all given pictures or to none. `busy_timeout_s` is the wait for
    another process that is writing; `watcher` sets limits and counts bytes. Raise LibraryError if
    the folder or its database refuses; at any error nothing has changed.
    """

    def __init__(
        self, folder: Path, *, busy_timeout_s: float = 30.0, watcher: Watcher | None = None
    ) -> None:
        self.folder = folder.expanduser().absolute()
        database = Database(self.folder / "library.db", timeout_s=busy_timeout_s)
        super().__init__(Files(self.folder), database)
        self._watcher = watcher
        # Of what opening it had to repair.
        self.notices: tuple[Notice, ...] = rebuild.prepare(self._files, database)
        if self.starts.is_dir():
            starts.know(self.starts)

    @property
    def starts(self) -> Path:
        """The folder of start pictures and masks."""
        return self.folder / "starts"

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Check before painting that pictures of these recipes find room; raise `disk_low`."""
        self._ask_to_grow()
        make_folder(self.folder)
        sizes = [3 * recipe.width * recipe.height + _BESIDE_PIXELS for recipe in recipes]
        check_room(self.folder, sum(sizes))

    def add(self, picture: Picture) -> Entry:
        """Add a picture painted here, safe on disk at return; an error changes no other picture."""
        return self.add_together([picture])[0]

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Add a few pictures, all or none; they are encoded in parallel."""
        with ThreadPoolExecutor(max_workers=8) as threads:
            packed = list(threads.map(_encoded, pictures))
        pairs = zip(packed, pictures, strict=True)
        return self._keep([self._file(data, picture, "painted here") for data, picture in pairs])

    def add_png(self, data: bytes) -> Entry:
        """Add a SeedGrid PNG file once, unchanged, as "taken in": anybody can write such a file.

        Raise PictureError: it has no recipe, is damaged, or its pixels do not have its digest;
        `picture_twice`: another file has its id; LibraryError: full, read-only or locked.
        """
        record, _ = png.read_checked(data)
        self._ask_to_grow()
        return self._keep([self._file(data, record, "taken in")])[0]

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Add copies of pictures with other lineages, not computed; raise `picture_lost`."""
        files = []
        for entry, lineage in copies:
            data = self._files.read(entry.file_sha256)
            if data is None:
                raise LibraryError("picture_lost", value=entry.id)
            data = _signed(png.rewrite(data, lineage=lineage), entry.recipe)
            files.append(self._file(data, replace(entry, lineage=lineage), entry.origin))
        return self._keep(files)

    def keep_start(self, pixels: Pixels) -> str:
        """Store a start picture or mask; return the SHA-256 of its pixels."""
        file = self.starts / f"{pixels_sha256(pixels)}.png"
        if file.is_file():
            return starts.keep(self.starts, pixels)
        self._ask_to_grow()
        sha256 = starts.keep(self.starts, pixels)
        if self._watcher is not None:
            self._watcher.added((), file.stat().st_size)
        return sha256

    def confirm(self, picture_id: str) -> Entry:
        """Note that a picture was verified here, bit for bit."""

        def confirmed(entry: Entry) -> Entry:
            return entry if entry.checked else replace(entry, origin="verified here")

        return self._change([picture_id], confirmed)[0]

    def set_favourite(self, picture_id: str, favourite: bool) -> Entry:
        """Mark or unmark a favourite."""
        return self.set_favourites((picture_id,), favourite)[0]

    def set_favourites(self, picture_ids: Sequence[str], favourite: bool) -> tuple[Entry, ...]:
        """Mark or unmark favourites."""
        return self._change(picture_ids, lambda entry: replace(entry, favourite=favourite))

    def set_note(self, picture_id: str, note: str) -> Entry:
        """Set the note of a picture; one that is too long is refused."""
        text = check_prompt(note, field="note")
        return self._change((picture_id,), lambda entry: replace(entry, note=text))[0]

    def tag(
        self, picture_ids: Sequence[str], *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[Entry, ...]:
        """Add and remove tags of pictures; refused as by `core.picture.changed_tags`."""
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
        """Delete the pictures in the trash, files and rows; return how many. Others stay there."""
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
        if self._watcher is not None:
            self._watcher.deleted([row["picture_id"] for row in rows])
        return len(rows)

    def check(self, *, repair: bool = False) -> Report:
        """Check every file and every row.

        `repair` adds missing rows, moves damaged files away, and rebuilds a damaged database.
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
        if self._watcher is not None:
            self._watcher.may_grow()

    def _file(self, data: bytes, made: Picture | png.PngRecord | Entry, origin: Origin) -> _File:
        file_sha256 = hashlib.sha256(data).hexdigest()
        return data, new_entry(self._files, file_sha256, made, origin)

    def _keep(self, files: Sequence[_File]) -> tuple[Entry, ...]:
        """Add PNG files, all rows or none; files are on the disk before rows."""
        if not self.folder.exists():
            self._ask_to_grow()
        kept: list[Entry] = []
        num_bytes: dict[str, int] = {}  # of each new picture
        with self._database.writes() as connection:
            for data, entry in files:
                known = self._known(connection, entry)
                if known is None:
                    insert(connection, entry)
                    num_bytes[entry.id] = len(data)
                kept.append(known or entry)
            with ThreadPoolExecutor(max_workers=8) as threads:
                list(threads.map(self._files.put, [data for data, _ in files]))
        if self._watcher is not None and num_bytes:
            self._watcher.added([*num_bytes], sum(num_bytes.values()))
        return tuple(kept)

    def _known(self, connection: sqlite3.Connection, entry: Entry) -> Entry | None:
        """Return the known picture with an entry's id, which must have the same file."""
        try:
            known = self._one(connection, entry.id)
        except InputError:
            return None
        if known.file_sha256 != entry.file_sha256:
            raise InputError("picture_twice", field="picture", value=entry.id)
        return replace(known, lost=False)

    def _change(
        self, picture_ids: Sequence[str], changed: Callable[[Entry], Entry]
    ) -> tuple[Entry, ...]:
        with self._database.writes() as connection:
            entries = tuple(changed(self._one(connection, each)) for each in picture_ids)
            connection.executemany(
                """
                UPDATE pictures SET favourite = ?, note = ?, trashed = ?, tags = ?, origin = ?
                WHERE picture_id = ?
                """,
                [(*_marks(entry), entry.id) for entry in entries],
            )
        self._database.back_up()
        return entries


def _marks(entry: Entry) -> tuple[bool, str, bool, str, Origin]:
    tags = json.dumps(entry.tags, ensure_ascii=False)
    return entry.favourite, entry.note, entry.trashed, tags, entry.origin


def _encoded(picture: Picture) -> bytes:
    return _signed(png.encode(picture), picture.recipe)


def _signed(data: bytes, recipe: Recipe) -> bytes:
    return signed(data, has_start=bool(recipe.kept_pixels))
