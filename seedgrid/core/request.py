"""Requests become recipes: `resolve` completes what was typed with the model's card.

A recipe leaves nothing open. This is the one place where defaults are filled in and where what was
typed is checked (checks.py).

    resolve(Request(prompt="a red fox", seeds=(0, 1, 2, 3)), card)
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_prompt, check_steps_run
from seedgrid.core.errors import InputError
from seedgrid.core.fields import FIELDS, Request
from seedgrid.core.prompts import read_weights
from seedgrid.core.recipe import NoiseShare, Recipe
from seedgrid.core.seeds import check_seed
from seedgrid.core.way import with_share

__all__ = [
    "STRONG",
    "SUBTLE",
    "Request",
    "ask_again",
    "noise_variations",
    "portable_settings",
    "resolve",
    "start_settings",
]

SUBTLE: Final = 0.1  # Weight of the other seed's noise in a subtle variation, on the sphere

STRONG: Final = 0.4  # The same in a strong variation: about half as far as another seed's picture

_OTHER_FORM: Final = {"model", "start", "strength"}  # Of another form in requests


def resolve(request: Request, card: ModelCard) -> tuple[Recipe, ...]:
    """Turn a request into a recipe for each seed; raise InputError at the first wrong field."""
    settings = {
        name: value
        for row in FIELDS
        if row.check is not None
        for name, value in row.filled(row.check(row.of(request), card)).items()
    }
    if not request.typed_prompt:
        settings |= _painted(settings["prompt"], card)
    if request.portable:
        settings |= portable_settings(request)
    if settings["weights"]:  # Both are read here once, for what cannot be.
        read_weights(settings["prompt"])
        read_weights(settings["negative_prompt"])
    settings |= start_settings(request, settings, card)
    base = Recipe(
        seed=0, model=card.ref, loras=request.loras, upscaler=request.upscaler, **settings
    )
    if not request.seeds:
        raise InputError("seed_text", field="seeds", value="")
    return tuple(base.model_copy(update={"seed": check_seed(seed)}) for seed in request.seeds)


def start_settings(
    request: Request, settings: Mapping[str, Any], card: ModelCard
) -> dict[str, Any]:
    """Return strength and steps; with a start more steps, so that as many are run.

    Raise `strength_start` without a start, `strength_small` if no step would be run.
    """
    start, strength = settings["start"], settings["strength"]
    steps = settings["num_inference_steps"]
    if request.num_inference_steps is None:
        steps = card.usual_steps(settings["scheduler"])
    if not start:
        if request.strength is not None:
            raise InputError("strength_start", field="strength", value=request.strength)
        return {"strength": 1.0, "num_inference_steps": steps}
    if request.num_inference_steps is None:
        steps = card.steps_begun(steps, strength)
    if card.strength_shortens:
        check_steps_run(steps, strength)
    return {"num_inference_steps": steps}


def portable_settings(request: Request) -> dict[str, str]:
    """Return the arithmetic and number format of portable pictures, float32."""
    if request.dtype not in (None, "float32"):
        raise InputError("portable_dtype", field="dtype", value=request.dtype)
    return {"arithmetic": "portable-1", "dtype": "float32"}


def _painted(typed: str, card: ModelCard) -> dict[str, str]:
    """Return the prompt that is painted, and the typed one where they differ."""
    painted = card.vocabulary.painted(typed) if card.vocabulary else typed
    check_prompt(painted, field="prompt")  # Words of another language may be longer in the model's.
    return {"prompt": painted, "typed_prompt": typed if painted != typed else ""}


def ask_again(recipe: Recipe) -> Request:
    """Return the request that resolves to a recipe: nothing is left open, the model is named."""
    model = recipe.model
    shared = {field.name for field in fields(Request)} & set(type(recipe).model_fields)
    return Request(
        seeds=(recipe.seed,),
        portable=recipe.is_portable,
        model=model.id if model.revision == "local" else f"{model.id}@{model.revision}",
        start=recipe.start or None,
        strength=recipe.strength if recipe.start else None,
        **{name: getattr(recipe, name) for name in shared - _OTHER_FORM},
    )


def noise_variations(parent: Recipe, seeds: Sequence[int], *, weight: float) -> tuple[Recipe, ...]:
    """Return recipes with the noise of each seed mixed in, after the parent's own mix.

    `weight` is above 0 and at most 1, for example `SUBTLE` or `STRONG`.
    """
    return tuple(
        with_share(parent, NoiseShare(seed=check_seed(seed), weight=weight)) for seed in seeds
    )
