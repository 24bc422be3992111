"""What was typed into the page's fields, read into a request. Empty fields stay open.

Knows nothing of components or models; values are checked by `request.resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from seedgrid.core.errors import InputError
from seedgrid.core.fields import ON_PAGE
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.core.seeds import MAX_SEEDS_AT_ONCE

NUM_VARIATIONS: Final = len(GUIDE_SUFFIXES)
"""The page has so many fields; a letter with more is nobody's click."""

_TEXTS: Any = make_dataclass(
    "_TEXTS",
    [
        (row.name, bool, field(default=False))
        if row.value_type is bool
        else (row.name, str, field(default=""))
        for row in ON_PAGE
    ],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True, kw_only=True)
class Asked(_TEXTS):  # type: ignore[misc] # its attributes are the rows of a table
    """What the fields of the page show when the button is pressed, by their names.

    A switch is a bool, everything else is a text: see `core.fields.ON_PAGE`.
    """


@dataclass(frozen=True, kw_only=True)
class Varied:
    """What a round around the picked picture is told.

    Attributes:
        vary: What is appended to its prompt, a field each.
    """

    vary: tuple[str, ...] = ()
    device: str = ""


_ASKED: Final = TypeAdapter(Asked)
_VARIED: Final = TypeAdapter(Varied)


def read_asked(letter: object) -> Asked:
    """Read what the browser says its fields show; nothing of a letter that is not ours.

    Args:
        letter: A JSON object; a field that is not in it stays as it is in `Asked`.
    """
    try:
        return _ASKED.validate_json(str(letter))
    except ValidationError:
        return Asked()


def read_varied(letter: object) -> Varied:
    """Read what a round around the picked picture is told; nothing of a letter that is not ours."""
    try:
        varied = _VARIED.validate_json(str(letter))
    except ValidationError:
        return Varied()
    return varied if len(varied.vary) <= NUM_VARIATIONS else Varied()


def read_request(asked: Asked) -> Request:
    """Read the fields that make a picture what it is.

    Raises:
        InputError: What is not a number, a size or a list of seeds, by its field.
    """
    settings: dict[str, Any] = {}
    for row in ON_PAGE:
        if row.belongs == "recipe":
            said = getattr(asked, row.name)
            value = said or None if row.value_type is bool else row.value(said)
            settings |= row.filled(value)
    return Request(**settings)


def read_prompts(asked: Asked, request: Request) -> tuple[str, ...]:
    """Return the prompt and those that are to be painted beside it, each once.

    Raises:
        InputError: `pictures_count`: the table would have more cells than one run may.
    """
    more = [line.strip() for line in asked.more_prompts.splitlines() if line.strip()]
    prompts = tuple(dict.fromkeys([asked.prompt, *more]))
    check_count(len(prompts) * len(request.seeds), field="more-prompts")
    return prompts


def write_fields(request: Request) -> dict[str, str | bool]:
    """Return what the fields of the page show for a request: those that a link holds too."""
    return {
        row.name: bool(row.of(request)) if row.value_type is bool else row.text(request)
        for row in ON_PAGE
        if row.in_link
    }


def check_count(num_pictures: int, *, field: str) -> None:
    """Refuse more pictures than one run may paint.

    Raises:
        InputError: `pictures_count`.
    """
    if num_pictures > MAX_SEEDS_AT_ONCE:
        limit = MAX_SEEDS_AT_ONCE
        raise InputError("pictures_count", field=field, value=num_pictures, limit=limit)
