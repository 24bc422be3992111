"""The fields of the page: their options, how a request is read from them, how it fills them in."""

import sys
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, make_dataclass, replace
from typing import Annotated, Any, Final

from pydantic import Field as Described

from seedgrid.core.card import shapes
from seedgrid.core.checks import MAX_SEEDS_AT_ONCE, check_count
from seedgrid.core.errors import InputError, PictureError
from seedgrid.core.field import Field
from seedgrid.core.fields import AUTO, IN_LINKS, ON_PAGE, read_fields
from seedgrid.core.picture import PictureId
from seedgrid.core.prompts import GUIDE_SUFFIXES, alternatives, write_tags
from seedgrid.core.recipe import MAX_SIZE_PX, Recipe
from seedgrid.core.request import Request, ask_again
from seedgrid.core.variables import is_offered
from seedgrid.formats import png
from seedgrid.storage.starts import read_picture
from seedgrid.studio import Studio
from seedgrid.web.server.page import say

_WITH_DEFAULTS: Final = ("number", "choice")  # Widgets of settings for which a model has defaults
NUM_VARIATIONS: Final = len(GUIDE_SUFFIXES)  # The number of the page's fields for variations


def _dataclass_of(fields: Sequence[Field]) -> Any:  # noqa: ANN401 (a class made at run time)
    """Make a dataclass with an attribute for each field: a bool for a switch, otherwise a text."""
    values = [(f.name, bool, False) if f.value_type is bool else (f.name, str, "") for f in fields]
    return make_dataclass("_Values", values, frozen=True, kw_only=True)


_RECIPE_FIELDS: Final = tuple(setting for setting in ON_PAGE if setting.scope == "recipe")
_PLACEMENT_FIELDS: Final = tuple(setting for setting in ON_PAGE if setting.scope == "placement")


@dataclass(frozen=True, kw_only=True)
class FormPayload(_dataclass_of(ON_PAGE)):  # type: ignore[misc] # made at run time
    """The values of the page's fields (`core.fields.ON_PAGE`)."""


@dataclass(frozen=True, kw_only=True)
class RoundPayload(_dataclass_of(_PLACEMENT_FIELDS)):  # type: ignore[misc] # made at run time
    """The settings of a round that starts from the picked picture, and of its placement."""

    # The variations to append to the picked picture's prompt, or settings to change
    vary: Annotated[tuple[str, ...], Described(max_length=NUM_VARIATIONS)] = ()
    upscaler: str = ""  # The upscaler's name for a final; empty: the model itself enlarges
    hold: float = 0.0  # The share of first steps that a refinement takes from the picture
    only: str = ""  # A mask of what may change, white on black: a PNG in base64; empty for all
    feather: int | None = None  # Over how many pixels inside the mask's edge new and old are mixed
    # Other pictures to refine in the same round, a row of variations each
    also: Annotated[tuple[PictureId, ...], Described(max_length=MAX_SEEDS_AT_ONCE)] = ()


def read_request(payload: FormPayload) -> Request:
    """Read the recipe's fields; raise InputError at the first that is not valid."""
    return Request(**read_fields(_RECIPE_FIELDS, vars(payload)))


def read_valid(payload: FormPayload) -> Request:
    """Read those of the recipe's fields that are valid; the others stay unset."""
    settings: dict[str, Any] = {"prompt": ""}
    for setting in _RECIPE_FIELDS:
        with suppress(InputError):
            settings |= read_fields((setting,), vars(payload))
    return Request(**settings)


def read_placement(payload: FormPayload | RoundPayload) -> dict[str, Any]:
    """Return the attributes of the placement that the fields set."""
    return read_fields(_PLACEMENT_FIELDS, vars(payload))


def read_region(payload: RoundPayload) -> dict[str, Any]:
    """Return a refinement's mask and feather, if any; raise `start_unreadable`, `picture_large`."""
    if not payload.only:
        return {}
    try:
        data = b64decode(payload.only, validate=True)
    except ValueError as error:
        raise PictureError("start_unreadable") from error
    if max(size := png.read_size(data)) > MAX_SIZE_PX:
        value, limit = f"{size[0]}x{size[1]}", f"{MAX_SIZE_PX}x{MAX_SIZE_PX}"
        raise PictureError("picture_large", value=value, limit=limit)
    return {"only": read_picture(data), "feather": payload.feather}


def read_prompts(
    payload: FormPayload, request: Request, opened: Callable[[Sequence[str]], Sequence[str]]
) -> tuple[str, ...]:
    """Return the prompts to paint, each once; `opened` writes out the word lists that they name."""
    more = [line.strip() for line in payload.more_prompts.splitlines() if line.strip()]
    lines = opened([payload.prompt, *more])
    prompts = tuple(dict.fromkeys(each for line in lines for each in alternatives(line)))
    check_count(len(prompts) * len(request.seeds), field="more-prompts")
    return prompts


def fields_of(
    first: Sequence[Recipe], changes: Sequence[str], defaults: Request | None
) -> dict[str, str | bool | list[str]]:
    """Return the fields' values by name for a work: `first` are the recipes of its first round."""
    prompts = list(dict.fromkeys(write_tags(recipe.words, recipe.loras) for recipe in first))
    seeds = tuple(dict.fromkeys(recipe.seed for recipe in first))
    shown = write_fields(replace(ask_again(first[0]), seeds=seeds), defaults)
    shown["more_prompts"] = "\n".join(prompts[1:])
    return shown | ({"vary": list(changes)} if changes else {})


def write_fields(request: Request, defaults: Request | None = None) -> dict[str, str | bool]:
    """Return the fields for a request; numbers and most choices equal to `defaults` stay unset."""
    shown = {f.name: _value_to_show(f, request, defaults) for f in ON_PAGE if f in IN_LINKS}
    typed = request.typed_prompt or request.prompt
    return shown | {"prompt": write_tags(typed, request.loras)}


def _value_to_show(setting: Field, request: Request, defaults: Request | None) -> str | bool:
    if setting.value_type is bool:
        return bool(setting.value_in(request))
    text = setting.text(request)
    has_default = defaults is not None and setting.widget in _WITH_DEFAULTS
    if (
        not has_default
        or text != setting.text(defaults)
        or setting.name in ("model", "determinism")
    ):
        return text
    return AUTO if setting.has_auto else ""


def offered(studio: Studio, model: str | None, language: str) -> dict[str, Any]:
    """Return lists as [label, value] pairs, defaults of unset fields, suggested words and sizes."""
    card, defaults = studio.card(model or None), defaults_of(studio, model or None)
    local_choices = {"model": _models(studio.card().ref.id), "device": _devices(studio)}
    vocabulary = card.vocabulary
    hints = {
        kind: [vocabulary.called(word, language) if vocabulary else word for word in words]
        for kind, words in card.hints.items()
    }
    lists: dict[str, Any] = {}
    for setting in ON_PAGE:
        if setting.widget != "choice":
            continue
        names = setting.choices(card) if setting.choices else local_choices[setting.name]
        pairs = [[say(f"{setting.name}_choice_{name}", language) or name, name] for name in names]
        if setting.has_auto:
            auto = say("choice_auto", language)
            pairs = [[f"{auto} ({setting.text(defaults)})", AUTO], *pairs]
        lists[setting.name] = pairs
    return {
        "lists": lists,
        "chosen": {"model": card.ref.id},
        "open": {each.name: each.text(defaults) for each in ON_PAGE if each.widget == "number"},
        "hints": hints,
        "shapes": [vars(shape) | {"size": shape.text} for shape in shapes(card)],
    }


def defaults_of(studio: Studio, model: str | None) -> Request:
    """Return the model's defaults as a request."""
    request = Request(prompt="a picture", seeds=(0,), model=model)
    return ask_again(studio.resolve(request)[0])


def _models(own: str) -> tuple[str, ...]:
    """Return the names of the models to choose from; on a public page those that it offers."""
    from seedgrid.models import registry

    installed = (model.id for model in registry.installed())
    return tuple(dict.fromkeys([own, *filter(is_offered, installed)]))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.placement.device]
    if "torch" in sys.modules and studio.engine.warmth.state == "ready":
        from seedgrid.diffusion.loading import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))
