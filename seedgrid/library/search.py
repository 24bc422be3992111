"""Searches in a library: by id, words, tag, round and work.

`get`, `find`, `round` and `work` include trashed and lost pictures, so that trees stay whole;
`search` and `works` leave out the trash. A page continues after a row's number, so that late
pages are as fast as the first.
"""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, Unpack

from seedgrid.core.errors import InputError
from seedgrid.core.picture import OURS, Collection, Entry
from seedgrid.library.database import ENTRIES, Database, read_entry
from seedgrid.library.picture_files import PictureFiles

Sort = Literal["newest", "oldest", "favourites", "words"]  # Ties: the newest first


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of pictures; `times` has, by id, the number of equal pictures each stands for."""

    entries: tuple[Entry, ...]
    after: int | None = None  # where the next page begins; None at the end
    times: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Work:
    """A work as an item of a list."""

    id: str  # the `work_id` of its pictures
    cover: Entry  # its newest picture whose file is not lost, if there is one
    num_pictures: int  # outside the trash
    times: int = 1  # number of works with the same recipes and pixels; this is the newest


@dataclass(frozen=True, kw_only=True)
class WorkPage:
    """A page of works."""

    works: tuple[Work, ...]
    after: int | None = None  # as in `Page`


class Search(TypedDict, total=False):
    """Further conditions; missing ones and None are ignored."""

    model: str | None  # its id
    seed: int | None
    favourite: bool | None  # only favourites, or only the others
    since: str | None  # made at this time (ISO 8601) or later; also a prefix: `"2026-11"`
    until: str | None  # made before this time
    trashed: bool  # whether to search only the trash, or only outside it
    tag: str | None


_ORDERS: Final[Mapping[Sort, tuple[str, str]]] = {
    "newest": ("number DESC", "number < :after"),
    "oldest": ("number", "number > :after"),
    "favourites": (
        "favourite DESC, number DESC",
        "(favourite, number) < (SELECT favourite, number FROM {rows} WHERE number = :after)",
    ),
    "words": (
        "prompt COLLATE NOCASE, number DESC",
        "(prompt COLLATE NOCASE, -number) > "
        "(SELECT prompt, -number FROM {rows} WHERE number = :after)",
    ),
}  # For each order: ORDER BY, and the condition for rows after the last page
_FILTERS: Final = {
    "model": "{row}.model = :model",
    "seed": "{row}.seed = :seed",
    "favourite": "{row}.favourite = :favourite",
    "since": "{row}.created_at >= :since",
    "until": "{row}.created_at < :until",
    "tag": "{row}.tags != '[]' AND EXISTS (SELECT 1 FROM json_each({row}.tags) WHERE value = :tag)",
}
_SAME: Final = (
    "other.recipe_id = {row}.recipe_id AND other.pixels_sha256 = {row}.pixels_sha256 "
    "AND other.trashed = {row}.trashed"
)
_TREES: Final = """
    SELECT work_id, max(number) AS newest, count(*) AS num_pictures, max(favourite) AS favourite,
        group_concat(likeness) AS likeness
    FROM pictures INDEXED BY pictures_work WHERE trashed = 0 {condition} GROUP BY work_id
"""  # Works outside the trash; the index orders their pictures by `likeness`
_TRIGRAM: Final = 3  # letters of a trigram in the index; shorter words are searched row by row


class Searches:
    """The searches of a library."""

    def __init__(self, files: PictureFiles, database: Database) -> None:
        self._files = files
        self._database = database

    def get(self, picture_id: str) -> Entry:
        """Return the picture with this id, trashed and lost ones too; raise `picture_unknown`."""
        with self._database.reads() as connection:
            return self._one(connection, picture_id)

    def find(self, text: str) -> Entry:
        """Return the picture with this id or recipe id; its first digits, at least 4, suffice.

        If a recipe has several pictures, the newest is returned. Raise `picture_unknown` or
        `picture_ambiguous`.
        """
        digits = text.strip().lower()
        matches: tuple[Entry, ...] = ()
        if re.fullmatch(r"[0-9a-f]{4,64}", digits):
            condition = "picture_id GLOB :start OR recipe_id GLOB :start"
            matches = self._where(condition, {"start": f"{digits}*"})
        exact = [entry for entry in matches if entry.id == digits]
        if exact:
            return exact[0]
        num_recipes = len({entry.recipe.id for entry in matches})
        if num_recipes != 1:
            code = "picture_ambiguous" if matches else "picture_unknown"
            raise InputError(code, field="picture", value=text[:80])
        return matches[-1]

    def find_painted(self, recipe_ids: Sequence[str], passport_digest: str) -> dict[str, Entry]:
        """Return each recipe's newest picture under a passport, with its file checked.

        Only pictures painted or verified here count, outside the trash: files can claim any pixels.
        """
        values = {
            "passport": passport_digest,
            "ours": json.dumps(OURS),
            "recipes": json.dumps([*recipe_ids]),
        }
        statement = """
            SELECT number, recipe_id, file_sha256 FROM pictures
            WHERE passport_id = :passport AND trashed = 0
                AND origin IN (SELECT value FROM json_each(:ours))
                AND recipe_id IN (SELECT value FROM json_each(:recipes))
            ORDER BY number DESC
        """
        newest: dict[str, int] = {}
        with self._database.reads() as connection:
            for row in connection.execute(statement, values):
                recipe_id, file_sha256 = row["recipe_id"], row["file_sha256"]
                if recipe_id not in newest and self._files.read(file_sha256) is not None:
                    newest[recipe_id] = row["number"]
            entries = self._numbered(connection, [*newest.values()])
        return dict(zip(newest, entries, strict=True))

    def with_pixels(self, pixels_sha256: str) -> Entry | None:
        """Return the newest picture with these pixels; None if there is none."""
        entries = self._where("pixels_sha256 = :pixels", {"pixels": pixels_sha256})
        return entries[-1] if entries else None

    def round(self, round_id: str) -> tuple[Entry, ...]:
        """Return all pictures of one click on Generate or Refine, by cell."""
        entries = self._where("round_id = :round", {"round": round_id})
        return tuple(sorted(entries, key=lambda entry: entry.lineage.cell))

    def work(self, work_id: str) -> tuple[Entry, ...]:
        """Return all pictures of a work, oldest first."""
        return self._where("work_id = :work", {"work": work_id})

    def works(
        self, *, limit: int = 50, after: int | None = None, sort: Sort = "newest"
    ) -> WorkPage:
        """Return a page of works, equal ones as one; `after` is that of the page before."""
        order, beyond = _ORDERS[sort]
        statement = f"""
            WITH trees AS ({_TREES.format(condition="")}),
            merged AS (
                SELECT max(newest) AS number, max(num_pictures) AS num_pictures,
                    max(favourite) AS favourite, count(*) AS times
                FROM trees GROUP BY likeness
            ),
            listed AS (
                SELECT merged.*, pictures.work_id, pictures.prompt
                FROM merged JOIN pictures USING (number)
            )
            SELECT * FROM listed WHERE :after IS NULL OR {beyond.format(rows="listed")}
            ORDER BY {order} LIMIT :limit
        """
        with self._database.reads() as connection:
            rows = connection.execute(statement, {"after": after, "limit": limit}).fetchall()
            numbers = [row["number"] for row in rows]
            covers = {entry.lineage.work_id: entry for entry in self._numbered(connection, numbers)}
        works = tuple(
            Work(
                id=row["work_id"],
                cover=self._with_a_file(covers[row["work_id"]]),
                num_pictures=row["num_pictures"],
                times=row["times"],
            )
            for row in rows
        )
        return WorkPage(works=works, after=numbers[-1] if len(rows) == limit else None)

    def alike(self, work_id: str) -> tuple[str, ...]:
        """Return the ids of this work and of all works equal to it, this one first."""
        near = """
            AND work_id IN (SELECT work_id FROM pictures WHERE trashed = 0 AND recipe_id = (
                SELECT recipe_id FROM pictures WHERE work_id = :work AND trashed = 0))
        """
        with self._database.reads() as connection:
            rows = connection.execute(_TREES.format(condition=near), {"work": work_id}).fetchall()
        likeness = {row["work_id"]: row["likeness"] for row in rows}
        own = likeness.pop(work_id, None)
        return (work_id, *(other for other, each in likeness.items() if each == own))

    def collections(self) -> tuple[Collection, ...]:
        """Return the tags of pictures outside the trash, the most used first."""
        statement = """
            SELECT value AS tag, count(*) AS num_pictures FROM pictures, json_each(tags)
            WHERE tags != '[]' AND trashed = 0 GROUP BY value
        """
        with self._database.reads() as connection:
            tags_used = [Collection(**row) for row in connection.execute(statement)]
        return tuple(sorted(tags_used, key=lambda c: (-c.num_pictures, c.tag.casefold(), c.tag)))

    def search(
        self,
        text: str = "",
        *,
        limit: int = 50,
        after: int | None = None,
        sort: Sort = "newest",
        merged: bool = False,
        **search: Unpack[Search],
    ) -> Page:
        """Return the pictures that match all conditions.

        The prompt must contain all words or parts of words in `text`, ignoring case (only ASCII's
        in words of one or two letters). `limit` is that of a page, `after` the `Page.after` of
        the page before; if `merged`, equal pictures are one, counted in `Page.times`.
        """
        order, beyond = _ORDERS[sort]
        filters = [each for name, each in _FILTERS.items() if search.get(name) not in (None, "")]
        conditions = ["trashed = :trashed", *(each.format(row="pictures") for each in filters)]
        values: dict[str, Any] = {**search, **_words(text), "after": after, "limit": limit}
        values["trashed"] = bool(search.get("trashed", False))
        same = " AND ".join([_SAME, *(each.format(row="other") for each in filters)])
        if values["pieces"]:
            conditions.append("number IN (SELECT rowid FROM words WHERE words MATCH :pieces)")
        if values["short"]:
            # One condition for all words: SQLite cannot nest a thousand.
            conditions.append(
                "NOT EXISTS (SELECT 1 FROM json_each(:short) "
                "WHERE instr(lower(prompt), lower(value)) = 0)"
            )
        if merged:
            conditions.append(
                f"NOT EXISTS (SELECT 1 FROM pictures other WHERE {same.format(row='pictures')} "
                "AND (other.favourite, other.number) > (pictures.favourite, pictures.number))"
            )
        if after is not None:
            conditions.append(beyond.format(rows="pictures"))
        condition = " AND ".join(conditions)
        statement = f"SELECT number FROM pictures WHERE {condition} ORDER BY {order} LIMIT :limit"
        with self._database.reads() as connection:
            numbers = [row["number"] for row in connection.execute(statement, values)]
            entries = self._numbered(connection, numbers)
            times = _times(connection, entries, same, values) if merged else {}
        last = numbers[-1] if len(numbers) == limit else None
        return Page(entries=entries, after=last, times=times)

    def equals(self, picture_id: str) -> tuple[Entry, ...]:
        """Return a picture and all pictures equal to it, all in the trash or all outside."""
        same = _SAME.format(row="pictures")
        condition = f"EXISTS (SELECT 1 FROM pictures other WHERE other.picture_id = :id AND {same})"
        entries = self._where(condition, {"id": picture_id})
        if not entries:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return entries

    def _one(self, connection: sqlite3.Connection, picture_id: str) -> Entry:
        found = (picture_id,) if picture_id.isascii() else ("",)  # SQLite takes no surrogates.
        row = connection.execute(f"{ENTRIES} WHERE picture_id = ?", found).fetchone()
        if row is None:
            raise InputError("picture_unknown", field="picture", value=picture_id[:80])
        return self._entry(row)

    def _where(self, condition: str, values: Mapping[str, Any]) -> tuple[Entry, ...]:
        """Return the entries of matching rows, oldest first."""
        with self._database.reads() as connection:
            rows = connection.execute(f"{ENTRIES} WHERE {condition} ORDER BY number", values)
            return tuple(map(self._entry, rows))

    def _numbered(
        self, connection: sqlite3.Connection, numbers: Sequence[int]
    ) -> tuple[Entry, ...]:
        """Return the entries of these rows, in this order."""
        statement = f"{ENTRIES} WHERE number IN (SELECT value FROM json_each(?))"
        rows = connection.execute(statement, (json.dumps(numbers),))
        by_number = {row["number"]: self._entry(row) for row in rows}
        return tuple(by_number[number] for number in numbers)

    def _with_a_file(self, cover: Entry) -> Entry:
        """Return a work's newest picture that can be shown, or `cover` when none can."""
        if not cover.lost:
            return cover
        work = self.work(cover.lineage.work_id)
        shown = [entry for entry in work if not (entry.lost or entry.trashed)]
        return shown[-1] if shown else cover

    def _entry(self, row: sqlite3.Row) -> Entry:
        return read_entry(row, self._files)


def _words(text: str) -> dict[str, str]:
    """Sort words into those that the index finds and those that are too short for it."""
    words = tuple(dict.fromkeys(text.split()))
    pieces = ['"' + word.replace('"', '""') + '"' for word in words if len(word) >= _TRIGRAM]
    short = [word for word in words if len(word) < _TRIGRAM]
    return {"pieces": " ".join(pieces), "short": json.dumps(short) if short else ""}


def _times(
    connection: sqlite3.Connection, entries: Sequence[Entry], same: str, values: Mapping[str, Any]
) -> dict[str, int]:
    """Return, by id, how many pictures equal each entry, with itself."""
    statement = f"""
        SELECT one.picture_id, count(*) AS times
        FROM pictures one JOIN pictures other ON {same.format(row="one")}
        WHERE one.picture_id IN (SELECT value FROM json_each(:ids)) GROUP BY one.picture_id
    """
    ids = json.dumps([entry.id for entry in entries])
    rows = connection.execute(statement, {**values, "ids": ids})
    return {row["picture_id"]: row["times"] for row in rows}
