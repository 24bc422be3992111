"""Variations of a picture with its own seed: other words, or other settings, written in one line.

A line may begin with settings: names of fields that may vary (`varies` in core/field.py), each with
a value of its form. The rest of the line, with the comma before it, is appended to the prompt. A
variation may also be steered: it takes its parent's latents, in the first steps or outside a region
(painted by `diffusion/steering.py`).

    >>> read_variation("guidance 3").settings
    {'guidance': 3.0}
    >>> read_variation("steps 8, artsy").words
    ', artsy'
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from seedgrid.core.card import ModelCard, Vocabulary
from seedgrid.core.checks import check_count, check_prompt, check_seed
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.field import NAME, NUMBER, Field
from seedgrid.core.fields import FIELDS, field
from seedgrid.core.prompts import (
    GUIDE_SUFFIXES,
    alternatives,
    append,
    read_tags,
    read_weights,
    rescaled,
    says_something,
)
from seedgrid.core.recipe import (
    MAX_FEATHER_PX,
    MAX_GUIDANCE,
    MAX_PARENTS,
    MAX_STEPS,
    NoiseShare,
    Recipe,
    canonical_json,
)
from seedgrid.core.request import ask_again, portable_settings, start_settings

MAX_HOLD: Final = 0.8
MIN_STEPS: Final = 4  # With fewer steps there is no first part that decides the composition

# The attributes of a recipe that follows no parent
WITHOUT_PARENT: Final[dict[str, Any]] = {"parent": None, "held_steps": 0, "mask": "", "feather": 0}
_FEATHER_DIVISOR: Final = 16
_MAX_BYTES: Final = 128 * 1024  # Of a recipe with its parents: half of what a PNG's texts may take

SUBTLE: Final = 0.1  # `NoiseShare.weight` of a subtle variation
STRONG: Final = 0.4  # Of a strong one, which differs about half as much as another seed's picture

CardOf = Callable[[str | None], ModelCard]  # Returns the card of a model by its name

_NAMED: Final = re.compile(r"([a-z]++)(\s*+[:=]\s*+|\s++)(?=\S)", re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"\s*+[,;]\s*+")
_HOLD: Final = Field("hold", value_type=float, high=MAX_HOLD, varies=NUMBER)
"""The share of the steps that a variation takes from its parent; `Request` has no `hold`."""
_VARYING: Final = {setting.name: setting for setting in (*FIELDS, _HOLD) if setting.varies}
_FACTORS: Final = (0.5, 0.75, 1.5, 2)  # Suggested values, relative to the parent's
_LORA_SCALES: Final = (0, 0.5, 1, 1.5)


@dataclass(frozen=True, kw_only=True)
class Region:
    """The part of a picture that is painted; see `Recipe.mask` and `Recipe.feather`."""

    mask: str
    feather: int


@dataclass(frozen=True, kw_only=True)
class Variation:
    """What one line of text changes in a recipe."""

    words: str  # Appended to the prompt; may be empty
    settings: Mapping[str, Any]  # Values by the names of their fields
    hold: float | None = None  # The share of steps that are the parent's, if the line sets it


def read_variation(text: str) -> Variation:
    """Read one line; raise `vary_noise`, or as `Field.read_typed` and `check_prompt`."""
    rest, settings = check_prompt(text, field="vary").strip(), {}
    while (found := _leading_setting(rest)) is not None:
        setting, value, after = found
        if setting.decides_noise:
            raise InputError("vary_noise", field="vary", name=setting.name)
        settings[setting.name] = setting.read_typed(value)
        separator = _SEPARATOR.match(after)
        following = after[separator.end() :] if separator else after
        rest = following if _leading_setting(following) is not None else after
    hold = settings.pop(_HOLD.name, None)
    return Variation(words=rest if says_something(rest) else "", settings=settings, hold=hold)


def words_of(text: str) -> str:
    """Return the words that a line appends to the prompt; empty if the line is invalid."""
    try:
        return read_variation(text).words
    except InputError:
        return ""


def _leading_setting(text: str) -> tuple[Field, str, str] | None:
    """Return the setting that a text begins with: its field, its value, and what follows."""
    named = _NAMED.match(text)
    name = named[1].lower() if named else ""
    setting = _VARYING.get(name) or _VARYING.get(f"{name}s")  # Also in the singular: `step 8`
    if named is None or setting is None or setting.varies is None:
        return None
    has_colon = bool(named[2].strip())
    if setting.widget == "words" and not has_colon:  # "negative space" may be words of a prompt.
        return None
    value = setting.varies.match(text, named.end())
    after = text[value.end() :] if value else ""
    is_whole = value is not None and (not after.strip() or _SEPARATOR.match(after) is not None)
    if value is not None and is_whole:
        return setting, value[0].strip(), after
    return (setting, text[named.end() :], "") if has_colon else None


def fours(
    recipe: Recipe, schedulers: Sequence[str], models: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Suggest up to four lines of each kind; `models` must have latents of the recipe's shape."""
    steps = {round(factor * recipe.num_inference_steps) for factor in _FACTORS}
    guidances = {round(2 * factor * recipe.guidance_scale) / 2 for factor in _FACTORS}
    suggested = {
        "words": list(GUIDE_SUFFIXES) if recipe.prompt else [],
        "guidance": [f"guidance {g:g}" for g in sorted(guidances) if 0 < g <= MAX_GUIDANCE],
        "steps": [f"steps {s}" for s in sorted(steps) if 0 < s <= MAX_STEPS],
        "lora": [f"lora {scale:g}" for scale in _LORA_SCALES] if recipe.loras else [],
        "scheduler": [f"scheduler {name}" for name in schedulers[:4]] if recipe.prompt else [],
        # A name with a space needs the colon.
        "model": [f"model{'' if NAME.fullmatch(name) else ':'} {name}" for name in models[:4]],
    }
    return {name: lines for name, lines in suggested.items() if lines}


def refine(
    parent: Recipe,
    texts: Sequence[str],
    card_of: CardOf,
    *,
    prompt: str | None = None,
    vocabulary: Vocabulary | None = None,
    hold: float | None = None,
    region: Region | None = None,
) -> tuple[Recipe, ...]:
    """Vary a recipe line by line; everything else, above all the seed, stays the same.

    Each text makes one recipe, or one for each choice in its braces; a blank one makes none. Words
    are appended to `prompt`, by default the parent's. `card_of` is called only for lines with
    settings; the model's `vocabulary` translates words of other languages. `hold` and `region` are
    those of `steer`; a line may set another hold.

    Raise `variations_empty`, or for a wrong prompt, value or model.

    Source: https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    opened = (line for text in texts for line in alternatives(text, field="vary"))
    lines = [line for line in opened if says_something(line)]
    if not lines:
        raise InputError("variations_empty", field="vary")
    check_count(len(lines), field="vary")
    paint = vocabulary.painted if vocabulary else str
    base, typed = parent.prompt, parent.words
    if prompt is not None:
        typed = check_prompt(prompt, field="prompt")
        base = paint(typed)
    recipes = []
    try:
        for each in map(read_variation, lines):
            prompts = (append(base, paint(each.words)), append(typed, each.words))
            varied = _varied(parent, prompts, each, card_of, has_prompt=bool(base.strip()))
            held = hold if each.hold is None else each.hold
            recipes.append(steer(parent, varied, hold=held, region=region))
        return tuple(recipes)
    except InputError as error:
        if error.code != "prompt_empty":
            error.field = "vary"  # The page shows the error where the line was typed.
        raise


def _varied(
    parent: Recipe,
    prompts: tuple[str, str],
    variation: Variation,
    card_of: CardOf,
    *,
    has_prompt: bool,
) -> Recipe:
    """Return a recipe with a line's settings and with `prompts`, as painted and as typed."""
    has_settings = bool(variation.settings) or variation.hold is not None
    if not has_prompt and (variation.words or not has_settings):
        raise InputError("prompt_empty", field="prompt")
    update = _checked(parent, variation.settings, card_of) if variation.settings else {}
    prompt, typed = (check_prompt(each, field="vary") for each in prompts)
    texts: dict[str, Any] = {"typed_prompt": read_tags(typed)[0] if typed != prompt else ""}
    texts["prompt"], tags = read_tags(prompt)
    for name, scale in tags:  # As `lora NAME SCALE`: a LoRA of the parent, at another scale.
        update["loras"] = rescaled(update.get("loras", parent.loras), f"{name} {scale}")
    varied = parent.model_copy(update=texts | update)
    if varied.weights:  # Called only to raise `weight_range` for wrong weights.
        read_weights(varied.prompt)
        read_weights(varied.negative_prompt)
    return varied


def _checked(parent: Recipe, settings: Mapping[str, Any], card_of: CardOf) -> dict[str, Any]:
    """Return the changed attributes of a recipe, checked against the card of its model."""
    before = ask_again(parent)
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        changes |= field(name).as_attributes(value)
    if "loras" in changes:
        changes["loras"] = rescaled(parent.loras, changes["loras"])
    card = card_of(changes.get("model", before.model))
    request = replace(before, **changes)
    to_check = [setting for setting in FIELDS if not changes.keys().isdisjoint(setting.attributes)]
    checked: dict[str, Any] = {"loras": request.loras}
    if "model" in changes:
        if card_of(before.model).latent != card.latent:  # The seed would give other noise.
            raise ModelError("vary_model", value=card.ref.id)
        if request.scheduler not in card.schedulers and "scheduler" not in changes:
            request = replace(request, scheduler=card.scheduler)
        to_check = [setting for setting in FIELDS if setting.name not in ("prompt", "typed")]
        checked["model"] = card.ref
    for setting in to_check:
        checked |= setting.checked(request, card)
    if not changes.keys().isdisjoint(("strength", "num_inference_steps", "model")):
        settings = {"start": parent.start, "strength": parent.strength} | {
            "num_inference_steps": parent.num_inference_steps,
            **checked,
        }
        checked |= start_settings(request, settings, card)
    if request.portable:
        portable_settings(request)  # Raises if the number format is not float32.
    return checked


def steer(
    before: Recipe, after: Recipe, *, hold: float | None = None, region: Region | None = None
) -> Recipe:
    """Return the variation `after` with the parent whose denoising trajectory it follows.

    `hold` is the share of the steps, from the first on, whose latents are those of `before`, 0 to
    `MAX_HOLD`; a `region` limits what is painted. Without either, `after` is not changed, except
    that a `hold` of 0 ends the hold of `before`.

    Raise `hold_range`, `hold_steps`, `way_deep`, or `way_settings`: `after` differs from its parent
    in a setting that both must share.
    """
    held_steps = _held_steps(after, hold) if hold else 0
    if hold == 0 and not before.mask:
        after = after.model_copy(update=WITHOUT_PARENT)
    if held_steps or region:
        follows_same = not (region or before.mask) and before.held_steps >= held_steps
        changes = WITHOUT_PARENT | {"parent": before.parent if follows_same else before}
        changes["held_steps"] = held_steps
        if region:
            changes |= {"mask": region.mask, "feather": region.feather}
        after = after.model_copy(update=changes)
    if after.parent is not None:
        if name := after.unlike(after.parent).removeprefix("num_inference_"):
            raise InputError("way_settings", field="vary", name=name.replace("_", " "))
        num_parents = len(before.line) - 1
        if len(after.line) > MAX_PARENTS + 1 or len(canonical_json(after).encode()) > _MAX_BYTES:
            raise InputError("way_deep", field="vary", limit=num_parents)
    return after


def held_share(recipe: Recipe) -> float:
    """Return the share of held steps, from which `_held_steps` gets the same number of steps."""
    return min(MAX_HOLD, recipe.held_steps / _steps_run(recipe))


def _steps_run(recipe: Recipe) -> int:
    """Estimate how many steps are run: image-to-image runs the share `strength` of them."""
    return max(1, int(recipe.num_inference_steps * recipe.strength))


def _held_steps(recipe: Recipe, hold: float) -> int:
    """Return how many of the steps that are run are held."""
    if not 0 <= hold <= MAX_HOLD:
        raise InputError("hold_range", field="hold", value=hold)
    steps = _steps_run(recipe)
    if steps < MIN_STEPS:
        raise InputError("hold_steps", field="hold", value=steps, limit=MIN_STEPS)
    return max(1, round(hold * steps))


def check_feather(feather: int | None, recipe: Recipe) -> int:
    """Return a feather in pixels; by default a sixteenth of the shorter side."""
    if feather is None:
        return min(recipe.width, recipe.height) // _FEATHER_DIVISOR
    if not 0 <= feather <= MAX_FEATHER_PX:
        raise InputError("feather_range", field="feather", value=feather, limit=MAX_FEATHER_PX)
    return feather


def with_share(recipe: Recipe, share: NoiseShare) -> Recipe:
    """Return a recipe, and its parents, with another seed's noise mixed in."""
    parent = with_share(recipe.parent, share) if recipe.parent else None
    return recipe.replace(noise_mix=(*recipe.noise_mix, share), parent=parent)


def noise_variations(parent: Recipe, seeds: Sequence[int], *, weight: float) -> tuple[Recipe, ...]:
    """Return recipes with the noise of each seed mixed in, after the parent's own mix.

    `weight` is above 0 and at most 1, for example `SUBTLE` or `STRONG`.
    """
    return tuple(
        with_share(parent, NoiseShare(seed=check_seed(seed), weight=weight)) for seed in seeds
    )
