"""Find what is wrong with a library, and put it right.

Looking changes nothing and gives a `Report`; mending takes the report and acts. After it a second
look finds nothing: what cannot be brought back is marked as lost, with its recipe kept, so that
it can be painted again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from seedgrid import png
from seedgrid.errors import InputError, LibraryError, PictureError
from seedgrid.files import refusals
from seedgrid.library import tables
from seedgrid.library.entry import Entry
from seedgrid.library.marks import History, Marks
from seedgrid.library.shelf import Shelf
from seedgrid.library.tables import ENTRIES, PICTURES, DamagedRowError


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


def inspect(shelf: Shelf, *, deep: bool) -> Report:
    """Look, and change nothing.

    Args:
        shelf: The library's parts.
        deep: Read every file and every row; otherwise only what a killed process can leave.

    Raises:
        LibraryError: The database refuses for another reason than damage.
    """
    # Files first: a picture that is added meanwhile has its file before its row.
    names = frozenset(shelf.objects.names())
    strays = tuple(shelf.objects.strays())
    history = shelf.marks.read()
    try:
        with shelf.database.reads() as connection:
            found = _Look(shelf, connection, names, history)
            report = found.report(deep=deep)
    except LibraryError as error:
        if error.code != "library_damaged":
            raise
        return Report(database=str(error), strays=strays)
    return replace(report, strays=strays, num_damaged_marks=history.num_damaged)


class _Look:
    """One look at rows and files, in one reading transaction."""

    def __init__(
        self, shelf: Shelf, connection: sa.Connection, names: frozenset[str], history: History
    ) -> None:
        self._shelf = shelf
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
        return name in self._names or self._shelf.objects.path(name).exists()

    def _damaged_files(self) -> frozenset[str]:
        return frozenset(name for name in self._names if not self._is_whole(name))

    def _is_whole(self, name: str) -> bool:
        data = self._shelf.objects.read(name)
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
                entry = self._shelf.read(row)
            except DamagedRowError:
                numbers.append(row["number"])
                continue
            if entry.file_sha256 in readable and not _fits_file(self._shelf, entry):
                numbers.append(row["number"])
        return tuple(numbers)

    def _differing_marks(self) -> tuple[str, ...]:
        columns = PICTURES.c
        rows = self._connection.execute(
            sa.select(
                columns.picture_id, columns.favourite, columns.note, columns.trashed, columns.lost
            )
        )
        said = self._history.marks
        nothing = Marks()
        return tuple(
            picture_id
            for picture_id, favourite, note, trashed, lost in rows
            if _marks(favourite, note, trashed, lost) != said.get(picture_id, nothing)
        )

    def _search_fits(self) -> bool:
        statement = "SELECT count(*) FROM pictures"
        indexed = "SELECT count(*) FROM words_docsize"
        count = self._connection.exec_driver_sql
        return count(statement).scalar() == count(indexed).scalar()

    def _integrity(self) -> str:
        lines = self._connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
        return "" if lines == ["ok"] else "; ".join(str(line) for line in lines)


def mend(shelf: Shelf, report: Report) -> None:
    """Put right what a report names; the caller holds the library's lock.

    A damaged database is not mended but made again: `opening.rebuild`.

    Raises:
        LibraryError: The folder or the database refuses; mending again goes on from there.
    """
    if report.is_clean:
        return
    with shelf.database.writes() as connection:
        numbers = _drop_rows(connection, report.rows)
        for name in report.damaged:
            _set_aside(shelf, connection, name)
        for picture_id in report.missing:
            _set_lost(shelf, connection, picture_id, lost=True)
        for picture_id in report.returned:
            _set_lost(shelf, connection, picture_id, lost=False)
        _keep_strays(shelf, report.strays)
        _adopt(shelf, connection, numbers)
        _agree_on_marks(shelf, connection, report)
        if report.search:
            connection.exec_driver_sql("INSERT INTO words (words) VALUES ('rebuild')")


def _marks(favourite: object, note: str, trashed: object, lost: object) -> Marks:
    return Marks(favourite=bool(favourite), note=note, trashed=bool(trashed), lost=bool(lost))


def _fits_file(shelf: Shelf, entry: Entry) -> bool:
    data = shelf.objects.read(entry.file_sha256)
    if data is None:
        return True
    written = shelf.entry_of(entry.file_sha256, data)
    return (written.recipe, written.lineage) == (entry.recipe, entry.lineage)


def _drop_rows(connection: sa.Connection, numbers: Iterable[int]) -> dict[str, int]:
    """Delete damaged rows; return their numbers by file, for those that are made again."""
    places = {}
    for number in numbers:
        row = PICTURES.c.number == number
        file_sha256 = connection.scalar(sa.select(PICTURES.c.file_sha256).where(row))
        if file_sha256 is not None:
            places[file_sha256] = number
        connection.execute(PICTURES.delete().where(row))
    return places


def _set_aside(shelf: Shelf, connection: sa.Connection, name: str) -> None:
    shelf.set_aside(shelf.objects.path(name))
    statement = sa.select(PICTURES.c.picture_id).where(PICTURES.c.file_sha256 == name)
    for picture_id in connection.scalars(statement).all():
        _set_lost(shelf, connection, picture_id, lost=True)


def _set_lost(shelf: Shelf, connection: sa.Connection, picture_id: str, *, lost: bool) -> None:
    try:
        entry = shelf.get(connection, picture_id)
    except DamagedRowError:
        # Neither the row nor the file can be read: nothing of this picture is left.
        connection.execute(PICTURES.delete().where(PICTURES.c.picture_id == picture_id))
        return
    except InputError:
        return
    tables.update(connection, replace(entry, lost=lost))
    shelf.marks.append([(picture_id, {"lost": lost})])


def _keep_strays(shelf: Shelf, strays: Iterable[Path]) -> None:
    """Give files that lie about their proper name; what is no picture of ours goes aside."""
    for path in strays:
        try:
            data = png.read_bytes(path)
            png.read_checked(data)
        except PictureError:
            shelf.set_aside(path)
            continue
        shelf.objects.put(data)
        with refusals(path):
            path.unlink()


def _adopt(shelf: Shelf, connection: sa.Connection, numbers: Mapping[str, int]) -> None:
    """Give every file without a row its row, or its deletion when that was asked for."""
    known = set(connection.scalars(sa.select(PICTURES.c.file_sha256)))
    said = shelf.marks.read().marks
    for name in sorted(set(shelf.objects.names()) - known):
        data = shelf.objects.read(name) or b""
        try:
            entry = shelf.entry_of(name, data)
        except PictureError:
            shelf.set_aside(shelf.objects.path(name))
            continue
        marks = said.get(entry.id, Marks())
        if marks.deleted:
            shelf.objects.remove(name)
        elif _has_picture(connection, entry.id):
            _adopt_twin(shelf, connection, name, data)
        else:
            marked = shelf.entry_of(name, data, marks)
            tables.insert(connection, marked, number=numbers.get(name))


def _adopt_twin(shelf: Shelf, connection: sa.Connection, name: str, data: bytes) -> None:
    """Keep another file with the id of a picture that is there, under an id of its own."""
    # The same id each time: mending may be killed here, and goes on from where it was.
    twin_id = hashlib.sha256(name.encode()).hexdigest()[:32]
    lineage = png.read(data).lineage.model_copy(update={"picture_id": twin_id})
    copy = png.rewrite(data, lineage=lineage)
    file_sha256 = shelf.objects.put(copy)
    if not _has_picture(connection, twin_id):
        tables.insert(connection, shelf.entry_of(file_sha256, copy))
    shelf.objects.remove(name)


def _has_picture(connection: sa.Connection, picture_id: str) -> bool:
    statement = sa.select(PICTURES.c.number).where(PICTURES.c.picture_id == picture_id)
    return connection.execute(statement).first() is not None


def _agree_on_marks(shelf: Shelf, connection: sa.Connection, report: Report) -> None:
    """Let rows and marks say the same: what was said last counts, unless its line is damaged."""
    history = shelf.marks.read()
    for picture_id in report.marks:
        try:
            entry = shelf.get(connection, picture_id)
        except (InputError, DamagedRowError):
            continue
        said = history.marks.get(picture_id)
        if said is not None and said.deleted:
            connection.execute(PICTURES.delete().where(PICTURES.c.picture_id == picture_id))
            shelf.objects.remove(entry.file_sha256)
        elif said is None or history.num_damaged:
            marks = _marks(entry.favourite, entry.note, entry.trashed, entry.lost)
            history.marks[picture_id] = marks
            shelf.marks.append([(picture_id, asdict(marks))])
        else:
            shown = {name: value for name, value in asdict(said).items() if name != "deleted"}
            tables.update(connection, replace(entry, **shown))
    if history.num_damaged:
        shelf.marks.compact(history)
