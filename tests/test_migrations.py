"""Older libraries open; a migration that is killed or started twice leaves nothing half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory
from pictures import make_picture

from seedgrid import library as library_package
from seedgrid.core.errors import LibraryError
from seedgrid.core.picture import Entry
from seedgrid.formats.png import encode
from seedgrid.library import Library, tables
from seedgrid.library.database import HEAD, Database
from seedgrid.library.storage import LibraryStorage

OLDER = ("m001", "m002", "m003")
NEWER = ("tags", "likeness")
"""Columns that these have not."""


def make_old_library(folder: Path, version: str) -> Entry:
    """Make a library as the SeedGrid of that version left it, with one favourite in it."""
    folder.mkdir()
    storage = LibraryStorage.at(folder, timeout_s=5)
    data = encode(make_picture(prompt="a very old fox"))
    entry = replace(storage.entry_of(storage.objects.put(data), data), favourite=True)
    with storage.database.writes() as connection:
        storage.database.migrate(connection, version=version)
        tables.insert_values(connection, entry)
        row = {name: v for name, v in tables.row_of(entry).items() if name not in NEWER}
        connection.execute(sa.insert(sa.table("pictures", *map(sa.column, row))), row)
    storage.marks.append([(entry.id, {"favourite": True})])
    storage.objects.close_session()
    storage.database.close()
    return entry


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
    )


def exit_code(code: str, folder: Path) -> int:
    process = start(code, folder)
    process.communicate()
    return process.returncode


def test_every_older_version_is_tested() -> None:
    """The list of older schemas is the whole chain but its end, and its end is HEAD."""
    config = Config()
    migrations = Path(library_package.__file__).parent / "migrations"
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    chain = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]

    assert (*OLDER, HEAD) == tuple(reversed(chain))


@pytest.mark.parametrize("version", OLDER)
def test_an_older_library_opens_with_everything_in_it(tmp_path: Path, version: str) -> None:
    """Pictures and marks are there after the migration, and can be searched."""
    entry = make_old_library(tmp_path / "library", version)

    with Library(tmp_path / "library") as library:
        assert library.search("old fox").entries == (entry,)
        assert library.notices == ()
        assert library.check().is_clean


KILLED_MIGRATION = """
import os, signal, sys
from pathlib import Path
from seedgrid.library.storage import LibraryStorage
storage = LibraryStorage.at(Path(sys.argv[1]), timeout_s=5)
with storage.lock.held(), storage.database.writes() as connection:
    storage.database.migrate(connection)
    connection.exec_driver_sql("PRAGMA cache_spill = 1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("version", OLDER)
def test_a_migration_killed_in_the_middle_is_done_at_the_next_start(
    tmp_path: Path, version: str
) -> None:
    """The schema is the old one or the new one, never between, and no lock stays."""
    entry = make_old_library(tmp_path / "library", version)

    assert exit_code(KILLED_MIGRATION, tmp_path / "library") == -signal.SIGKILL

    database = Database(tmp_path / "library" / "library.db", timeout_s=5)
    assert database.version() == version
    database.close()
    with Library(tmp_path / "library") as library:
        assert library.search("old fox").entries == (entry,)


def test_a_first_start_killed_in_the_middle_leaves_a_new_library(tmp_path: Path) -> None:
    """A library that was never finished is made as if nothing had been there."""
    folder = tmp_path / "library"
    folder.mkdir()

    assert exit_code(KILLED_MIGRATION, folder) == -signal.SIGKILL

    with Library(folder) as library:
        assert library.notices == ()
        assert library.search().entries == ()


OPEN = """
import sys
from pathlib import Path
from seedgrid.library import Library
with Library(Path(sys.argv[1])) as library:
    assert len(library.search("old fox").entries) == 1
"""


@pytest.mark.parametrize("version", OLDER)
def test_two_starts_at_once_migrate_once(tmp_path: Path, version: str) -> None:
    """Whoever comes second waits and finds the work done."""
    make_old_library(tmp_path / "library", version)

    starts = [start(OPEN, tmp_path / "library") for _ in range(3)]

    assert [process.communicate()[1] for process in starts] == ["", "", ""]


def test_a_newer_library_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An older SeedGrid does not touch what a later one made."""
    folder = tmp_path / "library"
    with Library(folder) as library:
        library.add(make_picture())
        with library._storage.database.writes() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'm999'")
    before = (folder / "library.db").read_bytes()

    with pytest.raises(LibraryError) as caught:
        Library(folder)

    assert caught.value.code == "library_newer"
    assert (folder / "library.db").read_bytes() == before


def test_the_tables_in_the_code_are_those_in_the_database(tmp_path: Path) -> None:
    """Every column that the code names is in the schema, and the other way round."""
    with Library(tmp_path / "library") as library, library._storage.database.reads() as connection:
        for table in tables.METADATA.sorted_tables:
            rows = connection.exec_driver_sql(f"PRAGMA table_info({table.name})").mappings()
            assert {row["name"] for row in rows} == {column.name for column in table.columns}
