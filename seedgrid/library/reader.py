"""LibraryReader: the questions to a library. What is found damaged is mended before it is shown.

One rule for what is in the trash and for what is lost: `get`, `find`, `round` and `work` give
everything there is, since a tree keeps its branches; `search` and `works` leave the trash out. An
entry says of itself whether it is `trashed`, and whether its file is `lost`.

`Library` (store.py) is a reader that can also write.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Unpack

import sqlalchemy as sa

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.picture import Collection, Entry
from seedgrid.library import mending, queries
from seedgrid.library.checkup import Report
from seedgrid.library.pages import Page, Search, Sort, Work, WorkPage
from seedgrid.library.queries import Rows
from seedgrid.library.storage import LibraryStorage
from seedgrid.library.tables import PICTURES, DamagedRowError, read_tags

MIN_ID_DIGITS: Final = 4


class LibraryReader:
    """What is in a library."""

    def __init__(self, storage: LibraryStorage) -> None:
        self._storage = storage
        self._left_a_trace = False

    def get(self, picture_id: str) -> Entry:
        """Return the picture with this id, also from the trash, also when its file is lost."""
        found = self._entries_where(PICTURES.c.picture_id == picture_id)
        if not found:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return found[0]

    def find(self, text: str) -> Entry:
        """Return the picture with this id, this recipe's id, or the beginning of one of them.

        Args:
            text: At least 4 hexadecimal digits; of several pictures of one recipe the newest.
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

    def remembered(self, recipe_ids: Sequence[str], passport_digest: str) -> dict[str, Entry]:
        """Return the newest picture of each recipe under a passport, its file proved whole.

        Only what this library painted, or verified here, is a memory: a file from elsewhere may
        claim any pixels for a recipe.
        """
        with self._storage.database.reads() as connection:
            known = queries.known_recipes(connection, recipe_ids, passport_digest)
            rows = [
                row
                for recipe_id in recipe_ids
                if recipe_id in known
                for row in queries.remembered_rows(connection, recipe_id, passport_digest)
            ]
        found: dict[str, Entry] = {}
        for row in rows:
            if row["recipe_id"] not in found:
                for entry in self._entries([row]):
                    whole = self._storage.objects.read(entry.file_sha256) is not None
                    if entry.checked and whole:
                        found[row["recipe_id"]] = entry
        return found

    def with_pixels(self, pixels_sha256: str) -> Entry | None:
        """Return the newest picture of just these pixels; None when there is none."""
        found = self._entries_where(PICTURES.c.pixels_sha256 == pixels_sha256)
        return found[-1] if found else None

    def round(self, round_id: str) -> tuple[Entry, ...]:
        """Return all pictures of one click on Generate or Refine, by cell."""
        entries = self._entries_where(PICTURES.c.round_id == round_id)
        return tuple(sorted(entries, key=lambda entry: entry.lineage.cell))

    def work(self, work_id: str) -> tuple[Entry, ...]:
        """Return the whole tree of choices that began with one round, oldest first."""
        return self._entries_where(PICTURES.c.work_id == work_id)

    def works(
        self, *, limit: int = 50, after: int | None = None, sort: Sort = "newest"
    ) -> WorkPage:
        """Return the trees of choices, the one with the newest picture first; alike ones as one.

        The cover is the newest picture whose file is there, if there is one.

        Args:
            limit: The most works of one page.
            after: `WorkPage.after` of the page before.
            sort: Another order; by favourites and words of the cover.
        """
        with self._storage.database.reads() as connection:
            found = queries.work_rows(connection, limit, after, sort)
            numbers = [row["newest"] for row in found]
            rows = queries.rows_where(connection, PICTURES.c.number.in_(numbers))
        covers = {entry.lineage.work_id: entry for entry in self._entries(rows)}
        works = tuple(
            Work(
                id=row["work_id"],
                cover=self._with_a_file(covers[row["work_id"]]),
                num_pictures=row["num_pictures"],
                times=row["times"],
            )
            for row in found
            if row["work_id"] in covers
        )
        return WorkPage(works=works, after=numbers[-1] if len(found) == limit else None)

    def alike(self, work_id: str) -> tuple[str, ...]:
        """Return the works that `works` shows as one with this work, by their ids; it is in it."""
        with self._storage.database.reads() as connection:
            return queries.alike(connection, work_id)

    def collections(self) -> tuple[Collection, ...]:
        """Return every tag that a picture outside the trash has, the most used first."""
        with self._storage.database.reads() as connection:
            rows = queries.tag_rows(connection)
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(dict.fromkeys(read_tags(row["tags"]), row["num_pictures"]))
        ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0].casefold(), one[0]))
        return tuple(Collection(tag=tag, num_pictures=number) for tag, number in ordered)

    def search(
        self,
        text: str = "",
        *,
        limit: int = 50,
        after: int | None = None,
        sort: Sort = "newest",
        merged: bool = False,
        **wanted: Unpack[Search],
    ) -> Page:
        """Return the pictures that fit, newest first; what is left open does not matter.

        Those whose file is lost are among them: they can be painted again.

        Args:
            text: Words or parts of words that the prompt must hold, all of them, in any case.
            limit: The most pictures of one page.
            after: `Page.after` of the page before.
            sort: Another order.
            merged: One picture stands for all with its recipe and pixels; `Page.times` counts them.
            **wanted: See `Search`.
        """
        with self._storage.database.reads() as connection:
            rows = queries.search_rows(connection, text, wanted, limit, after, sort, merged=merged)
            ids = [row["picture_id"] for row in rows]
            times = queries.times_found(connection, ids, wanted) if merged else {}
        last = rows[-1]["number"] if len(rows) == limit else None
        return Page(entries=self._entries(rows), after=last, times=times)

    def equals(self, picture_id: str) -> tuple[Entry, ...]:
        """Return a picture and all with its recipe and pixels; those in the trash only if it is."""
        with self._storage.database.reads() as connection:
            rows = queries.equal_rows(connection, picture_id)
        if not rows:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return self._entries(rows)

    def _entries_where(self, condition: sa.ColumnElement[bool]) -> tuple[Entry, ...]:
        with self._storage.database.reads() as connection:
            rows = queries.rows_where(connection, condition)
        return self._entries(rows)

    def _entries(self, rows: Rows) -> tuple[Entry, ...]:
        """Turn rows into entries; a damaged row is first made again from its PNG file."""
        entries = []
        for row in rows:
            try:
                entries.append(self._storage.read(row))
            except DamagedRowError:
                entries += self._mended(row["number"])
        return tuple(_as_it_is(entry) for entry in entries)

    def _with_a_file(self, cover: Entry) -> Entry:
        """Return a work's newest picture that can be shown, or `cover` when none can."""
        if not cover.lost:
            return cover
        work = self.work(cover.lineage.work_id)
        shown = [entry for entry in work if not (entry.lost or entry.trashed)]
        return shown[-1] if shown else cover

    def _mended(self, number: int) -> list[Entry]:
        """Make a row again from its file; the picture may get another id, its true one."""
        storage = self._storage
        with self._traced(), storage.lock.held():
            mending.mend(storage, Report(rows=(number,)))
            with storage.database.reads() as connection:
                rows = queries.rows_where(connection, PICTURES.c.number == number)
        return [storage.read(row) for row in rows]

    def _mend_picture(self, picture_id: str) -> None:
        self._entries_where(PICTURES.c.picture_id == picture_id)

    @contextlib.contextmanager
    def _traced(self) -> Iterator[None]:
        """Leave a trace while writing: what a kill or a failure leaves, the next start mends."""
        self._storage.objects.open_session()
        try:
            yield
        except LibraryError:
            self._left_a_trace = True
            raise


def _as_it_is(entry: Entry) -> Entry:
    """Say that a file is gone before any check has found it out."""
    return entry if entry.lost or entry.path.is_file() else replace(entry, lost=True)
