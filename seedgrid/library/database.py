"""The library's SQLite database: connections that lose nothing, transactions, migration.

Rollback journal, `synchronous=EXTRA`, every writing transaction BEGIN IMMEDIATE: with these the
crash tests lost nothing, and three writers never met "database is locked" (docs/log.md). What
SQLite refuses becomes a `LibraryError` here and nowhere else. Knows nothing of pictures.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from seedgrid.core.errors import LibraryError

HEAD: Final = "m004"
"""The newest version of the schema; `migrations/versions` leads to it."""

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ANOTHERS: Final = ("no such table", "no such column")
"""What SQLite says of a database that is none of ours."""
_OURS: Final = "SELECT 1 FROM pictures, recipes, passports, seals LIMIT 0"
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_READ_ONLY: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})


Mend = Callable[[bool], None]

_File = tuple[int, int]
"""Device and number of a file: another one under the same name has others."""

_ALEMBIC: Final = threading.Lock()
"""Alembic keeps what it works on in globals: two migrations at once took each other's."""


class Database:
    """One SQLite file, shared by threads and by processes."""

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        url = sa.URL.create("sqlite", database=str(path))
        self._writer = sa.create_engine(url, connect_args={"timeout": timeout_s}, max_overflow=40)
        event.listen(self._writer, "connect", _prepare)
        event.listen(self._writer, "begin", _begin)
        self._reader = self._writer.execution_options(seedgrid_reads=True)
        self._mend: Mend | None = None
        self._guard: AbstractContextManager[bool] = threading.RLock()
        self._mender = 0
        self._file: _File | None = None
        self._is_damaged = False

    def mends_with(self, mend: Mend, guard: AbstractContextManager[bool]) -> None:
        """Look before each transaction whether the file is still the one that was opened.

        A file that was deleted or replaced lives on for those who have it open: they would read
        ghosts, and what they write would be lost.
        """
        self._mend, self._guard, self._file = mend, guard, _file_at(self.path)

    @property
    def is_gone(self) -> bool:
        """Whether the file that was opened has been deleted or replaced."""
        return self._file is not None and self._file != _file_at(self.path)

    @contextlib.contextmanager
    def made_anew(self) -> Iterator[None]:
        """Let this thread put another file in place of the database; the caller holds the guard."""
        outer, self._mender = self._mender, threading.get_ident()
        try:
            self._writer.dispose()
            yield
            self._file, self._is_damaged = _file_at(self.path), False
        finally:
            self._mender = outer

    @contextlib.contextmanager
    def reads(self) -> Iterator[sa.Connection]:
        """Open a transaction that only reads: it sees one state of the whole library."""
        with self._transaction(self._reader) as connection:
            yield connection

    @contextlib.contextmanager
    def writes(self) -> Iterator[sa.Connection]:
        """Open a transaction that may write from its start, and is safe on disk at its end."""
        with self._transaction(self._writer) as connection:
            yield connection

    def version(self) -> str | None:
        """Return the version of the schema, or None for a database without any table."""
        if not self.path.exists() or self.path.stat().st_size == 0:
            return None
        with self.reads() as connection:
            names = set(connection.scalars(sa.text("SELECT name FROM sqlite_master")))
            if not names:
                return None
            if "alembic_version" not in names:
                raise LibraryError("library_damaged", value=str(self.path))
            found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
        return str(found)

    def migrate(self, connection: sa.Connection, *, version: str = HEAD) -> None:
        """Bring the schema to a version, inside the caller's writing transaction."""
        from alembic import command, util
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        try:
            with _ALEMBIC:
                command.upgrade(config, version)
        except util.CommandError as error:
            raise LibraryError("library_newer", value=str(self.path)) from error

    def rest(self) -> None:
        """Close every connection that is not in use; the next look opens one."""
        self._writer.dispose()

    def close(self) -> None:
        """Close every connection that is not in use, and forget compiled statements: 0.4 MB."""
        self.rest()
        self._writer.clear_compiled_cache()

    @contextlib.contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        self._make_sure()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._refusals())
            try:
                connection = self._begun(engine, stack)
            except sa.exc.DatabaseError as error:
                self._note(error)
                if not (self._is_damaged and self._may_mend()):
                    raise
                self._make_sure()
                connection = stack.enter_context(engine.begin())
            yield connection

    def _begun(self, engine: sa.Engine, stack: contextlib.ExitStack) -> sa.Connection:
        """Begin, and make sure that it is our database: another may have been copied over it."""
        with contextlib.ExitStack() as begun:
            connection = begun.enter_context(engine.begin())
            if self._may_mend():
                connection.exec_driver_sql(_OURS)
            stack.push(begun.pop_all())
        return connection

    def _may_mend(self) -> bool:
        return self._mend is not None and self._mender != threading.get_ident()

    def _note(self, error: sa.exc.DBAPIError) -> LibraryError:
        """Translate an error; after damage the next transaction begins with mending."""
        translated = _translated(error, self.path)
        if translated.code == "library_damaged":
            self._is_damaged = True
        return translated

    def _is_well(self) -> bool:
        is_known = self._file is not None and self._file == _file_at(self.path)
        return is_known and not self._is_damaged

    def _make_sure(self) -> None:
        """Have the database made again when its file is gone, replaced or damaged."""
        if self._mend is None or self._is_well() or not self._may_mend():
            return
        with self._guard:
            if not self._is_well():
                with self.made_anew():
                    self._mend(self._is_damaged)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._note(error) from error
        except sa.exc.TimeoutError as error:
            raise LibraryError("library_locked", value=str(self.path)) from error


def _file_at(path: Path) -> _File | None:
    # By its name only: to open and close a file here would end SQLite's own locks on it.
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # Python's own transactions would begin deferred: with two writers SQLite then answers "busy"
    # at once, whatever the timeout. None leaves the transactions to `_begin`.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    only_reads = connection.get_execution_options().get("seedgrid_reads", False)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")
    if only_reads:
        # A deferred BEGIN does not look at the file; what is no database should show here.
        connection.exec_driver_sql("PRAGMA schema_version")


def _translated(error: sa.exc.DBAPIError, path: Path) -> LibraryError:
    cause = error.orig
    # The low byte of an extended result code is the plain one.
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return LibraryError("disk_full", value=str(path.parent))
    if code in _LOCKED:
        return LibraryError("library_locked", value=str(path))
    if code in _READ_ONLY:
        return LibraryError("folder_read_only", value=str(path.parent))
    if code in _DAMAGED or str(cause).startswith(_ANOTHERS):
        return LibraryError("library_damaged", value=str(path))
    return LibraryError("folder_refuses", value=str(path), reason=str(cause))
