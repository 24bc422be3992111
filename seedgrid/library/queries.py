"""Questions to the library's rows: search, works, rounds, ids. Reads only; knows no files.

Every answer of many comes in pages that go on from a row's number, so the thousandth page costs
what the first does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import sqlalchemy as sa

from seedgrid.core.entry import Entry
from seedgrid.library.tables import ENTRIES, PICTURES, SEALS

Rows = Sequence[sa.RowMapping]

_WORDS: Final = sa.table("words", sa.column("rowid"), sa.column("words"))
_PIECE: Final = 3
"""The index knows pieces of three letters; shorter words are looked for row by row."""

_REMEMBERED: Final = (
    ENTRIES.where(
        PICTURES.c.recipe_id == sa.bindparam("recipe"),
        PICTURES.c.passport_id == sa.bindparam("passport"),
        PICTURES.c.trashed == 0,
        PICTURES.c.lost == 0,
        SEALS.c.seal.is_not(None),
    )
    .order_by(PICTURES.c.number.desc())
    .limit(4)
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some pictures of an answer, newest first.

    Attributes:
        after: Where the next page goes on; None at the end.
    """

    entries: tuple[Entry, ...]
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class Work:
    """A tree of choices in one line.

    Attributes:
        id: The `work_id` of its pictures.
        cover: Its newest picture.
        num_pictures: How many there are, the trash left out.
    """

    id: str
    cover: Entry
    num_pictures: int


@dataclass(frozen=True, kw_only=True)
class WorkPage:
    """Some works, the one with the newest picture first.

    Attributes:
        after: Where the next page goes on; None at the end.
    """

    works: tuple[Work, ...]
    after: int | None = None


class Search(TypedDict, total=False):
    """What else is looked for; what is absent, or None, does not matter.

    Attributes:
        model: The model's id.
        seed: The seed.
        favourite: Only favourites, or only the others.
        since: The earliest time, ISO 8601, or the beginning of one: `"2026-11"`.
        until: The time before which, ISO 8601, or the beginning of one.
        trashed: Look in the trash instead.
    """

    model: str | None
    seed: int | None
    favourite: bool | None
    since: str | None
    until: str | None
    trashed: bool


def search_rows(
    connection: sa.Connection, text: str, wanted: Search, limit: int, after: int | None
) -> Rows:
    """Return up to `limit` rows of `ENTRIES`, newest first; their prompts hold all the words."""
    columns = PICTURES.c
    statement = ENTRIES.where(columns.trashed == int(wanted.get("trashed", False)))
    order: sa.ColumnElement[Any] = columns.number
    words = text.split()
    long_words = [word for word in words if len(word) >= _PIECE]
    if long_words:
        pieces = " ".join('"' + word.replace('"', '""') + '"' for word in long_words)
        order = _WORDS.c.rowid
        statement = statement.join(_WORDS, columns.number == _WORDS.c.rowid).where(
            sa.text("words MATCH :pieces").bindparams(pieces=pieces)
        )
    for word in words:
        if len(word) < _PIECE:
            statement = statement.where(columns.prompt.icontains(word, autoescape=True))
    for column in (columns.model, columns.seed, columns.favourite):
        value = wanted.get(column.name)
        if value is not None:
            statement = statement.where(column == value)
    if since := wanted.get("since"):
        statement = statement.where(columns.created_at >= since)
    if until := wanted.get("until"):
        statement = statement.where(columns.created_at < until)
    if after is not None:
        statement = statement.where(order < after)
    return connection.execute(statement.order_by(order.desc()).limit(limit)).mappings().all()


def work_rows(connection: sa.Connection, limit: int, after: int | None) -> Rows:
    """Return `work_id`, `newest` (a row's number) and `num_pictures`, newest first."""
    newest = sa.func.max(PICTURES.c.number)
    statement = (
        sa.select(PICTURES.c.work_id, newest.label("newest"), sa.func.count().label("num_pictures"))
        .where(PICTURES.c.trashed == 0)
        .group_by(PICTURES.c.work_id)
        .order_by(newest.desc())
        .limit(limit)
    )
    if after is not None:
        statement = statement.having(newest < after)
    return connection.execute(statement).mappings().all()


def rows_where(
    connection: sa.Connection, condition: sa.ColumnElement[bool], *, limit: int | None = None
) -> Rows:
    """Return rows of `ENTRIES`, oldest first."""
    statement = ENTRIES.where(condition).order_by(PICTURES.c.number).limit(limit)
    return connection.execute(statement).mappings().all()


def remembered_rows(connection: sa.Connection, recipe_id: str, passport_id: str) -> Rows:
    """Return the rows of sealed pictures of this recipe and this passport, newest first."""
    found = connection.execute(_REMEMBERED, {"recipe": recipe_id, "passport": passport_id})
    return found.mappings().all()


def starting_with(text: str) -> sa.ColumnElement[bool]:
    """Match pictures and recipes by id or by the beginning of one."""
    return sa.or_(
        PICTURES.c.picture_id.startswith(text, autoescape=True),
        PICTURES.c.recipe_id.startswith(text, autoescape=True),
    )
