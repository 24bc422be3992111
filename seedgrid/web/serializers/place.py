"""What the fields show at a round, from its pictures' recipes.

A browser remembers what was typed (assets/place.js); this is for a second tab or a link.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from seedgrid.core.fields import AUTO, IN_LINKS, ON_PAGE, field
from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, ask_again

_ADVISED: Final = ("number", "choice")
"""Settings with a default of the model."""


def fields_of(
    first: Sequence[Recipe], changes: Sequence[str], answers: Request | None
) -> dict[str, str | bool | list[str]]:
    """Return the values of the fields when a work was started, by name."""
    prompts = list(dict.fromkeys(recipe.words for recipe in first))
    seeds = tuple(dict.fromkeys(recipe.seed for recipe in first))
    shown = write_fields(replace(ask_again(first[0]), seeds=seeds), answers)
    shown["more_prompts"] = "\n".join(prompts[1:])
    return shown | ({"vary": list(changes)} if changes else {})


def write_fields(request: Request, answers: Request | None = None) -> dict[str, str | bool]:
    """Return the values of the page's fields for a request: of those that links hold.

    `answers` are the model's defaults; a setting equal to its default is left open.
    """
    shown = {row.name: _shown(row.name, request, answers) for row in ON_PAGE if row in IN_LINKS}
    typed = request.typed_prompt or request.prompt
    return shown | {"prompt": write_tags(typed, request.loras)}


def _shown(name: str, request: Request, answers: Request | None) -> str | bool:
    row = field(name)
    if row.value_type is bool:
        return bool(row.of(request))
    text = row.text(request)
    is_answer = answers is not None and row.widget in _ADVISED and text == row.text(answers)
    if not is_answer or row.name in ("model", "determinism"):
        return text
    return AUTO if row.has_auto else ""
