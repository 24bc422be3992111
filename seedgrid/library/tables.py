"""The rows of the database: how an entry becomes a row, and a row an entry that can be trusted.

SQLite does not notice a flipped bit, so every row carries the SHA-256 of what it holds, and
recipes and passports are stored under theirs. Knows nothing of files or transactions.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.dialects import sqlite

from seedgrid.core.picture import Entry, Lineage
from seedgrid.core.recipe import Passport, Recipe, canonical_json

METADATA: Final = sa.MetaData()

RECIPES: Final = sa.Table(
    "recipes",
    METADATA,
    sa.Column("recipe_id", sa.Text, primary_key=True),
    sa.Column("json", sa.Text),
)
PASSPORTS: Final = sa.Table(
    "passports",
    METADATA,
    sa.Column("passport_id", sa.Text, primary_key=True),
    sa.Column("json", sa.Text),
)
SEALS: Final = sa.Table(
    "seals",
    METADATA,
    sa.Column("recipe_id", sa.Text, primary_key=True),
    sa.Column("passport_id", sa.Text, primary_key=True),
    sa.Column("pixels_sha256", sa.Text, primary_key=True),
    sa.Column("seal", sa.Text),
)
_LINEAGE: Final = (
    "picture_id",
    "parent_id",
    "work_id",
    "round_id",
    "cell",
    "change",
    "created_at",
)
_HASHED: Final = (
    *_LINEAGE,
    "recipe_id",
    "passport_id",
    "prompt",
    "model",
    "seed",
    "pixels_sha256",
    "file_sha256",
    "favourite",
    "note",
    "trashed",
    "lost",
)
_LATER: Final = ("tags",)
"""Hashed only where there is something in them: rows of before they came keep their hashes."""
_NUMBERS: Final = frozenset({"cell", "seed", "favourite", "trashed", "lost"})

PICTURES: Final = sa.Table(
    "pictures",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    *(sa.Column(name, sa.Integer if name in _NUMBERS else sa.Text) for name in _HASHED),
    sa.Column("row_sha256", sa.Text),
    *(sa.Column(name, sa.Text) for name in _LATER),
    sa.Column("likeness", sa.Text),  # By what works are told to be alike; follows from the rest.
)

ENTRIES: Final = (
    sa.select(
        PICTURES,
        RECIPES.c.json.label("recipe_json"),
        PASSPORTS.c.json.label("passport_json"),
        SEALS.c.seal,
    )
    .outerjoin(RECIPES, RECIPES.c.recipe_id == PICTURES.c.recipe_id)
    .outerjoin(PASSPORTS, PASSPORTS.c.passport_id == PICTURES.c.passport_id)
    .outerjoin(
        SEALS,
        sa.and_(
            SEALS.c.recipe_id == PICTURES.c.recipe_id,
            SEALS.c.passport_id == PICTURES.c.passport_id,
            SEALS.c.pixels_sha256 == PICTURES.c.pixels_sha256,
        ),
    )
)
"""What `read_entry` needs of a row; a row without its recipe is found, and found damaged."""


def _put(table: sa.Table, key: sa.Column[str]) -> sa.Executable:
    """Write JSON under its SHA-256; over what is there, which may be damaged."""
    statement = sqlite.insert(table).values(
        {key: sa.bindparam("key"), table.c.json: sa.bindparam("text")}
    )
    return statement.on_conflict_do_update(
        index_elements=[key],
        set_={"json": statement.excluded.json},
        where=table.c.json != statement.excluded.json,
    )


_PUT_RECIPE: Final = _put(RECIPES, RECIPES.c.recipe_id)
_PUT_PASSPORT: Final = _put(PASSPORTS, PASSPORTS.c.passport_id)


class DamagedRowError(Exception):
    """A row is not what was written."""


def insert(connection: sa.Connection, *entries: Entry, number: int | None = None) -> None:
    """Write entries as new rows, with their recipes and passports."""
    if not entries:
        return
    insert_values(connection, *entries)
    rows = [row_of(entry) for entry in entries]
    if number is not None:
        rows[0]["number"] = number
    connection.execute(PICTURES.insert(), rows)


def insert_values(connection: sa.Connection, *entries: Entry) -> None:
    """Write the recipes and the passports of entries, which others may share."""
    recipes = {canonical_json(entry.recipe) for entry in entries}
    passports = {canonical_json(entry.passport) for entry in entries}
    for put, texts in ((_PUT_RECIPE, recipes), (_PUT_PASSPORT, passports)):
        connection.execute(put, [{"key": _sha256(text), "text": text} for text in sorted(texts)])


def insert_seals(connection: sa.Connection, seals: Mapping[str, Entry]) -> None:
    """Write seals, each of the picture beside it; over one of a key that is gone."""
    statement = sqlite.insert(SEALS)
    statement = statement.on_conflict_do_update(
        index_elements=[SEALS.c.recipe_id, SEALS.c.passport_id, SEALS.c.pixels_sha256],
        set_={"seal": statement.excluded.seal},
    )
    rows = [
        {
            "recipe_id": entry.recipe.id,
            "passport_id": entry.passport.digest,
            "pixels_sha256": entry.pixels_sha256,
            "seal": seal,
        }
        for seal, entry in seals.items()
    ]
    if rows:
        connection.execute(statement, rows)


def update(connection: sa.Connection, entry: Entry) -> None:
    """Write an entry over the row with its id."""
    statement = PICTURES.update().where(PICTURES.c.picture_id == entry.id)
    connection.execute(statement, row_of(entry))


def row_of(entry: Entry) -> dict[str, str | int | None]:
    """Return the columns of an entry, all but its number."""
    values: dict[str, Any] = {name: getattr(entry.lineage, name) for name in _LINEAGE}
    values |= {
        "recipe_id": entry.recipe.id,
        "passport_id": entry.passport.digest,
        "prompt": _searched(entry.recipe),
        "model": entry.recipe.model.id,
        "seed": entry.recipe.seed,
        "pixels_sha256": entry.pixels_sha256,
        "file_sha256": entry.file_sha256,
        "favourite": int(entry.favourite),
        "note": entry.note,
        "trashed": int(entry.trashed),
        "lost": int(entry.lost),
        "tags": written_tags(entry.tags),
        "likeness": entry.recipe.id[:16] + entry.pixels_sha256[:8],
    }
    return values | {"row_sha256": _row_sha256(values)}


def written_tags(tags: Sequence[str]) -> str:
    """Return tags as a row holds them: each on a line of its own, a line end on both sides."""
    return "\n" + "\n".join(tags) + "\n" if tags else ""


def read_tags(text: str) -> tuple[str, ...]:
    """Return the tags that a row holds."""
    return tuple(text.strip("\n").split("\n")) if text else ()


def _searched(recipe: Recipe) -> str:
    """The words by which a picture is found: those that were typed, and those that were painted."""
    return "\n".join(filter(None, (recipe.typed_prompt, recipe.prompt)))


def read_entry(row: Mapping[Any, Any], path: Path) -> Entry:
    """Turn a row of `ENTRIES` into an entry.

    Raises:
        DamagedRowError: The row, its recipe or its passport is not what was written.
    """
    recipe_json, passport_json = row["recipe_json"], row["passport_json"]
    if (
        row["row_sha256"] != _row_sha256(row)
        or recipe_json is None
        or passport_json is None
        or _sha256(recipe_json) != row["recipe_id"]
        or _sha256(passport_json) != row["passport_id"]
    ):
        raise DamagedRowError(row["picture_id"])
    try:
        return Entry(
            path=path,
            recipe=Recipe.model_validate_json(recipe_json),
            passport=Passport.model_validate_json(passport_json),
            lineage=Lineage(**{name: row[name] for name in _LINEAGE}),
            pixels_sha256=row["pixels_sha256"],
            file_sha256=row["file_sha256"],
            favourite=bool(row["favourite"]),
            note=row["note"],
            trashed=bool(row["trashed"]),
            tags=read_tags(row["tags"]),
            lost=bool(row["lost"]),
        )
    except ValidationError as error:
        raise DamagedRowError(row["picture_id"]) from error


def _row_sha256(row: Mapping[Any, Any]) -> str:
    later = [row[name] for name in _LATER if row[name]]
    return _sha256(json.dumps([row[name] for name in _HASHED] + later))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
