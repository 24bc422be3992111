"""Put right what a look at a library found (checkup.py).

After it a second look finds nothing: what cannot be brought back is marked as lost, with its
recipe kept, so that it can be painted again. Killed in the middle, mending again goes on.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from seedgrid.core.errors import InputError, PictureError
from seedgrid.formats import png
from seedgrid.library import tables
from seedgrid.library.checkup import Report, marks_of
from seedgrid.library.marks import Marks
from seedgrid.library.storage import LibraryStorage
from seedgrid.library.tables import PICTURES, DamagedRowError
from seedgrid.storage.files import refusals

_SHOWN: Final = ("favourite", "note", "trashed", "lost", "tags")


def mend(storage: LibraryStorage, report: Report) -> None:
    """Put right what a report names; the caller holds the library's lock.

    A damaged database is not mended but made again: `opening.rebuild`.
    """
    if report.is_clean:
        return
    with storage.database.writes() as connection:
        numbers = _drop_rows(connection, report.rows)
        for name in report.damaged:
            _set_aside(storage, connection, name)
        for picture_id in report.missing:
            _set_lost(storage, connection, picture_id, lost=True)
        for picture_id in report.returned:
            _set_lost(storage, connection, picture_id, lost=False)
        _keep_strays(storage, report.strays)
        _adopt(storage, connection, numbers)
        _agree_on_marks(storage, connection, report)
        if report.search:
            connection.exec_driver_sql("INSERT INTO words (words) VALUES ('rebuild')")


def _drop_rows(connection: sa.Connection, numbers: Iterable[int]) -> dict[str, int]:
    """Delete damaged rows; return their numbers by file and by id, for those made again."""
    places: dict[str, int] = {}
    for number in numbers:
        row = PICTURES.c.number == number
        names = sa.select(PICTURES.c.file_sha256, PICTURES.c.picture_id).where(row)
        for file_sha256, picture_id in connection.execute(names):
            places |= {file_sha256: number, picture_id: number}
        connection.execute(PICTURES.delete().where(row))
    return places


def _set_aside(storage: LibraryStorage, connection: sa.Connection, name: str) -> None:
    storage.set_aside(storage.objects.path(name))
    statement = sa.select(PICTURES.c.picture_id).where(PICTURES.c.file_sha256 == name)
    for picture_id in connection.scalars(statement).all():
        _set_lost(storage, connection, picture_id, lost=True)


def _set_lost(
    storage: LibraryStorage, connection: sa.Connection, picture_id: str, *, lost: bool
) -> None:
    try:
        entry = storage.get(connection, picture_id)
    except DamagedRowError:
        # Neither the row nor the file can be read: nothing of this picture is left.
        connection.execute(PICTURES.delete().where(PICTURES.c.picture_id == picture_id))
        return
    except InputError:
        return
    tables.update(connection, replace(entry, lost=lost))
    storage.marks.append([(picture_id, {"lost": lost})])


def _keep_strays(storage: LibraryStorage, strays: Iterable[Path]) -> None:
    """Give files that lie about their proper name; what is no picture of ours goes aside."""
    for path in strays:
        try:
            data = png.read_bytes(path)
            png.read_checked(data)
        except PictureError:
            storage.set_aside(path)
            continue
        storage.objects.put(data)
        with refusals(path):
            path.unlink()


def _adopt(storage: LibraryStorage, connection: sa.Connection, numbers: Mapping[str, int]) -> None:
    """Give every file without a row its row, or its deletion when that was asked for."""
    known = set(connection.scalars(sa.select(PICTURES.c.file_sha256)))
    said = storage.marks.read().marks
    for name in sorted(set(storage.objects.names()) - known):
        data = storage.objects.read(name) or b""
        try:
            entry = storage.entry_of(name, data)
        except PictureError:
            storage.set_aside(storage.objects.path(name))
            continue
        marks = said.get(entry.id, Marks())
        if marks.deleted:
            storage.objects.remove(name)
        elif _has_picture(connection, entry.id):
            _adopt_twin(storage, connection, name, data)
        else:
            marked = storage.entry_of(name, data, marks)
            number = numbers.get(name, numbers.get(entry.id))
            storage.insert(connection, marked, number=number)


def _adopt_twin(storage: LibraryStorage, connection: sa.Connection, name: str, data: bytes) -> None:
    """Keep another file with the id of a picture that is there, under an id of its own."""
    # The same id each time: mending may be killed here, and goes on from where it was.
    twin_id = hashlib.sha256(name.encode()).hexdigest()[:32]
    lineage = png.read(data).lineage.model_copy(update={"picture_id": twin_id})
    copy = png.rewrite(data, lineage=lineage)
    file_sha256 = storage.objects.put(copy)
    if not _has_picture(connection, twin_id):
        storage.insert(connection, storage.entry_of(file_sha256, copy))
    storage.objects.remove(name)


def _has_picture(connection: sa.Connection, picture_id: str) -> bool:
    statement = sa.select(PICTURES.c.number).where(PICTURES.c.picture_id == picture_id)
    return connection.execute(statement).first() is not None


def _agree_on_marks(storage: LibraryStorage, connection: sa.Connection, report: Report) -> None:
    """Let rows and marks say the same: what was said last counts, unless its line is damaged."""
    history = storage.marks.read()
    for picture_id in report.marks:
        try:
            entry = storage.get(connection, picture_id)
        except (InputError, DamagedRowError):
            continue
        said = history.marks.get(picture_id)
        if said is not None and said.deleted:
            connection.execute(PICTURES.delete().where(PICTURES.c.picture_id == picture_id))
            storage.objects.remove(entry.file_sha256)
        elif said is None or history.num_damaged:
            marks = marks_of(entry.favourite, entry.note, entry.trashed, entry.lost)
            marks = replace(marks, tags=entry.tags, seal=said.seal if said else "")
            history.marks[picture_id] = marks
            storage.marks.append([(picture_id, asdict(marks))])
        else:
            shown = {name: getattr(said, name) for name in _SHOWN}
            tables.update(connection, replace(entry, **shown))
    if history.num_damaged:
        storage.marks.compact(history)
