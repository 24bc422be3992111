"""Find what is wrong with a library: a look that changes nothing and gives a `Report`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from seedgrid.core.errors import LibraryError, PictureError
from seedgrid.core.picture import Entry
from seedgrid.formats import png
from seedgrid.library.marks import History, Marks
from seedgrid.library.storage import LibraryStorage
from seedgrid.library.tables import ENTRIES, PICTURES, DamagedRowError, read_tags


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a look at the library found.

    Attributes:
        num_pictures: Rows that were looked at.
        orphaned: Files without a row, by SHA-256.
        strays: Files in the objects folder that are not named by their content.
        damaged: Files that are not what their name says, or hold no record, by SHA-256.
        missing: Pictures whose file is not there and of which that was not known.
        returned: Pictures that were marked as lost and whose file is there again.
        rows: Numbers of rows that are not what was written, or contradict their file.
        marks: Pictures whose row and marks differ.
        num_damaged_marks: Lines of the marks file that cannot be read.
        search: Whether the index of words does not fit the rows.
        database: What SQLite says of a damaged database, or nothing.
    """

    num_pictures: int = 0
    orphaned: tuple[str, ...] = ()
    strays: tuple[Path, ...] = ()
    damaged: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    num_damaged_marks: int = 0
    search: bool = False
    database: str = ""

    @property
    def num_findings(self) -> int:
        """How many things are wrong."""
        lists = (
            self.orphaned,
            self.strays,
            self.damaged,
            self.missing,
            self.returned,
            self.rows,
            self.marks,
        )
        flags = int(self.search) + int(bool(self.database))
        return sum(len(found) for found in lists) + self.num_damaged_marks + flags

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return self.num_findings == 0


def inspect(storage: LibraryStorage, *, deep: bool) -> Report:
    """Look, and change nothing.

    Args:
        storage: The library's parts.
        deep: Read every file and every row; otherwise only what a killed process can leave.
    """
    # Files first: a picture that is added meanwhile has its file before its row.
    names = frozenset(storage.objects.names())
    strays = tuple(storage.objects.strays())
    history = storage.marks.read()
    try:
        with storage.database.reads() as connection:
            found = _Look(storage, connection, names, history)
            report = found.report(deep=deep)
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return Report(database=str(error), strays=strays)
    return replace(report, strays=strays, num_damaged_marks=history.num_damaged)


class _Look:
    """One look at rows and files, in one reading transaction."""

    def __init__(
        self,
        storage: LibraryStorage,
        connection: sa.Connection,
        names: frozenset[str],
        history: History,
    ) -> None:
        self._storage = storage
        self._connection = connection
        self._names = names
        self._history = history

    def report(self, *, deep: bool) -> Report:
        columns = PICTURES.c
        statement = sa.select(columns.picture_id, columns.file_sha256, columns.lost)
        rows = self._connection.execute(statement).all()
        known = {row.file_sha256 for row in rows}
        there = {name for name in known if self._is_there(name)}
        damaged = self._damaged_files() if deep else frozenset()
        gone = [row for row in rows if row.file_sha256 not in there]
        return Report(
            num_pictures=len(rows),
            orphaned=tuple(sorted(self._names - known - damaged)),
            damaged=tuple(sorted(damaged)),
            missing=tuple(row.picture_id for row in gone if not row.lost),
            returned=tuple(
                row.picture_id for row in rows if row.lost and row.file_sha256 in there - damaged
            ),
            rows=self._damaged_rows(there - damaged) if deep else (),
            marks=self._differing_marks(),
            search=deep and not self._search_fits(),
            database=self._integrity() if deep else "",
        )

    def _is_there(self, name: str) -> bool:
        # A file may have come after the names were read.
        return name in self._names or self._storage.objects.path(name).exists()

    def _damaged_files(self) -> frozenset[str]:
        return frozenset(name for name in self._names if not self._is_whole(name))

    def _is_whole(self, name: str) -> bool:
        data = self._storage.objects.read(name)
        try:
            return data is not None and bool(png.read_checked(data))
        except PictureError:
            return False

    def _damaged_rows(self, readable: Iterable[str]) -> tuple[int, ...]:
        readable = frozenset(readable)
        statement = ENTRIES.execution_options(yield_per=500)
        numbers = []
        for row in self._connection.execute(statement).mappings():
            try:
                entry = self._storage.read(row)
            except DamagedRowError:
                numbers.append(row["number"])
                continue
            if entry.file_sha256 in readable and not _fits_file(self._storage, entry):
                numbers.append(row["number"])
        return tuple(numbers)

    def _differing_marks(self) -> tuple[str, ...]:
        columns = PICTURES.c
        marks = (columns.favourite, columns.note, columns.trashed, columns.lost)
        rows = self._connection.execute(sa.select(columns.picture_id, columns.tags, *marks))
        said = self._history.marks
        nothing = Marks()
        return tuple(
            picture_id
            for picture_id, tags, favourite, note, trashed, lost in rows
            if replace(marks_of(favourite, note, trashed, lost), tags=read_tags(tags))
            != replace(said.get(picture_id, nothing), seal="")
        )

    def _search_fits(self) -> bool:
        statement = "SELECT count(*) FROM pictures"
        indexed = "SELECT count(*) FROM words_docsize"
        count = self._connection.exec_driver_sql
        return count(statement).scalar() == count(indexed).scalar()

    def _integrity(self) -> str:
        # SQLite 3.44 and later look at the index of words as well, but as this connection knew it
        # last: after another one's change that is called damage. Reading has it look anew.
        self._connection.exec_driver_sql("SELECT rowid FROM words LIMIT 1").all()
        lines = self._connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
        return "" if lines == ["ok"] else "; ".join(str(line) for line in lines)


def marks_of(favourite: object, note: str, trashed: object, lost: object) -> Marks:
    """Gather what a row says of its picture."""
    return Marks(favourite=bool(favourite), note=note, trashed=bool(trashed), lost=bool(lost))


def _fits_file(storage: LibraryStorage, entry: Entry) -> bool:
    data = storage.objects.read(entry.file_sha256)
    if data is None:
        return True
    written = storage.entry_of(entry.file_sha256, data)
    return (written.recipe, written.lineage) == (entry.recipe, entry.lineage)
