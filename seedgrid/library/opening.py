"""What happens when a library is opened: it is made, migrated, or brought back after a crash.

A database that is missing, empty or unreadable beside pictures is never taken for a new library:
what is there is moved aside and the rows are made again from the PNG files.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from seedgrid.core.errors import LibraryError, PictureError
from seedgrid.core.notices import Notice
from seedgrid.library import checkup, mending, tables
from seedgrid.library.checkup import Report
from seedgrid.library.database import HEAD
from seedgrid.library.marks import Marks
from seedgrid.library.shelf import Shelf
from seedgrid.storage.files import make_folder

_log = logging.getLogger(__name__)


def open_shelf(shelf: Shelf) -> tuple[Notice, ...]:
    """Make sure that the library can be used.

    Returns:
        What the artist should know: that the library was rebuilt, or mended after a crash.

    Raises:
        LibraryError: The folder or the database refuses, or a later SeedGrid made it.
    """
    make_folder(shelf.folder)
    notices: list[Notice] = []
    if _version(shelf) != HEAD:
        with shelf.held():
            notices += _make_or_migrate(shelf)
    notices += _mend_after_crash(shelf)
    for notice in notices:
        _log.warning("%s", notice)
    return tuple(notices)


def rebuild(shelf: Shelf) -> Notice:
    """Move the database aside and make it again from the PNG files and the marks.

    The caller holds the library's lock.

    Raises:
        LibraryError: The folder refuses; the next start tries again.
    """
    shelf.database.close()
    for name in ("library.db", "library.db-journal", "library.db-wal", "library.db-shm"):
        shelf.set_aside(shelf.folder / name)
    history = shelf.marks.read()
    with shelf.database.writes() as connection:
        shelf.database.migrate(connection)
        rows = _rows_of_files(shelf, connection, history.marks)
        if rows:
            connection.execute(tables.PICTURES.insert(), rows)
    return Notice("library_rebuilt", value=len(rows))


def repair(shelf: Shelf, report: Report) -> None:
    """Put right what a deep look found, a damaged database too; the caller holds the lock.

    Raises:
        LibraryError: The folder or the database refuses.
    """
    if report.database:
        rebuild(shelf)
        report = checkup.inspect(shelf, deep=True)
    mending.mend(shelf, report)


def _version(shelf: Shelf) -> str | None:
    """Return the schema's version, None where there is no database, "damaged" for a wreck."""
    try:
        return shelf.database.version()
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return "damaged"


def _make_or_migrate(shelf: Shelf) -> list[Notice]:
    version = _version(shelf)
    if version == "damaged" or (version is None and not shelf.objects.is_empty()):
        return [rebuild(shelf)]
    if version is None:
        # A journal without its database would be played into the new one.
        shelf.set_aside(shelf.folder / "library.db-journal")
    if version != HEAD:
        with shelf.database.writes() as connection:
            shelf.database.migrate(connection)
    return []


def _mend_after_crash(shelf: Shelf) -> list[Notice]:
    """Look after what a killed process left; costs nothing when none was."""
    try:
        with shelf.objects.abandoned_sessions() as sessions:
            if not sessions:
                return []
            with shelf.held():
                report = checkup.inspect(shelf, deep=False)
                repair(shelf, report)
    except LibraryError as error:
        # A library that cannot be written to can still be looked at.
        if error.code != "folder_read_only":
            raise
        return []
    if report.is_clean:
        return []
    if report.missing:
        return [Notice("library_lost", value=len(report.missing))]
    return [Notice("library_mended", value=report.num_findings)]


def _rows_of_files(
    shelf: Shelf, connection: sa.Connection, marks: dict[str, Marks]
) -> list[dict[str, Any]]:
    """Read every PNG file; write recipes and passports; return the rows, oldest first."""
    rows: dict[str, dict[str, Any]] = {}
    for file_sha256 in shelf.objects.names():
        data = shelf.objects.read(file_sha256)
        try:
            entry = shelf.entry_of(file_sha256, data or b"")
        except PictureError:
            _log.warning("%s is damaged: see `seedgrid library check`", file_sha256)
            continue
        said = marks.get(entry.id, Marks())
        if said.deleted or entry.id in rows:
            continue
        tables.insert_values(connection, entry)
        marked = replace(entry, favourite=said.favourite, note=said.note, trashed=said.trashed)
        rows[entry.id] = tables.row_of(marked)
    return sorted(rows.values(), key=lambda row: (row["created_at"], row["cell"]))
