"""Links: recipes as URL parameters, and strict reading of such links as requests.

The names are those of the command line (core/fields.py). Links are untrusted: every value is
checked, and a model is a name, never a path.

    >>> read_link("prompt=a+red+fox&seeds=0-3").seeds
    (0, 1, 2, 3)
"""

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from seedgrid.core.errors import InputError
from seedgrid.core.field import Field
from seedgrid.core.fields import IN_LINKS
from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, ask_again
from seedgrid.core.text import is_model_name, is_revision

MAX_CHARACTERS: Final = 64_000


def link_query(recipe: Recipe) -> str:
    """Return a link's query: the settings of `IN_LINKS`, LoRAs as tags in the prompt.

    It is empty for a picture that a link cannot tell: one with a parent, or enlarged by a network.
    """
    if recipe.parent or recipe.upscaler:
        return ""
    request = ask_again(recipe)
    values = {setting.name: setting.text(request) for setting in IN_LINKS}
    values["prompt"] = write_tags(request.prompt, recipe.loras)
    return urlencode({name: text for name, text in values.items() if text})


def read_link(query: str) -> Request | None:
    """Read the text after a link's question mark; None if it has no SeedGrid setting.

    Unknown names are ignored (hosts add their own). Raise InputError, which names the field, for a
    wrong value, a repeated name, or a link that is too long.
    """
    if len(query) > MAX_CHARACTERS:
        raise InputError("link_invalid", field="prompt", value="link", reason="it is too long")
    values = _values_of(query)
    if not values:
        return None
    settings: dict[str, Any] = {"prompt": ""}
    for setting in IN_LINKS:
        if setting.name in values:
            settings |= setting.as_attributes(_parsed(setting, values[setting.name]))
    return Request(**settings)


def _values_of(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise _invalid("link", query, "it cannot be read") from error
    values: dict[str, str] = {}
    names = {setting.name for setting in IN_LINKS}
    for name, value in pairs:
        if name in values:
            raise _invalid(name, value, "it is given twice")
        if name in names:
            values[name] = value
    return values


def _parsed(setting: Field, text: str) -> Any:  # noqa: ANN401 (each field has its own type)
    """Read a value as links write it; a model by its name."""
    if setting.name == "model":
        model, at, revision = text.partition("@")
        if not is_model_name(model) or (at and not is_revision(revision)):
            raise _invalid("model", text, "a link names a model, it holds no path")
        return text
    if setting.value_type is bool:
        if text != "yes":
            raise _invalid(setting.name, text, "it is yes, or it is not there")
        return True
    return setting.parse(text)


def _invalid(name: str, value: str, reason: str) -> InputError:
    return InputError("link_invalid", field=name, value=value[:80], reason=f"{name}: {reason}")
