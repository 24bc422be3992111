"""The SQLite database that indexes a library's PNG files: its schema, its rows, its transactions.

A connection lives for one transaction, so nothing stays open or locked. With the rollback journal,
`synchronous=EXTRA` and BEGIN IMMEDIATE before writing, the crash tests lose nothing. SQLite's
errors become `LibraryError` here.
"""

import contextlib
import hashlib
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from seedgrid.core.errors import LibraryError
from seedgrid.core.picture import Entry, Lineage
from seedgrid.core.recipe import Passport, Recipe, canonical_json
from seedgrid.library.picture_files import PictureFiles
from seedgrid.storage.files import make_folder, refusals, sync_folder

VERSION: Final = 1  # of the schema, in the database's `user_version`

_BACKUP_EVERY_S: Final = 24 * 3600.0

_SCHEMA: Final = (
    "CREATE TABLE recipes (recipe_id TEXT NOT NULL PRIMARY KEY, "
    "json TEXT NOT NULL CHECK (json_valid(json))) STRICT",
    "CREATE TABLE passports (passport_id TEXT NOT NULL PRIMARY KEY, "
    "json TEXT NOT NULL CHECK (json_valid(json))) STRICT",
    """
    CREATE TABLE pictures (
        number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        picture_id TEXT NOT NULL UNIQUE,
        parent_id TEXT,
        work_id TEXT NOT NULL,
        round_id TEXT NOT NULL,
        cell INTEGER NOT NULL,
        change TEXT NOT NULL,
        created_at TEXT NOT NULL,
        recipe_id TEXT NOT NULL,
        passport_id TEXT NOT NULL,
        prompt TEXT NOT NULL,
        model TEXT NOT NULL,
        seed INTEGER NOT NULL,
        pixels_sha256 TEXT NOT NULL,
        file_sha256 TEXT NOT NULL UNIQUE,
        favourite INTEGER NOT NULL CHECK (favourite IN (0, 1)),
        note TEXT NOT NULL,
        trashed INTEGER NOT NULL CHECK (trashed IN (0, 1)),
        tags TEXT NOT NULL CHECK (json_valid(tags)),
        origin TEXT NOT NULL,
        likeness TEXT NOT NULL AS (substr(recipe_id, 1, 16) || substr(pixels_sha256, 1, 8)) STORED
    ) STRICT
    """,
    "CREATE INDEX pictures_recipe ON pictures (recipe_id, passport_id)",
    "CREATE INDEX pictures_work ON pictures (work_id, trashed, likeness, number, favourite)",
    "CREATE INDEX pictures_round ON pictures (round_id)",
    "CREATE INDEX pictures_pixels ON pictures (pixels_sha256)",
    "CREATE INDEX pictures_model ON pictures (model, number)",
    "CREATE INDEX pictures_seed ON pictures (seed, number)",
    "CREATE INDEX pictures_created ON pictures (created_at)",
    "CREATE INDEX pictures_favourite ON pictures (number) WHERE favourite = 1",
    "CREATE INDEX pictures_trashed ON pictures (number) WHERE trashed = 1",
    "CREATE INDEX pictures_tags ON pictures (tags, number) WHERE tags != '[]'",
    # Trigrams find parts of words, in any script.
    """
    CREATE VIRTUAL TABLE words
    USING fts5 (prompt, content = 'pictures', content_rowid = 'number', tokenize = 'trigram')
    """,
    """
    CREATE TRIGGER words_insert AFTER INSERT ON pictures BEGIN
        INSERT INTO words (rowid, prompt) VALUES (new.number, new.prompt);
    END
    """,
    """
    CREATE TRIGGER words_delete AFTER DELETE ON pictures BEGIN
        INSERT INTO words (words, rowid, prompt) VALUES ('delete', old.number, old.prompt);
    END
    """,
    f"PRAGMA user_version = {VERSION}",
)
MARKS: Final = ("favourite", "note", "trashed", "tags")  # Columns of the artist's marks
ENTRIES: Final = """
    SELECT pictures.*, recipes.json AS recipe_json, passports.json AS passport_json
    FROM pictures LEFT JOIN recipes USING (recipe_id) LEFT JOIN passports USING (passport_id)
"""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NOT_OURS: Final = ("no such table", "no such column")  # SQLite's messages on other tables
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_READ_ONLY: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})

_log = logging.getLogger(__name__)


class Database:
    """One SQLite file, shared by threads and processes, created by the first write.

    Before that write, it reads as empty; but if the library has picture files, a missing or empty
    database raises `library_damaged`. A transaction waits `timeout_s` for others.
    """

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        self.backup = path.with_name("library.backup.db")
        self._timeout_s = timeout_s

    @contextlib.contextmanager
    def reads(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction, with a consistent view of the library."""
        with self._refusals(), contextlib.closing(self._begin("BEGIN")) as connection:
            yield connection
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def writes(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction; its end commits it to the disk, any exception rolls it back."""
        with self._refusals(), contextlib.closing(self._begin("BEGIN IMMEDIATE")) as connection:
            yield connection
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def made_anew(self) -> Iterator[sqlite3.Connection]:
        """Create a database and fill it in one transaction; no file may be at its path."""
        with self._refusals(), contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _create(connection)
            yield connection
            connection.execute("COMMIT")

    def back_up(self) -> None:
        """Copy the database to `backup`, at most once a day; a failure is only logged."""
        with contextlib.suppress(OSError):
            # The clock may have been set back since.
            if abs(time.time() - self.backup.stat().st_mtime) < _BACKUP_EVERY_S:
                return
        try:
            if self._exists():
                self._back_up()
        except LibraryError as error:
            _log.warning("the library's database was not backed up: %s", error)

    def _back_up(self) -> None:
        folder = self.path.parent / "tmp"
        make_folder(folder)
        part = folder / f"{secrets.token_hex(8)}.db"
        with self._refusals(), refusals(part):
            try:
                with (
                    contextlib.closing(self._connect()) as source,
                    contextlib.closing(sqlite3.connect(part)) as target,
                ):
                    if problem := problems(source):
                        raise LibraryError("library_damaged", value=f"{self.path} ({problem})")
                    source.backup(target)
                part.replace(self.backup)
                sync_folder(self.backup.parent)
            finally:
                part.unlink(missing_ok=True)

    def _begin(self, begin: str) -> sqlite3.Connection:
        """Return a connection in a transaction; create the database if `begin` is for writing."""
        only_reads = begin == "BEGIN"
        if not self._exists():
            self._check_no_pictures()
            if only_reads:
                return _empty()
            make_folder(self.path.parent)
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(contextlib.closing(self._connect()))
            connection.execute(begin)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise LibraryError("library_newer", value=str(self.path))
            if version == 0:
                self._check_no_pictures()
                if only_reads:
                    return _empty()
                _create(connection)
                connection.execute("COMMIT")
                connection.execute(begin)
            stack.pop_all()
        return connection

    def _exists(self) -> bool:
        with refusals(self.path):
            try:
                self.path.stat()
            except FileNotFoundError:
                return False
        return True

    def _check_no_pictures(self) -> None:
        """Refuse a missing or empty database if there are picture files."""
        if next((self.path.parent / "objects").glob("??/*.png"), None) is not None:
            raise LibraryError("library_damaged", value=str(self.path))

    def _connect(self) -> sqlite3.Connection:
        # Python's own transactions would begin deferred: with two writers SQLite then answers
        # "busy" at once, whatever the timeout. `isolation_level=None` turns them off.
        connection = sqlite3.connect(self.path, timeout=self._timeout_s, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error


def insert(connection: sqlite3.Connection, entry: Entry) -> None:
    """Insert an entry with its recipe and passport."""
    row = row_of(entry) | marks_row(entry)
    recipe, passport = canonical_json(entry.recipe), canonical_json(entry.passport)
    connection.execute("INSERT OR IGNORE INTO recipes VALUES (?, ?)", (row["recipe_id"], recipe))
    connection.execute(
        "INSERT OR IGNORE INTO passports VALUES (?, ?)", (row["passport_id"], passport)
    )
    columns, places = ", ".join(row), ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO pictures ({columns}) VALUES ({places})", row)


def row_of(entry: Entry) -> dict[str, Any]:
    """Return the columns that are derived from a picture's file."""
    recipe = entry.recipe
    lineage = {name: getattr(entry.lineage, name) for name in Lineage.model_fields}
    return lineage | {
        "recipe_id": recipe.id,
        "passport_id": entry.passport.digest,
        # For the search: the typed prompt and its translation
        "prompt": "\n".join(filter(None, (recipe.typed_prompt, recipe.prompt))),
        "model": recipe.model.id,
        "seed": recipe.seed,
        "pixels_sha256": entry.pixels_sha256,
        "file_sha256": entry.file_sha256,
    }


def marks_row(entry: Entry) -> dict[str, Any]:
    """Return the columns that no file holds: the artist's marks, and the origin."""
    marks = {name: getattr(entry, name) for name in (*MARKS, "origin")}
    return marks | {"tags": json.dumps(entry.tags, ensure_ascii=False)}


def read_entry(row: sqlite3.Row, files: PictureFiles) -> Entry:
    """Turn a row with `recipe_json` and `passport_json` into an entry; raise `library_damaged`."""
    recipe, passport = str(row["recipe_json"]), str(row["passport_json"])
    if (_sha256(recipe), _sha256(passport)) != (row["recipe_id"], row["passport_id"]):
        raise LibraryError("library_damaged", value=row["picture_id"])
    path = files.path(row["file_sha256"])
    try:
        return Entry(
            path=path,
            recipe=Recipe.model_validate_json(recipe),
            passport=Passport.model_validate_json(passport),
            lineage=Lineage(**{name: row[name] for name in Lineage.model_fields}),
            pixels_sha256=row["pixels_sha256"],
            file_sha256=row["file_sha256"],
            favourite=bool(row["favourite"]),
            note=row["note"],
            trashed=bool(row["trashed"]),
            tags=tuple(json.loads(row["tags"])),
            lost=not path.is_file(),
            origin=row["origin"],
        )
    except (ValidationError, ValueError) as error:
        raise LibraryError("library_damaged", value=row["picture_id"]) from error


def problems(connection: sqlite3.Connection) -> str:
    """Return what SQLite's integrity check reports; empty if the database is intact."""
    lines = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    return "" if lines == ["ok"] else "; ".join(map(str, lines))


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


def _empty() -> sqlite3.Connection:
    """Return an empty database in memory, inside a transaction."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("BEGIN")
    _create(connection)
    return connection


def _translated(error: sqlite3.Error, path: Path) -> LibraryError:
    # The low byte of an extended result code is the plain one.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return LibraryError("disk_full", value=str(path.parent))
    if code in _LOCKED:
        return LibraryError("library_locked", value=str(path))
    if code in _READ_ONLY:
        return LibraryError("folder_read_only", value=str(path.parent))
    if code in _DAMAGED or str(error).startswith(_NOT_OURS):
        return LibraryError("library_damaged", value=str(path))
    return LibraryError("folder_refuses", value=str(path), reason=str(error))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
