"""Reads the page's fields into a request. Empty fields stay open.

Values are checked by `request.resolve`.
"""

from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Final

from pydantic import Field as Described

from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.field import Field
from seedgrid.core.fields import ON_PAGE, read_fields
from seedgrid.core.picture import PictureId
from seedgrid.core.prompts import GUIDE_SUFFIXES, alternatives
from seedgrid.core.request import Request
from seedgrid.core.seeds import MAX_SEEDS_AT_ONCE, check_count
from seedgrid.storage.starts import read_picture

NUM_VARIATIONS: Final = len(GUIDE_SUFFIXES)
"""Number of variation fields on the page."""


def _texts(rows: Sequence[Field]) -> Any:  # noqa: ANN401 (a class whose attributes are rows)
    """Make a class of the fields' values: a switch is a bool, everything else a text."""
    texts = [
        (row.name, bool, False) if row.value_type is bool else (row.name, str, "") for row in rows
    ]
    return make_dataclass("_Texts", texts, frozen=True, kw_only=True)


_PLACED: Final = tuple(row for row in ON_PAGE if row.belongs == "placement")
_ON_PAGE: Any = _texts(ON_PAGE)
_ON_CARD: Any = _texts(_PLACED)


@dataclass(frozen=True, kw_only=True)
class FormPayload(_ON_PAGE):  # type: ignore[misc] # see _texts
    """The values of the page's fields (`core.fields.ON_PAGE`)."""


@dataclass(frozen=True, kw_only=True)
class RoundPayload(_ON_CARD):  # type: ignore[misc] # see _texts
    """The values for a round from the picked picture, and where to compute it.

    Attributes:
        vary: The variations, one for each field.
        upscaler: The name of the network for a large final; empty for the model itself.
        hold: The share of steps that are taken from the picture, in a refinement.
        only: The mask of what may change, white on black: a PNG in base64; empty for all.
        feather: Over how many pixels, inside the mask's edge, new and old are mixed.
        also: Other pictures to refine in the same round, a row of variations each.
    """

    vary: Annotated[tuple[str, ...], Described(max_length=NUM_VARIATIONS)] = ()
    upscaler: str = ""
    hold: float = 0.0
    only: str = ""
    feather: int | None = None
    also: Annotated[tuple[PictureId, ...], Described(max_length=MAX_SEEDS_AT_ONCE)] = ()


def read_request(payload: FormPayload) -> Request:
    """Read the fields of a recipe into a request."""
    settings = read_fields((row for row in ON_PAGE if row.belongs == "recipe"), vars(payload))
    return Request(**settings)


def read_what_can_be(payload: FormPayload) -> Request:
    """Read the valid fields into a request; invalid ones stay open."""
    settings: dict[str, Any] = {"prompt": ""}
    for row in ON_PAGE:
        if row.belongs == "recipe":
            with suppress(InputError):
                settings |= read_fields((row,), vars(payload))
    return Request(**settings)


def read_placement(payload: FormPayload | RoundPayload) -> dict[str, Any]:
    """Return the attributes of the studio's placement that the fields change."""
    return read_fields(_PLACED, vars(payload))


def read_region(payload: RoundPayload) -> dict[str, Any]:
    """Return the mask and feather of a refinement; empty without a mask.

    Raises:
        PictureError: `start_unreadable`, `picture_large`.
    """
    if not payload.only:
        return {}
    try:
        data = b64decode(payload.only, validate=True)
    except ValueError as error:
        raise PictureError("start_unreadable") from error
    return {"only": read_picture(data), "feather": payload.feather}


def read_prompts(
    payload: FormPayload, request: Request, opened: Callable[[Sequence[str]], Sequence[str]]
) -> tuple[str, ...]:
    """Return the prompt and the further prompts, each once, with lists and choices expanded.

    `opened` fills in the lists that prompts name.
    """
    more = [line.strip() for line in payload.more_prompts.splitlines() if line.strip()]
    typed = opened([payload.prompt, *more])
    prompts = tuple(dict.fromkeys(each for line in typed for each in alternatives(line)))
    check_count(len(prompts) * len(request.seeds), field="more-prompts")
    return prompts
