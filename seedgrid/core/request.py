"""Request: what was typed. `resolve` makes recipes of it and of the model's card.

A request may leave almost everything open; a recipe leaves nothing open. This is the one place
where defaults are filled in and where what was typed is checked (checks.py), for the page, the
command line and Python alike.

    resolve(Request(prompt="a red fox", seeds=(0, 1, 2, 3)), card)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_kept_width, check_prompt, check_steps_run
from seedgrid.core.errors import InputError
from seedgrid.core.fields import FIELDS
from seedgrid.core.recipe import Lora, NoiseShare, Recipe, Upscaler
from seedgrid.core.seeds import check_seed
from seedgrid.core.weights import read_weights

SUBTLE: Final = 0.1
"""How far a subtle neighbour lies from its parent's noise, on the sphere towards the other."""

STRONG: Final = 0.4
"""How far a strong neighbour lies: about half as far from its parent as another seed's picture."""

_SAID_OTHERWISE: Final = {"model", "start", "strength"}
"""What a request and a recipe both have, but each in a form of its own."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for; None means "as the model's card says".

    Attributes:
        seeds: One picture for each.
        typed_prompt: What was typed, where `prompt` is what is painted for it; as a recipe holds
            it. Empty otherwise: then the model's own names for what was typed are painted.
        start: The SHA-256 of the pixels to begin from; a studio also takes the id of a picture.
        strength: How much of the start the noise takes away.
        portable: Whether the pictures shall have the same bits on every machine; in float32.
        model: Which model, as `seedgrid.models.registry.find` understands it; None is the default.
        weights: Whether brackets in its prompts weigh words, as in `(red:1.3)`.
        upscaler: As a recipe holds it; nobody types it.
        of_recipe: Whether its values were a recipe's, as a link's are: lock widths that are not
            offered any more are painted as they are.
    """

    prompt: str
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    negative_prompt: str = ""
    model: str | None = None
    width: int | None = None
    height: int | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    scheduler: str | None = None
    dtype: str | None = None
    lock_width: int | None = None
    determinism: str | None = None
    loras: tuple[Lora, ...] = ()
    noise_mix: tuple[NoiseShare, ...] = ()
    portable: bool = False
    typed_prompt: str = ""
    start: str | None = None
    strength: float | None = None
    weights: bool = False
    upscaler: Upscaler | None = None
    of_recipe: bool = False


def resolve(request: Request, card: ModelCard) -> tuple[Recipe, ...]:
    """Turn a request into one complete recipe for each of its seeds.

    Raises:
        InputError: The first thing that cannot be, by field, with the value and what to do.
    """
    kept = check_kept_width(request.lock_width) if request.of_recipe else {}
    settings = {
        name: value
        for row in FIELDS
        if row.check is not None and not kept.keys() & set(row.fills)
        for name, value in row.filled(row.check(row.of(request), card)).items()
    } | kept
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
    """Return the steps, more where a start leaves some out: as many are run as without one.

    Raises:
        InputError: `strength_start`: there is no start; `strength_small`: no step would be run.
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
    """Return what portable pictures are computed in: float32, into which half precision is read."""
    if request.dtype not in (None, "float32"):
        raise InputError("portable_dtype", field="dtype", value=request.dtype)
    return {"arithmetic": "portable-1", "dtype": "float32"}


def _painted(typed: str, card: ModelCard) -> dict[str, str]:
    """What is painted for what was typed; the second of the two only where they differ."""
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
        of_recipe=True,
        **{name: getattr(recipe, name) for name in shared - _SAID_OTHERWISE},
    )


def noise_variations(parent: Recipe, seeds: Sequence[int], *, weight: float) -> tuple[Recipe, ...]:
    """Go a little way from a recipe's noise towards that of other seeds; all else stays.

    Args:
        parent: Its own mix stays in front.
        seeds: One recipe for each.
        weight: How far to go, `SUBTLE` or `STRONG` for example; above 0 and at most 1.
    """
    return tuple(
        parent.replace(
            noise_mix=(*parent.noise_mix, NoiseShare(seed=check_seed(seed), weight=weight))
        )
        for seed in seeds
    )
