"""Requests become recipes: lists and LoRAs are read, widths chosen, offers checked."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from seedgrid.core import request as requests
from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_count
from seedgrid.core.errors import InputError, Notice
from seedgrid.core.prompts import alternatives, names_list, read_tags
from seedgrid.core.recipe import Lora, Recipe
from seedgrid.core.request import Request
from seedgrid.core.variables import is_public
from seedgrid.diffusion.probe_results import advised_width
from seedgrid.models.loras import LORAS, find_lora
from seedgrid.models.shelf import UPSCALERS

MAX_LIST_KB: Final = 64


def resolve_prompts(
    request: Request, prompts: Sequence[str], card: ModelCard
) -> tuple[Recipe, ...]:
    """Turn a request into recipes, each prompt on every seed; raise for a wrong field or LoRA.

    An open width becomes one at which no probe found a leak here.
    """
    found: dict[str, Lora] = {}
    chosen = dict.fromkeys(one for prompt in prompts for one in alternatives(prompt))
    check_count(len(chosen) * len(request.seeds), field="prompt")
    requested = [_with_loras(replace(request, prompt=prompt), found) for prompt in chosen]
    recipes = tuple(recipe for one in requested for recipe in requests.resolve(one, card))
    if request.lock_width is not None:
        return recipes
    return tuple(provable(recipe) for recipe in recipes)


def list_lines(folder: Path | None, field: str, name: str) -> list[str]:
    """Return the lines of a word list; empty ones and those with `#` in front are left out.

    A line may hold braces, weights and LoRAs; `folder` is None where there are no lists. Raise
    `list_unknown`, `list_public` or `list_file`.
    """
    if folder is None:
        raise InputError("list_public", field=field, value=name)
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise InputError("list_unknown", field=field, value=name, path=path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_LIST_KB * 1000 + 1)
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        data, lines = b"", []
    choices = [line for line in lines if line and not line.startswith("#")]
    if not choices or len(data) > MAX_LIST_KB * 1000 or any(map(names_list, choices)):
        raise InputError("list_file", field=field, value=name, path=path, limit=MAX_LIST_KB)
    return [each for line in choices for each in alternatives(line)]


def provable(recipe: Recipe) -> Recipe:
    """Return the recipe at a smaller width, where a probe found a leak at its own.

    Portable pictures do not depend on the width, so their recipe is the same on every machine.
    """
    if recipe.is_portable:
        return recipe
    width = advised_width(recipe.model.weights_sha256, recipe.dtype, recipe.lock_width)
    return recipe.model_copy(update={"lock_width": width})


def check_offered(recipes: Collection[Recipe], card: Callable[[str | None], ModelCard]) -> None:
    """Refuse recipes with models, LoRAs or networks that a public page does not offer.

    `card` reads a model's card by name, and refuses too. Raise `model_not_offered`,
    `lora_not_offered` or `upscaler_not_offered`.
    """
    if not is_public():
        return
    recipes = [each for recipe in recipes for each in recipe.line]
    for model in {requests.ask_again(recipe).model for recipe in recipes}:
        card(model)
    for upscaler in {recipe.upscaler for recipe in recipes if recipe.upscaler}:
        UPSCALERS.check_offered(upscaler.id)
    for name in {lora.id for recipe in recipes for lora in recipe.loras}:
        LORAS.check_offered(name)


def width_notices(recipes: Sequence[Recipe], usual: int) -> tuple[Notice, ...]:
    """Return a notice for each width below the usual one."""
    widths = {recipe.lock_width for recipe in recipes if recipe.lock_width < usual}
    return tuple(Notice("width_lowered", width=width, usual=usual) for width in sorted(widths))


def _with_loras(request: Request, found: dict[str, Lora]) -> Request:
    """Return the request with its prompt's LoRAs, as in `<lora:fox:0.8>`, kept in `found`."""
    prompt, tags = read_tags(request.prompt)
    for name, _ in tags:
        if name not in found:
            found[name] = find_lora(name)
    named = (found[name].model_copy(update={"scale": scale}) for name, scale in tags)
    return replace(request, prompt=prompt, loras=(*request.loras, *named))
