"""Questions to the library's rows: search, works, rounds, ids. Reads only; knows no files.

Every answer of many comes in pages that go on from a row's number, so the thousandth page costs
what the first does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for; what is left open does not matter.

    Attributes:
        text: Words or parts of words, all of which the prompt must hold; letter case is ignored.
        model: The model's id.
        since: The earliest time, ISO 8601, or the beginning of one: `"2026-11"`.
        until: The time before which, ISO 8601, or the beginning of one.
        trashed: Look in the trash instead.
    """

    text: str = ""
    model: str | None = None
    seed: int | None = None
    favourite: bool | None = None
    since: str | None = None
    until: str | None = None
    trashed: bool = False


def search_rows(connection: sa.Connection, wanted: Search, limit: int, after: int | None) -> Rows:
    """Return up to `limit` rows of `ENTRIES`, newest first."""
    columns = PICTURES.c
    statement = ENTRIES.where(columns.trashed == int(wanted.trashed))
    order: sa.ColumnElement[Any] = columns.number
    words = wanted.text.split()
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
    for column, value in ((columns.model, wanted.model), (columns.seed, wanted.seed)):
        if value is not None:
            statement = statement.where(column == value)
    if wanted.favourite is not None:
        statement = statement.where(columns.favourite == int(wanted.favourite))
    if wanted.since:
        statement = statement.where(columns.created_at >= wanted.since)
    if wanted.until:
        statement = statement.where(columns.created_at < wanted.until)
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
