"""What the fields show at a place, told from its pictures alone.

The browser remembers what was typed (assets/place.js); this is for one that cannot: a second tab,
a link to a round. Knows no component.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from seedgrid.core.fields import AUTO, IN_LINKS, ON_PAGE, field
from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, ask_again

_ADVISED: Final = ("number", "choice")
"""Settings that a model answers where they are left open."""


def fields_of(
    first: Sequence[Recipe], changes: Sequence[str], answers: Request | None
) -> dict[str, str | bool | list[str]]:
    """Return what the fields showed when a work was begun, by name."""
    prompts = list(dict.fromkeys(recipe.words for recipe in first))
    seeds = tuple(dict.fromkeys(recipe.seed for recipe in first))
    shown = write_fields(replace(ask_again(first[0]), seeds=seeds), answers)
    shown["more_prompts"] = "\n".join(prompts[1:])
    return shown | ({"vary": list(changes)} if changes else {})


def write_fields(request: Request, answers: Request | None = None) -> dict[str, str | bool]:
    """Return what the fields of the page show for a request: those that a link holds too.

    `answers` is what a model gives for what is left open: such a setting is left open again.
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
