"""Requests become recipes: `resolve` checks what was typed and fills in the model's defaults."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from seedgrid.core.card import ModelCard
from seedgrid.core.checks import check_prompt, check_seed, check_steps_run
from seedgrid.core.errors import InputError, Notice
from seedgrid.core.fields import FIELDS
from seedgrid.core.fields import Request as Request  # Other modules import it from here
from seedgrid.core.prompts import read_weights, without_tags
from seedgrid.core.recipe import Recipe


def resolve(request: Request, card: ModelCard) -> tuple[Recipe, ...]:
    """Turn a request into a recipe for each seed; raise InputError at the first wrong field."""
    settings: dict[str, Any] = {}
    for setting in FIELDS:
        settings |= setting.checked(request, card)
    if not request.typed_prompt:
        settings |= _painted(settings["prompt"], card)
    if request.portable:
        settings |= portable_settings(request)
    if settings["weights"]:  # Called only to raise `weight_range` for wrong weights.
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
    """Return the steps, and strength 1 without a start.

    With a start, default steps grow by those that are skipped. Raise `strength_start` for strength
    without a start, `strength_small` if no step would be run.
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
    """Return the prompt in the model's words, and the typed prompt if it differs."""
    painted = card.vocabulary.painted(typed) if card.vocabulary else typed
    check_prompt(painted, field="prompt")  # A translation may be longer.
    return {"prompt": painted, "typed_prompt": typed if painted != typed else ""}


def ask_again(recipe: Recipe) -> Request:
    """Return a request that resolves to this recipe, without relying on any default."""
    model = recipe.model
    shared = {field.name for field in fields(Request)} & set(Recipe.model_fields)
    return Request(
        seeds=(recipe.seed,),
        portable=recipe.is_portable,
        model=model.id if model.revision == "local" else f"{model.id}@{model.revision}",
        start=recipe.start or None,
        strength=recipe.strength if recipe.start else None,
        **{name: getattr(recipe, name) for name in shared - {"model", "start", "strength"}},
    )


ADVICE_CODES: Final = frozenset(
    {
        "words_unknown",
        "size_unusual",
        "steps_many",
        "negative_idle",
        "negative_unused",
        "weights_off",
    }
)

_MAX_SUBJECTS: Final = 10  # Subjects of the model that a notice lists
_SIDE_RATIOS: Final = (0.7, 1.6)  # To the model's mean side; beyond them objects repeat or break
_MAX_STRETCH: Final = 2.5  # Aspect ratio relative to the model's
_FEW_STEPS: Final = 4  # Models with at most so many default steps lose detail at twice as many
_WEIGHED: Final = re.compile(r"[()\[\]]|:[0-9.]{1,8}(?=\))")  # Brackets and their weights
_LOOKS_WEIGHED: Final = re.compile(r":[0-9.]{1,8}\)")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A notice about a field."""

    field: str  # The field's id (`core.fields`), or `"vary"`
    notice: Notice


def advise(
    request: Request,
    card: ModelCard,
    *,
    also: Sequence[str] = (),
    suffixes: Sequence[str] = (),
    language: str = "en",
) -> tuple[Advice, ...]:
    """Return the notices about a request before it is painted; they refuse nothing.

    They say which words of the prompt, the negative prompt, `also` (more prompts) and `suffixes`
    (words of variations) are unknown, that a size or a number of steps is unusual, and that a
    negative prompt or weights have no effect.
    """
    advice = [
        _words("prompt", " ".join([request.prompt, *also]), card, language),
        _words("vary", " ".join(suffixes), card, language),
        _words("negative", request.negative_prompt, card, language),
        _weights(request, card),
        _negative(request, card),
        _size(request, card),
        _steps(request, card),
    ]
    return tuple(each for each in advice if each is not None)


def _words(field: str, text: str, card: ModelCard, language: str) -> Advice | None:
    vocabulary = card.vocabulary
    unknown = vocabulary.unknown(_WEIGHED.sub(" ", without_tags(text))) if vocabulary else ()
    if vocabulary is None or not unknown:
        return None
    subjects = card.hints.get("subjects", ())
    things = ", ".join(vocabulary.called(each, language) for each in subjects[:_MAX_SUBJECTS])
    words = ", ".join(unknown)
    notice = Notice("words_unknown", words=words, number=len(subjects), things=things)
    return Advice(field=field, notice=notice)


def _weights(request: Request, card: ModelCard) -> Advice | None:
    """Say that brackets are read as words while weights are off."""
    if request.weights or not card.has_weights or not _LOOKS_WEIGHED.search(request.prompt):
        return None
    return Advice(field="prompt", notice=Notice("weights_off"))


def _negative(request: Request, card: ModelCard) -> Advice | None:
    """Say that a negative prompt has no effect: the model ignores it, or guidance is at most 1."""
    if not request.negative_prompt.strip():
        return None
    if not card.has_negative_prompt or not card.has_prompt:
        return Advice(field="negative", notice=Notice("negative_unused"))
    guidance = card.guidance_scale if request.guidance_scale is None else request.guidance_scale
    if guidance > 1:
        return None
    return Advice(field="negative", notice=Notice("negative_idle", value=f"{guidance:g}"))


def _size(request: Request, card: ModelCard) -> Advice | None:
    width, height = request.width or card.width, request.height or card.height
    if card.fixed_size or min(width, height) < 1:
        return None
    side = math.sqrt(width * height / (card.width * card.height))
    stretch = max(width / height, height / width) / max(
        card.width / card.height, card.height / card.width
    )
    if _SIDE_RATIOS[0] <= side <= _SIDE_RATIOS[1] and stretch <= _MAX_STRETCH:
        return None
    usual = f"{card.width}x{card.height}"
    notice = Notice("size_unusual", value=f"{width}x{height}", usual=usual)
    return Advice(field="size", notice=notice)


def _steps(request: Request, card: ModelCard) -> Advice | None:
    """Say that a model which was made for few steps is asked for many."""
    usual, steps = (
        card.usual_steps(request.scheduler or card.scheduler),
        request.num_inference_steps,
    )
    if usual > _FEW_STEPS or steps is None or steps < 2 * usual:
        return None
    return Advice(field="steps", notice=Notice("steps_many", value=steps, usual=usual))
