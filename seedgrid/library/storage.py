"""LibraryStorage: the parts of a library in one hand; how one picture is kept or changed.

The order is what keeps everything: the PNG file first, then its row, then the answer. Marks go to
their file inside the transaction that changes the row, so the two cannot differ for long.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Entry, Picture
from seedgrid.formats import png
from seedgrid.library import tables
from seedgrid.library.database import Database
from seedgrid.library.folder_lock import FolderLock
from seedgrid.library.in_threads import in_threads
from seedgrid.library.marks import Marks, MarksFile, MarkValue
from seedgrid.library.objects import Objects
from seedgrid.library.secret import Secret
from seedgrid.library.tables import ENTRIES, PICTURES, DamagedRowError
from seedgrid.storage.files import make_folder, refusals, sync_folder

File = tuple[bytes, Entry]
"""A PNG file, and what stands in it."""


@dataclass(frozen=True, kw_only=True)
class LibraryStorage:
    """What a library keeps its pictures in: files, rows and marks."""

    folder: Path
    objects: Objects
    marks: MarksFile
    database: Database
    lock: FolderLock

    @classmethod
    def at(cls, folder: Path, *, timeout_s: float) -> LibraryStorage:
        """Name the parts of the library in a folder; nothing is opened yet."""
        return cls(
            folder=folder,
            objects=Objects(folder),
            marks=MarksFile(folder / "marks.jsonl"),
            database=Database(folder / "library.db", timeout_s=timeout_s),
            lock=FolderLock(folder, timeout_s=timeout_s),
        )

    @cached_property
    def secret(self) -> Secret:
        """What tells this library's own pictures from those of others."""
        return Secret(self.folder / "library.secret", self.lock.held)

    def forget_secret(self) -> None:
        """Read it anew: its file may be another one, or gone; then it is written again."""
        older = vars(self).pop("secret", None)
        if older is not None:
            self.secret.follow(older)

    def was_deleted(self, error: LibraryError) -> bool:
        """Tell whether an error came of a folder that somebody deleted meanwhile.

        Then the same may be written again; after a failed fsync a second one may mean nothing.
        """
        return isinstance(error.__cause__, FileNotFoundError) or self.database.is_gone

    def read(self, row: sa.RowMapping) -> Entry:
        """Turn a row of `ENTRIES` into an entry.

        Raises:
            DamagedRowError: The row is not what was written.
        """
        entry = tables.read_entry(row, self.objects.path(str(row["file_sha256"])))
        return replace(entry, checked=self.secret.fits(entry, row["seal"]))

    def entry_of(self, file_sha256: str, data: bytes, marks: Marks = Marks()) -> Entry:  # noqa: B008 - frozen
        """Read the entry that a PNG file stands for.

        Raises:
            PictureError: It is not one of ours, or damaged.
        """
        record = png.read(data)
        entry = replace(
            self._new_entry(file_sha256, record),
            favourite=marks.favourite,
            note=marks.note,
            trashed=marks.trashed,
            tags=marks.tags,
        )
        seals = (png.read_seal(data), marks.seal)
        return replace(entry, checked=any(self.secret.fits(entry, seal) for seal in seals))

    def written(self, picture: Picture) -> File:
        """Write a picture that was painted here as a sealed file; it need not be read again."""
        data = png.encode(picture, seal=self.secret.seal(picture))
        file_sha256 = hashlib.sha256(data).hexdigest()
        return data, replace(self._new_entry(file_sha256, picture), checked=True)

    def _new_entry(self, file_sha256: str, made: Picture | png.PngRecord) -> Entry:
        return Entry(
            path=self.objects.path(file_sha256),
            recipe=made.recipe,
            passport=made.passport,
            lineage=made.lineage,
            pixels_sha256=made.pixels_sha256,
            file_sha256=file_sha256,
        )

    def taken(self, data: bytes) -> File:
        """Read a PNG file of ours from elsewhere.

        Raises:
            PictureError: It is not one of ours, or damaged.
        """
        return data, self.entry_of(hashlib.sha256(data).hexdigest(), data)

    def insert(self, connection: sa.Connection, *entries: Entry, number: int | None = None) -> None:
        """Write entries as new rows, with what they share with others; see `tables.insert`."""
        tables.insert(connection, *entries, number=number)
        self.insert_seals(connection, *entries)

    def insert_seals(self, connection: sa.Connection, *entries: Entry) -> None:
        """Write the seals of those entries that this library painted or verified."""
        sealed = {self.secret.seal(entry): entry for entry in entries if entry.checked}
        tables.insert_seals(connection, sealed)

    def confirm(self, picture_id: str) -> Entry:
        """Seal a picture that came from elsewhere: it was painted again here, bit for bit.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: The folder or the database refuses; nothing has changed.
        """
        with self.database.writes() as connection:
            entry = replace(self.get(connection, picture_id), checked=True)
            self.insert_seals(connection, entry)
            self.marks.append([(entry.id, {"seal": self.secret.seal(entry)})])
        return entry

    def add(self, *files: File) -> tuple[Entry, ...]:
        """Keep PNG files of ours, all rows or none; when this returns they are safe.

        Most of the time it waits for the disk, so it waits for all files together.
        """
        contents = [data for data, _ in files]
        in_threads(self.objects.put, contents)
        with self.database.writes() as connection:
            kept = self._insert(connection, [entry for _, entry in files])
            self._heal_twins(connection, dict(zip(contents, kept, strict=True)))
        return kept

    def _heal_twins(self, connection: sa.Connection, kept: Mapping[bytes, Entry]) -> None:
        """Give lost pictures with the same recipe and pixels as these files their own back."""
        same = {(entry.recipe.id, entry.pixels_sha256): data for data, entry in kept.items()}
        statement = ENTRIES.where(
            PICTURES.c.recipe_id.in_([recipe_id for recipe_id, _ in same]), PICTURES.c.lost == 1
        )
        for row in connection.execute(statement).mappings().all():
            data = same.get((row["recipe_id"], row["pixels_sha256"]))
            if data is None:
                continue
            lost = self.read(row)
            copy = png.rewrite(data, lineage=lost.lineage)
            healed = replace(
                lost,
                file_sha256=self.objects.put(copy),
                passport=kept[data].passport,
                checked=kept[data].checked,
                lost=False,
            )
            tables.insert_values(connection, healed)
            tables.update(connection, healed)
            self.marks.append([(lost.id, {"lost": False})])

    def _insert(self, connection: sa.Connection, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Write the rows of files on the disk, where no other process has done so already."""
        statement = ENTRIES.where(PICTURES.c.picture_id.in_([entry.id for entry in entries]))
        rows = connection.execute(statement).mappings().all()
        there = {row["picture_id"]: self.read(row) for row in rows}
        new: dict[str, Entry] = {}
        for entry in entries:
            known = there.get(entry.id) or new.setdefault(entry.id, entry)
            if known.file_sha256 != entry.file_sha256:
                raise InputError("picture_twice", field="picture", value=entry.id)
        self.insert(connection, *new.values())
        back = [picture_id for picture_id in new if self.marks.says_deleted(picture_id)]
        self.marks.append((picture_id, asdict(Marks())) for picture_id in back)
        return tuple((there | new)[entry.id] for entry in entries)

    def change(
        self, picture_ids: Sequence[str], said: Callable[[Entry], Mapping[str, MarkValue]]
    ) -> tuple[Entry, ...]:
        """Change marks of pictures, all of them or none.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: The folder or the database refuses; nothing has changed.
        """
        changes: list[tuple[Entry, Mapping[str, MarkValue]]] = []
        try:
            with self.database.writes() as connection:
                before = [self.get(connection, picture_id) for picture_id in picture_ids]
                changes = [(entry, said(entry)) for entry in before]
                after = tuple(replace(entry, **marks) for entry, marks in changes)  # type: ignore[arg-type] # names of marks
                for entry in after:
                    tables.update(connection, entry)
                self.marks.append((entry.id, marks) for entry, marks in changes)
        except LibraryError:
            # The marks may be written and the rows not: say again what the rows say.
            undo = [
                (entry.id, {name: getattr(entry, name) for name in marks})
                for entry, marks in changes
            ]
            with contextlib.suppress(LibraryError):
                self.marks.append(undo)
            raise
        return after

    def delete_trashed(self) -> tuple[Entry, ...]:
        """Delete what is in the trash for good and return it; the caller holds the lock.

        Raises:
            LibraryError: What is not yet deleted is deleted at the next start.
        """
        trashed: list[Entry] = []
        with self.database.writes() as connection:
            statement = ENTRIES.where(PICTURES.c.trashed == 1)
            for row in connection.execute(statement).mappings().all():
                # A row that is damaged may not be in the trash at all.
                with contextlib.suppress(DamagedRowError):
                    trashed.append(self.read(row))
            self.marks.append((entry.id, {"deleted": True}) for entry in trashed)
            for entry in trashed:
                connection.execute(PICTURES.delete().where(PICTURES.c.picture_id == entry.id))
        for entry in trashed:
            self.objects.remove(entry.file_sha256)
        return tuple(trashed)

    def get(self, connection: sa.Connection, picture_id: str) -> Entry:
        """Return the entry with this id.

        Raises:
            InputError: `picture_unknown`.
            DamagedRowError: Its row is not what was written.
        """
        statement = ENTRIES.where(PICTURES.c.picture_id == picture_id)
        row = connection.execute(statement).mappings().first()
        if row is None:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return self.read(row)

    def set_aside(self, path: Path) -> None:
        """Move a damaged file out of the way into `damaged/`; nothing is thrown away."""
        if not path.exists():
            return
        aside = self.folder / "damaged"
        make_folder(aside)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        with refusals(path):
            path.rename(aside / f"{stamp}-{secrets.token_hex(2)}-{path.name}")
            sync_folder(path.parent)
