"""Checks a library's files and database, and rebuilds the database from the files.

The artist's marks are not in the files: they come from the database, else from its backup. The
origins are not in the files either: after rebuilding they are "not checked".
"""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from seedgrid.core.errors import LibraryError, Notice, PictureError
from seedgrid.core.picture import Entry
from seedgrid.formats import png
from seedgrid.library.database import ENTRIES, MARKS, Database, insert, problems, read_entry, row_of
from seedgrid.library.picture_files import PictureFiles
from seedgrid.storage.files import refusals

_REBUILD_TIMEOUT_S: Final = 600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of checking a library."""

    num_pictures: int = 0  # rows that were checked
    orphaned: tuple[str, ...] = ()  # files without a row, by SHA-256
    damaged: tuple[str, ...] = ()  # files with another digest or without a recipe, by SHA-256
    missing: tuple[str, ...] = ()  # pictures outside the trash whose file is gone or damaged, by id
    rows: tuple[str, ...] = ()  # pictures whose row differs from their file, by id
    database: str = ""  # SQLite's report on a damaged database, or nothing

    @property
    def num_findings(self) -> int:
        """How many things are wrong."""
        lists = (self.orphaned, self.damaged, self.missing, self.rows)
        return sum(map(len, lists)) + bool(self.database)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return self.num_findings == 0


def make_usable(files: PictureFiles, database: Database) -> tuple[Notice, ...]:
    """Rebuild a damaged database, with a notice; delete old temporary files; back the database up.

    Raise LibraryError if a later release wrote it, or its files cannot be read or written.
    """
    files.sweep()
    notices: tuple[Notice, ...] = ()
    if not _is_usable(database):
        lock = FileLock(database.path.with_name("library.lock"), timeout=_REBUILD_TIMEOUT_S)
        try:
            with refusals(database.path), lock:
                if not _is_usable(database):  # Another process may have rebuilt it.
                    notices = (Notice("library_rebuilt", value=rebuild(files, database)),)
                    _log.warning("%s", notices[0])
        except Timeout as error:
            raise LibraryError("library_locked", value=str(database.path)) from error
    database.back_up()
    return notices


def _is_usable(database: Database) -> bool:
    try:
        with database.reads() as connection:
            connection.execute(f"{ENTRIES} LIMIT 1").fetchall()
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return False
    return True


def rebuild(files: PictureFiles, database: Database) -> int:
    """Move the database aside and rebuild it from the files; return its number of pictures."""
    marks = _marks_of(database.backup) | _marks_of(database.path)
    names = set(files.names())
    entries = {entry.id: entry for entry in _entries_of(files, names)}
    for suffix in ("", "-journal", "-wal", "-shm"):
        files.set_aside(database.path.with_name(database.path.name + suffix))
    entries |= {entry.id: entry for entry in _entries_of(files, set(files.names()) - names)}
    with database.made_anew() as connection:
        for entry in sorted(entries.values(), key=attrgetter("lineage.created_at", "lineage.cell")):
            insert(connection, replace(entry, **marks.get(entry.id, {})))
    return len(entries)


def look_at(folder: Path) -> Report:
    """Inspect a library without opening it, which would repair its database."""
    return inspect(PictureFiles(folder), Database(folder / "library.db", timeout_s=30.0))


def inspect(files: PictureFiles, database: Database) -> Report:
    """Read every file and every row; change nothing."""
    # Files first: a picture that is added meanwhile gets its file before its row.
    names = frozenset(files.names())
    read = {entry.file_sha256: entry for entry in _entries_of(files, names)}
    try:
        with database.reads() as connection:
            problem = problems(connection)
            rows = connection.execute(ENTRIES).fetchall()
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return Report(database=str(error), damaged=tuple(sorted(names - read.keys())))
    by_file = {row["file_sha256"]: row for row in rows}
    gone = [row for name, row in by_file.items() if name not in read and name in names]
    gone += [row for name, row in by_file.items() if not files.path(name).is_file()]
    return Report(
        num_pictures=len(rows),
        orphaned=tuple(sorted(read.keys() - by_file.keys())),
        damaged=tuple(sorted(names - read.keys())),
        missing=tuple(row["picture_id"] for row in gone if not row["trashed"]),
        rows=tuple(
            str(row["picture_id"])
            for name, row in by_file.items()
            if name in read and not _equals_file(row, read[name], files)
        ),
        database=problem,
    )


def repair(files: PictureFiles, database: Database, report: Report) -> None:
    """Repair what `inspect` found, except missing files."""
    for name in report.damaged:
        files.set_aside(files.path(name))
    if report.database or report.rows:
        rebuild(files, database)
        return
    entries = tuple(_entries_of(files, report.orphaned))
    with database.writes() as connection:
        for entry in entries:
            with suppress(sqlite3.IntegrityError):  # Another process may have added it meanwhile.
                insert(connection, entry)


def _equals_file(row: sqlite3.Row, entry: Entry, files: PictureFiles) -> bool:
    """Tell whether a row equals its picture's file."""
    try:
        read_entry(row, files)
    except LibraryError:
        return False
    return all(row[name] == value for name, value in row_of(entry).items())


def _entries_of(files: PictureFiles, names: Iterable[str]) -> Iterator[Entry]:
    """Yield the entries of undamaged files; others are logged."""
    for file_sha256 in names:
        try:
            record = png.read(files.read(file_sha256) or b"")
        except PictureError as error:
            _log.warning("%s: %s", files.path(file_sha256), error)
            continue
        yield files.new_entry(file_sha256, record, "not checked")


def _marks_of(path: Path) -> dict[str, dict[str, Any]]:
    """Read the marks by picture from a database; empty if it cannot be read."""
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(f"SELECT picture_id, {', '.join(MARKS)} FROM pictures")
            return {
                picture_id: {
                    "favourite": bool(favourite),
                    "note": str(note),
                    "trashed": bool(trashed),
                    "tags": tuple(map(str, json.loads(tags))),
                }
                for picture_id, favourite, note, trashed, tags in rows
            }
    except (sqlite3.Error, ValueError, TypeError) as error:
        _log.warning("the marks in %s cannot be read: %s", path, error)
        return {}
