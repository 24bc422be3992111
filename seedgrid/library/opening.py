"""What happens when a library is opened: it is made, migrated, or brought back after a crash.

A database that is missing, empty or unreadable beside pictures is never taken for a new library:
what is there is moved aside and the rows are made again from the PNG files.
"""

import logging
from typing import Any

import sqlalchemy as sa

from seedgrid.core.errors import LibraryError, Notice, PictureError
from seedgrid.library import checkup, mending, tables
from seedgrid.library.checkup import Report
from seedgrid.library.database import HEAD
from seedgrid.library.marks import Marks
from seedgrid.library.storage import LibraryStorage
from seedgrid.storage.files import make_folder

_log = logging.getLogger(__name__)


def open_storage(storage: LibraryStorage) -> tuple[Notice, ...]:
    """Make sure that the library can be used."""
    make_folder(storage.folder)
    notices: list[Notice] = []
    if _version(storage) != HEAD:
        with storage.lock.held():
            notices += _make_or_migrate(storage)
    notices += _mend_after_crash(storage)
    for notice in notices:
        _log.warning("%s", notice)
    return tuple(notices)


def open_again(storage: LibraryStorage, *, is_damaged: bool) -> tuple[Notice, ...]:
    """Make a library usable whose files were deleted, replaced or overwritten while it was open."""
    make_folder(storage.folder)
    storage.forget_secret()
    if is_damaged:
        with storage.lock.held():
            notice = rebuild(storage)
        _log.warning("%s", notice)
        return (notice,)
    return open_storage(storage)


def rebuild(storage: LibraryStorage) -> Notice:
    """Move the database aside and make it again from the PNG files and the marks.

    The caller holds the library's lock.
    """
    with storage.database.made_anew():
        return _rebuilt(storage)


def _rebuilt(storage: LibraryStorage) -> Notice:
    for name in ("library.db", "library.db-journal", "library.db-wal", "library.db-shm"):
        storage.set_aside(storage.folder / name)
    history = storage.marks.read()
    with storage.database.writes() as connection:
        storage.database.migrate(connection)
        rows = _rows_of_files(storage, connection, history.marks)
        if rows:
            connection.execute(tables.PICTURES.insert(), rows)
    return Notice("library_rebuilt", value=len(rows))


def repair(storage: LibraryStorage, report: Report) -> None:
    """Put right what a deep look found, a damaged database too; the caller holds the lock."""
    if report.database:
        rebuild(storage)
        report = checkup.inspect(storage, deep=True)
    mending.mend(storage, report)


def _version(storage: LibraryStorage) -> str | None:
    """Return the schema's version, None where there is no database, "damaged" for a wreck."""
    try:
        return storage.database.version()
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return "damaged"


def _make_or_migrate(storage: LibraryStorage) -> list[Notice]:
    version = _version(storage)
    if version == "damaged" or (version is None and not storage.objects.is_empty()):
        return [rebuild(storage)]
    if version is None:
        # A journal without its database would be played into the new one.
        storage.set_aside(storage.folder / "library.db-journal")
    if version != HEAD:
        with storage.database.writes() as connection:
            storage.database.migrate(connection)
    return []


def _mend_after_crash(storage: LibraryStorage) -> list[Notice]:
    """Look after what a killed process left; costs nothing when none was."""
    try:
        with storage.objects.abandoned_sessions() as sessions:
            if not sessions:
                return []
            with storage.lock.held():
                report = checkup.inspect(storage, deep=False)
                repair(storage, report)
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
    storage: LibraryStorage, connection: sa.Connection, marks: dict[str, Marks]
) -> list[dict[str, Any]]:
    """Read every PNG file; write recipes and passports; return the rows, oldest first."""
    rows: dict[str, dict[str, Any]] = {}
    for file_sha256 in storage.objects.names():
        data = storage.objects.read(file_sha256) or b""
        try:
            entry = storage.entry_of(file_sha256, data)
            if said := marks.get(entry.id):
                entry = storage.entry_of(file_sha256, data, said)
        except PictureError:
            _log.warning("%s is damaged: see `python -m seedgrid library check`", file_sha256)
            continue
        if entry.id in rows or (said is not None and said.deleted):
            continue
        tables.insert_values(connection, entry)
        storage.insert_seals(connection, entry)
        rows[entry.id] = tables.row_of(entry)
    return sorted(rows.values(), key=lambda row: (row["created_at"], row["cell"]))
