"""What the public functions are told, checked, and what they answer of a picture or a file.

What `/grid` is told is the table of fields.

    read_grid({"prompt": "a red fox", "steps": 4})
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as Described

from seedgrid.core.errors import InputError, Notice
from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS, field, read_fields
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.locales import english

_FIRST: Final = (
    "prompt",
    "seeds",
    "negative",
    "steps",
    "guidance",
    "size",
    "scheduler",
    "model",
    "turbo",
)
"""The parameters that /grid always had, in the order in which scripts give them."""
GRID_FIELDS: Final = (
    *map(field, _FIRST),
    *(
        row
        for row in FIELDS
        if row.belongs == "recipe" and row.name not in _FIRST and (row.help or row.widget)
    ),
)
"""What `/grid` may be told: everything that makes the picture what it is, and turbo.

LoRAs are named in the prompt, and vary by a line of a refinement alone.
"""

_CLOSED: Final = ConfigDict(extra="forbid")


def _grid_call() -> type[BaseModel]:
    """Make a class of the table of fields: numbers are numbers, and what is left out stays open."""
    told: dict[str, Any] = {}
    for row in GRID_FIELDS:
        words = Described(default_of(row), description=about(row))
        # A number may be written as a text too, as in the page's fields.
        kind = bool if row.value_type is bool else row.value_type | str | None
        told[row.name] = (kind, words)
    told["prompt"] = (str, Described(description=about(field("prompt"))))
    return create_model("GridCall", __config__=_CLOSED, **told)


def about(row: Field) -> str:
    """Return what a parameter means, in a few English words."""
    return row.help or english().words[f"{row.name}_label"]


def default_of(row: Field) -> str | bool | None:
    """Return what a parameter is when it is left out; None leaves it to the model's card."""
    return row.default or (False if row.value_type is bool else None)


GridCall: Final = _grid_call()


class RefineCall(BaseModel):
    """What `/refine` is told."""

    model_config = _CLOSED

    picture_id: str = Described(description="The id of a picture that grid or refine gave.")
    vary: list[str] | None = Described(
        None,
        description=(
            'One picture each: what to append to its prompt, or a setting, as in "guidance 3" or'
            ' "scheduler Euler a"; by default ' + " ".join(GUIDE_SUFFIXES).lstrip(", ")
        ),
    )
    hold: float | None = Described(
        None, description="The share of its steps that are the picture's own, 0 to 0.8."
    )
    feather: int | None = Described(
        None, description="Over how many pixels, inside a mask, new and old are mixed."
    )


def read_grid(told: Mapping[str, Any]) -> Request:
    """Read what `/grid` is told; a text is read as the page's fields are.

    Raises:
        InputError: `call_wrong` for another kind of value, or what a field cannot be.
    """
    asked = checked(GridCall, told).model_dump()
    read = read_fields((row for row in GRID_FIELDS if row.fills), asked)
    return Request(**({"prompt": ""} | read))


def checked(kind: type[BaseModel], told: Mapping[str, Any]) -> Any:  # noqa: ANN401 (one of the calls)
    """Return what a call is told, checked for names and kinds."""
    try:
        return kind.model_validate(dict(told))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "arguments"
        raise InputError("call_wrong", field=field, value=field, reason=first["msg"]) from None


def picture_record(entry: Entry, run: Run) -> dict[str, Any]:
    """Return what is answered of a picture, as plain data; also which others came to nothing."""
    missed = (
        Notice("seed_missed", seed=run.jobs[cell].recipe.seed, reason=str(error))
        for cell, error in sorted(run.missed.items())
    )
    return {
        "id": entry.id,
        "seed": entry.recipe.seed,
        "prompt": entry.recipe.prompt,
        "recipe_id": entry.recipe.id,
        "pixels_sha256": entry.pixels_sha256,
        "recipe": entry.recipe.model_dump(mode="json"),
        "notices": [str(notice) for notice in (*run.notices, *missed)],
    }


def file_record(path: Path) -> dict[str, Any]:
    """Return what a PNG file says of itself, as plain data."""
    record = png.read(path)
    return {
        "recipe_id": record.recipe.id,
        "recipe": record.recipe.model_dump(mode="json"),
        "passport": record.passport.model_dump(mode="json"),
        "lineage": record.lineage.model_dump(mode="json"),
        "pixels_sha256": record.pixels_sha256,
    }
