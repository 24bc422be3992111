"""Library: a folder in which everything made is kept and can be found again.

    with Library(Path("art")) as library:
        entry = library.add(picture)

When `add` returns, the picture survives kill -9, a power cut and a full disk. Threads and
processes share a library freely. Knows nothing of models or screens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import sqlalchemy as sa

from seedgrid import png
from seedgrid.errors import InputError, LibraryError
from seedgrid.library import checkup, mending, opening, queries
from seedgrid.library.checkup import Report
from seedgrid.library.entry import Entry
from seedgrid.library.queries import Page, Rows, Search, Work, WorkPage
from seedgrid.library.shelf import Shelf
from seedgrid.library.tables import PICTURES, DamagedRowError
from seedgrid.picture import Lineage, Picture
from seedgrid.request import check_prompt

BUSY_TIMEOUT_S: Final = 30.0
MIN_ID_DIGITS: Final = 4


class Library:
    """Every picture made, with its lineage, its marks and its file.

    Args:
        folder: Made if it is not there.
        busy_timeout_s: How long to wait for another process that writes.

    Attributes:
        notices: What happened at the start that the artist should know.

    Raises:
        LibraryError: The folder or its database refuses; nothing is changed.
    """

    def __init__(self, folder: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.folder = folder.expanduser().absolute()
        self._shelf = Shelf.at(self.folder, timeout_s=busy_timeout_s)
        self._left_a_trace = False
        self.notices = opening.open_shelf(self._shelf)

    def __repr__(self) -> str:
        return f"Library({str(self.folder)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; calling again does nothing."""
        self._shelf.database.close()
        self._shelf.objects.close_session(leave_trace=self._left_a_trace)

    def add(self, picture: Picture) -> Entry:
        """Keep a picture; when this returns it is safe on disk.

        Raises:
            LibraryError: Full, read-only or locked; what was kept before is untouched.
        """
        return self._add(png.encode(picture))

    def add_png(self, data: bytes) -> Entry:
        """Keep a SeedGrid PNG file as it is, chunks and all; one that is there already stays.

        Raises:
            PictureError: It holds no recipe, is damaged, or its pixels are not those of its recipe.
            InputError: `picture_twice`: another file has its id.
            LibraryError: Full, read-only or locked.
        """
        png.read_checked(data)
        return self._add(data)

    def add_again(self, entry: Entry, lineage: Lineage) -> Entry:
        """Keep the same pixels at another place in the tree; they are copied, not computed.

        Raises:
            LibraryError: `picture_lost` when the file is not what it was; or the folder refuses.
        """
        data = self._shelf.objects.read(entry.file_sha256)
        if data is None:
            raise LibraryError("picture_lost", value=entry.id)
        return self._add(png.rewrite(data, lineage=lineage))

    def get(self, picture_id: str) -> Entry:
        """Return the picture with this id.

        Raises:
            InputError: `picture_unknown`.
        """
        found = self._entries_where(PICTURES.c.picture_id == picture_id)
        if not found:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return found[0]

    def find(self, text: str) -> Entry:
        """Return the picture with this id, this recipe's id, or the beginning of one of them.

        Args:
            text: At least 4 hexadecimal digits; of several pictures of one recipe the newest.

        Raises:
            InputError: `picture_unknown`, or `picture_ambiguous` when several begin so.
        """
        wanted = text.strip().lower()
        if len(wanted) < MIN_ID_DIGITS:
            raise InputError("picture_unknown", field="picture", value=text[:80])
        found = self._entries_where(queries.starting_with(wanted))
        if not found:
            raise InputError("picture_unknown", field="picture", value=text[:80])
        exact = [entry for entry in found if entry.id == wanted]
        if exact:
            return exact[0]
        if len({entry.recipe.id for entry in found}) > 1:
            raise InputError("picture_ambiguous", field="picture", value=text[:80])
        return found[-1]

    def remembered(self, recipe_id: str, passport_digest: str) -> Entry | None:
        """Return the newest picture of a recipe under a passport, its file proved whole."""
        with self._shelf.database.reads() as connection:
            rows = queries.remembered_rows(connection, recipe_id, passport_digest)
        for entry in self._entries(rows):
            if self._shelf.objects.read(entry.file_sha256) is not None:
                return entry
        return None

    def round(self, round_id: str) -> tuple[Entry, ...]:
        """Return the pictures of one click on Generate or Refine, by cell."""
        entries = self._entries_where(PICTURES.c.round_id == round_id)
        return tuple(sorted(entries, key=lambda entry: entry.lineage.cell))

    def work(self, work_id: str) -> tuple[Entry, ...]:
        """Return the whole tree of choices that began with one round, oldest first."""
        return self._entries_where(PICTURES.c.work_id == work_id)

    def works(self, *, limit: int = 50, after: int | None = None) -> WorkPage:
        """Return the trees of choices, the one with the newest picture first.

        Args:
            limit: The most works of one page.
            after: `WorkPage.after` of the page before.
        """
        with self._shelf.database.reads() as connection:
            found = queries.work_rows(connection, limit, after)
            numbers = [row["newest"] for row in found]
            rows = queries.rows_where(connection, PICTURES.c.number.in_(numbers))
        covers = {entry.lineage.work_id: entry for entry in self._entries(rows)}
        works = tuple(
            Work(
                id=row["work_id"],
                cover=covers[row["work_id"]],
                num_pictures=row["num_pictures"],
            )
            for row in found
            if row["work_id"] in covers
        )
        return WorkPage(works=works, after=numbers[-1] if len(found) == limit else None)

    def search(
        self,
        text: str = "",
        *,
        model: str | None = None,
        seed: int | None = None,
        favourite: bool | None = None,
        since: str | None = None,
        until: str | None = None,
        trashed: bool = False,
        limit: int = 50,
        after: int | None = None,
    ) -> Page:
        """Return the pictures that fit, newest first; what is left open does not matter.

        Args:
            text: Words or parts of words that the prompt must hold, all of them, in any case.
            model: The model's id.
            seed: The seed.
            favourite: Only favourites, or only the others.
            since: The earliest time, ISO 8601, or the beginning of one: `"2026-11"`.
            until: The time before which, ISO 8601, or the beginning of one.
            trashed: Look in the trash instead.
            limit: The most pictures of one page.
            after: `Page.after` of the page before.
        """
        wanted = Search(
            text=text,
            model=model,
            seed=seed,
            favourite=favourite,
            since=since,
            until=until,
            trashed=trashed,
        )
        with self._shelf.database.reads() as connection:
            rows = queries.search_rows(connection, wanted, limit, after)
        last = rows[-1]["number"] if len(rows) == limit else None
        return Page(entries=self._entries(rows), after=last)

    def set_favourite(self, picture_id: str, favourite: bool) -> Entry:
        """Mark or unmark a favourite.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: Nothing has changed.
        """
        return self._change((picture_id,), favourite=favourite)[0]

    def set_note(self, picture_id: str, note: str) -> Entry:
        """Write a note to a picture, in place of the one before.

        Raises:
            InputError: `picture_unknown`, or the note is too long for text.
            LibraryError: Nothing has changed.
        """
        return self._change((picture_id,), note=check_prompt(note, field="note"))[0]

    def trash(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Put pictures into the trash, all or none; their files stay.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: Nothing has changed.
        """
        return self._change(picture_ids, trashed=True)

    def restore(self, *picture_ids: str) -> tuple[Entry, ...]:
        """Take pictures out of the trash, all or none.

        Raises:
            InputError: `picture_unknown`.
            LibraryError: Nothing has changed.
        """
        return self._change(picture_ids, trashed=False)

    def empty_trash(self) -> int:
        """Delete what is in the trash for good, rows and files.

        Returns:
            How many pictures there were.

        Raises:
            LibraryError: What is not yet deleted is deleted at the next start.
        """
        shelf = self._shelf
        with self._traced(), shelf.held():
            trashed = self._entries_where(PICTURES.c.trashed == 1)
            with shelf.database.writes() as connection:
                shelf.marks.append((entry.id, {"deleted": True}) for entry in trashed)
                numbers = [entry.id for entry in trashed]
                connection.execute(PICTURES.delete().where(PICTURES.c.picture_id.in_(numbers)))
            for entry in trashed:
                shelf.objects.remove(entry.file_sha256)
        return len(trashed)

    def check(self, *, repair: bool = False) -> Report:
        """Read every file and every row, and say what is wrong.

        Args:
            repair: Put it right as well: afterwards a check finds nothing.

        Returns:
            What was found, before any repair.

        Raises:
            LibraryError: The folder or the database refuses.
        """
        shelf = self._shelf
        report = checkup.inspect(shelf, deep=True)
        if repair and not report.is_clean:
            with self._traced(), shelf.held():
                if report.database:
                    opening.rebuild(shelf)
                    mending.mend(shelf, checkup.inspect(shelf, deep=True))
                else:
                    mending.mend(shelf, report)
        return report

    def _add(self, data: bytes) -> Entry:
        with self._traced():
            try:
                return self._shelf.add(data)
            except DamagedRowError as error:
                self._mend_picture(str(error))
                return self._shelf.add(data)

    def _change(self, picture_ids: Sequence[str], **marks: bool | str) -> tuple[Entry, ...]:
        with self._traced():
            try:
                return self._shelf.change(picture_ids, **marks)
            except DamagedRowError as error:
                self._mend_picture(str(error))
                return self._shelf.change(picture_ids, **marks)

    def _entries_where(self, condition: sa.ColumnElement[bool]) -> tuple[Entry, ...]:
        with self._shelf.database.reads() as connection:
            rows = queries.rows_where(connection, condition)
        return self._entries(rows)

    def _entries(self, rows: Rows) -> tuple[Entry, ...]:
        """Turn rows into entries; a damaged row is first made again from its PNG file."""
        entries = []
        for row in rows:
            try:
                entries.append(self._shelf.read(row))
            except DamagedRowError:
                entries += self._mended(row["number"])
        return tuple(entries)

    def _mended(self, number: int) -> list[Entry]:
        """Make a row again from its file; the picture may get another id, its true one."""
        shelf = self._shelf
        with self._traced(), shelf.held():
            mending.mend(shelf, Report(rows=(number,)))
            with shelf.database.reads() as connection:
                rows = queries.rows_where(connection, PICTURES.c.number == number)
        return [shelf.read(row) for row in rows]

    def _mend_picture(self, picture_id: str) -> None:
        self._entries_where(PICTURES.c.picture_id == picture_id)

    @contextlib.contextmanager
    def _traced(self) -> Iterator[None]:
        """Leave a trace while writing: what a kill or a failure leaves, the next start mends."""
        self._shelf.objects.open_session()
        try:
            yield
        except LibraryError:
            self._left_a_trace = True
            raise
