"""A work as a JSON text: each picture's recipe and lineage, without pixels.

It is in `recipes.json` of a bundle and, under `WORK_KEY`, in a poster:

    read_work(write_work(library.work(work_id)))
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from seedgrid.core.errors import PictureError
from seedgrid.core.picture import Entry, Lineage
from seedgrid.core.recipe import Digest, Recipe, Value, first_reason
from seedgrid.core.text import json_text

WORK_KEY: Final = "seedgrid-work"
"""The name of the text in a PNG file."""


class WorkPicture(Value):
    """A picture of a work, without pixels."""

    recipe_id: str  # The recipe's id, for other programs
    recipe: Recipe
    lineage: Lineage
    passport: Digest  # The digest of its passport
    pixels_sha256: Digest  # The digest of its pixels


def described(entry: Entry) -> dict[str, Any]:
    """Return a picture as it is written in the text."""
    return {
        "recipe_id": entry.recipe.id,
        "recipe": entry.recipe.model_dump(mode="json"),
        "lineage": entry.lineage.model_dump(mode="json"),
        "passport": entry.passport.digest,
        "pixels_sha256": entry.pixels_sha256,
    }


def write_work(entries: Iterable[Entry]) -> str:
    """Return pictures as one text."""
    return json_text([described(entry) for entry in entries])


def read_work(text: str) -> tuple[WorkPicture, ...]:
    """Read the pictures of one work, in the order of their rounds and cells.

    Raises:
        PictureError: `picture_record`: it is no such text, or its pictures are not of one work.
    """
    try:
        found = _WORK.validate_json(text)
    except ValidationError as error:
        raise PictureError("picture_record", reason=first_reason(error, whole="work")) from error
    if len({each.lineage.picture_id for each in found}) < len(found):
        raise PictureError("picture_record", reason="it holds a picture twice")
    if len({each.lineage.work_id for each in found}) > 1:
        raise PictureError("picture_record", reason="its pictures are of several works")
    return tuple(
        sorted(
            found,
            key=lambda each: (each.lineage.created_at, each.lineage.round_id, each.lineage.cell),
        )
    )


_WORK: Final = TypeAdapter(Annotated[list[WorkPicture], Field(min_length=1, max_length=1000)])
