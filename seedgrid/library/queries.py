"""Questions to the library's rows: search, works, rounds, ids. Reads only; knows no files.

Every answer of many comes in pages that go on from a row's number, so the thousandth page costs
what the first does.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from seedgrid.library.pages import Search, Sort
from seedgrid.library.tables import ENTRIES, PICTURES, SEALS, written_tags

Rows = Sequence[sa.RowMapping]
Columns = ReadOnlyColumnCollection[str, sa.Column[Any]]

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
_AT_ONCE: Final = 500
"""So many ids are looked for by one question."""
_KNOWN: Final = (
    sa.select(PICTURES.c.recipe_id)
    .distinct()
    .where(
        PICTURES.c.recipe_id.in_(sa.bindparam("recipes", expanding=True)),
        PICTURES.c.passport_id == sa.bindparam("passport"),
    )
)


def search_rows(
    connection: sa.Connection,
    text: str,
    wanted: Search,
    limit: int,
    after: int | None,
    sort: Sort = "newest",
    *,
    merged: bool = False,
) -> Rows:
    """Return up to `limit` rows of `ENTRIES`; their prompts hold all the words.

    Merged, one row stands for all with its recipe and pixels; `times_found` counts them.
    """
    columns = PICTURES.c
    order = _order_of_rows(columns.number, sort)
    found = _found(text, wanted, limit, after, sort, merged=merged)
    statement = ENTRIES.where(columns.number.in_(found)).order_by(*order.by)
    return connection.execute(statement).mappings().all()


def _found(
    text: str, wanted: Search, limit: int, after: int | None, sort: Sort, *, merged: bool
) -> sa.Select[Any]:
    """Select the numbers of one page's rows; only they are joined with their recipes."""
    columns = PICTURES.c
    number: sa.ColumnElement[Any] = columns.number
    words = dict.fromkeys(text.split())
    long_words = [word for word in words if len(word) >= _PIECE]
    statement = sa.select(number).where(columns.trashed == int(wanted.get("trashed", False)))
    if merged:
        statement = _merged(statement, wanted)
    if long_words:
        pieces = " ".join('"' + word.replace('"', '""') + '"' for word in long_words)
        number = _WORDS.c.rowid
        statement = statement.join(_WORDS, columns.number == _WORDS.c.rowid).where(
            sa.text("words MATCH :pieces").bindparams(pieces=pieces)
        )
    if short_words := [word for word in words if len(word) < _PIECE]:
        # As one condition: a thousand, one a word, are more than SQLite can nest.
        each = sa.func.json_each(json.dumps(short_words)).table_valued("value").c.value
        place = sa.func.instr(sa.func.lower(columns.prompt), sa.func.lower(each))
        statement = statement.where(~sa.exists(sa.select(each).where(place == 0)))
    statement = statement.where(*_filters(wanted, columns))
    order = _order_of_rows(number, sort)
    if after is not None:
        last = sa.select(order.key).where(columns.number == after).scalar_subquery()
        statement = statement.where(order.beyond(after, last))
    return statement.order_by(*order.by).limit(limit).correlate(None)


def _merged(statement: sa.Select[Any], wanted: Search) -> sa.Select[Any]:
    """Leave out what an equal picture stands for that is found as well."""
    columns, other = PICTURES.c, PICTURES.alias()
    same = sa.and_(_same(other.c, columns), *_filters(wanted, other.c))

    def rank(one: Columns) -> sa.ColumnElement[Any]:
        """A favourite goes before others, what can be seen before what is lost, then the newest."""
        return sa.tuple_(one.favourite, -one.lost, one.number)

    return statement.where(~sa.exists().where(same, rank(other.c) > rank(columns)))


def times_found(
    connection: sa.Connection, picture_ids: Sequence[str], wanted: Search
) -> dict[str, int]:
    """Return for how many found pictures each of these stands, itself among them, by id."""
    one, other = PICTURES.alias(), PICTURES.alias()
    same = sa.and_(_same(other.c, one.c), *_filters(wanted, other.c))
    statement = (
        sa.select(one.c.picture_id, sa.func.count().label("times"))
        .select_from(one.join(other, same))
        .where(one.c.picture_id.in_(picture_ids))
        .group_by(one.c.picture_id)
    )
    return {row.picture_id: row.times for row in connection.execute(statement)}


def _same(other: Columns, one: Columns) -> sa.ColumnElement[bool]:
    """Match pictures of the same recipe and the same pixels, both in the trash or both not."""
    return sa.and_(
        other.recipe_id == one.recipe_id,
        other.pixels_sha256 == one.pixels_sha256,
        other.trashed == one.trashed,
    )


def equal_rows(connection: sa.Connection, picture_id: str) -> Rows:
    """Return the rows of a picture and of all that are equal to it, oldest first."""
    one = PICTURES.alias()
    same = sa.exists().where(one.c.picture_id == picture_id, _same(PICTURES.c, one.c))
    return rows_where(connection, same)


def _filters(wanted: Search, columns: Columns) -> list[sa.ColumnElement[bool]]:
    filters: list[sa.ColumnElement[bool]] = []
    for column in (columns.model, columns.seed, columns.favourite):
        value = wanted.get(column.name)
        if value is not None:
            filters.append(column == value)
    if since := wanted.get("since"):
        filters.append(columns.created_at >= since)
    if until := wanted.get("until"):
        filters.append(columns.created_at < until)
    if tag := wanted.get("tag"):
        filters += [columns.tags != "", sa.func.instr(columns.tags, written_tags([tag])) > 0]
    return filters


class _Order:
    """An order of rows, and where a page goes on in it."""

    def __init__(
        self, number: sa.ColumnElement[Any], sort: Sort, key: sa.ColumnElement[Any] | None
    ) -> None:
        self._number = number
        self._rises = sort == "oldest"
        self._key_rises = sort == "words"
        self._has_key = key is not None
        self.key = sa.literal(0) if key is None else key

    @property
    def by(self) -> list[sa.ColumnElement[Any]]:
        """What to order by."""
        number = self._number.asc() if self._rises else self._number.desc()
        if not self._has_key:
            return [number]
        return [self.key.asc() if self._key_rises else self.key.desc(), number]

    def beyond(self, after: int, last: sa.ScalarSelect[Any]) -> sa.ColumnElement[bool]:
        """Match what comes after the row of a number, whose key is `last`."""
        then = self._number > after if self._rises else self._number < after
        if not self._has_key:
            return then
        further = self.key > last if self._key_rises else self.key < last
        return sa.or_(further, sa.and_(self.key == last, then))


def _order_of_rows(number: sa.ColumnElement[Any], sort: Sort) -> _Order:
    columns = PICTURES.c
    keys = {"favourites": columns.favourite, "words": columns.prompt.collate("NOCASE")}
    return _Order(number, sort, keys.get(sort))


def work_rows(
    connection: sa.Connection, limit: int, after: int | None, sort: Sort = "newest"
) -> Rows:
    """Return `newest` (a row's number), `num_pictures` and `times` of works, alike ones as one."""
    columns = PICTURES.c
    trees = (
        _by_likeness(columns.trashed == 0)
        .add_columns(sa.func.max(columns.favourite).label("favourite"))
        .subquery()
    )
    newest = sa.func.max(trees.c.newest)
    merged = (
        sa.select(
            newest.label("newest"),
            sa.func.max(trees.c.num_pictures).label("num_pictures"),
            sa.func.max(trees.c.favourite).label("favourite"),
            sa.func.count().label("times"),
        )
        .group_by(trees.c.likeness)
        .cte()
    )
    keys = {"favourites": merged.c.favourite, "words": columns.prompt.collate("NOCASE")}
    order = _Order(merged.c.newest, sort, keys.get(sort))
    of_row = merged.join(PICTURES, columns.number == merged.c.newest)
    statement = sa.select(merged, columns.work_id).select_from(of_row)
    if after is not None:
        other, cover = merged.alias(), PICTURES.alias()
        then = {"favourites": other.c.favourite, "words": cover.c.prompt.collate("NOCASE")}
        last = sa.select(then.get(sort, sa.literal(0))).select_from(
            other.join(cover, cover.c.number == other.c.newest)
        )
        beyond = order.beyond(after, last.where(other.c.newest == after).scalar_subquery())
        statement = statement.where(beyond)
    return connection.execute(statement.order_by(*order.by).limit(limit)).mappings().all()


def alike(connection: sa.Connection, work_id: str) -> tuple[str, ...]:
    """Return the works with just the recipes and pixels of a work, itself among them."""
    columns = PICTURES.c
    is_seen = columns.trashed == 0
    recipe = sa.select(columns.recipe_id).where(columns.work_id == work_id, is_seen).limit(1)
    near = sa.select(columns.work_id).where(columns.recipe_id == recipe.scalar_subquery())
    statement = sa.select(columns.work_id, columns.likeness)
    statement = statement.where(columns.work_id.in_(near), is_seen).order_by(columns.likeness)
    found: dict[str, list[str]] = {}
    for other, likeness in connection.execute(statement):
        found.setdefault(other, []).append(likeness)
    own = found.pop(work_id, None)
    return (work_id, *(other for other, likeness in found.items() if likeness == own))


def _by_likeness(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Select works: `work_id`, `newest`, `num_pictures` and what is equal where they are alike."""
    columns = PICTURES.c
    # The index gives them in order: `pictures_work`, migration m004.
    each = sa.func.group_concat(columns.likeness).label("likeness")
    newest = sa.func.max(columns.number).label("newest")
    return (
        sa.select(columns.work_id, newest, sa.func.count().label("num_pictures"), each)
        .where(condition)
        .group_by(columns.work_id)
    )


def tag_rows(connection: sa.Connection) -> Rows:
    """Return `tags` as rows hold them, each kind once, and its `num_pictures`."""
    columns = PICTURES.c
    statement = (
        sa.select(columns.tags, sa.func.count().label("num_pictures"))
        .where(columns.tags != "", columns.trashed == 0)
        .group_by(columns.tags)
    )
    return connection.execute(statement).mappings().all()


def rows_where(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Rows:
    """Return rows of `ENTRIES`, oldest first."""
    statement = ENTRIES.where(condition).order_by(PICTURES.c.number)
    return connection.execute(statement).mappings().all()


def remembered_rows(connection: sa.Connection, recipe_id: str, passport_id: str) -> Rows:
    """Return the rows of sealed pictures of this recipe and this passport, newest first."""
    found = connection.execute(_REMEMBERED, {"recipe": recipe_id, "passport": passport_id})
    return found.mappings().all()


def known_recipes(
    connection: sa.Connection, recipe_ids: Sequence[str], passport_id: str
) -> set[str]:
    """Return which of these recipes have any picture under this passport."""
    found: set[str] = set()
    for start in range(0, len(recipe_ids), _AT_ONCE):
        some = list(recipe_ids[start : start + _AT_ONCE])
        found |= {*connection.scalars(_KNOWN, {"recipes": some, "passport": passport_id})}
    return found


def starting_with(text: str) -> sa.ColumnElement[bool]:
    """Match pictures and recipes by id or by the beginning of one."""
    return sa.or_(
        PICTURES.c.picture_id.startswith(text, autoescape=True),
        PICTURES.c.recipe_id.startswith(text, autoescape=True),
    )
