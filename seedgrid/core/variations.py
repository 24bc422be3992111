"""Variations of a picture on its own seed: other words, or other settings, written in one line.

A line that begins with the name of a field that may vary (`varies` in core/field.py) and a value of
its form is a setting. The text behind its comma, and every other line, is words for the end of the
prompt. A line that begins with punctuation is always words.

    >>> read_variation("guidance 3").settings
    {'guidance': 3.0}
    >>> read_variation("steps 8, artsy").words
    ', artsy'
    >>> read_variation(", steps of stone").settings
    {}
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from seedgrid.core.card import ModelCard, Vocabulary
from seedgrid.core.checks import check_prompt
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.field import NAME, NUMBER, Field
from seedgrid.core.fields import FIELDS, field
from seedgrid.core.prompts import (
    GUIDE_SUFFIXES,
    alternatives,
    append,
    read_tags,
    rescaled,
    says_something,
)
from seedgrid.core.recipe import MAX_GUIDANCE, MAX_STEPS, Recipe
from seedgrid.core.request import ask_again, portable_settings, start_settings
from seedgrid.core.way import MAX_HOLD, Region, steer

CardOf = Callable[[str | None], ModelCard]  # Returns the card of a model by its name

_NAMED: Final = re.compile(r"([a-z]++)(\s*+[:=]\s*+|\s++)(?=\S)", re.IGNORECASE)
_PART: Final = re.compile(r"\s*+[,;]\s*+")
_HOLD: Final = Field("hold", value_type=float, high=MAX_HOLD, varies=NUMBER)
"""A variation's share of steps that are the parent's; a request has no such field."""
_ROWS: Final = {row.name: row for row in (*FIELDS, _HOLD) if row.varies}
_SHARES: Final = (0.5, 0.75, 1.5, 2)  # Factors for the parent's own value
_LORA_SCALES: Final = (0, 0.5, 1, 1.5)


@dataclass(frozen=True, kw_only=True)
class Variation:
    """What one line changes."""

    words: str  # Appended to the prompt; may be empty
    settings: Mapping[str, Any]  # Values by the names of their fields
    hold: float | None = None  # The share of steps that are the parent's, if the line says it

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The attributes of a request that its settings set."""
        changes: dict[str, Any] = {}
        for name, value in self.settings.items():
            changes |= field(name).filled(value)
        return changes


def read_variation(text: str) -> Variation:
    """Read one line; raise `vary_noise`, or as `Field.value` or `check_prompt`."""
    rest, settings = check_prompt(text, field="vary").strip(), {}
    while (taken := _taken(rest)) is not None:
        row, value, after = taken
        if row.decides_noise:
            raise InputError("vary_noise", field="vary", name=row.name)
        settings[row.name] = row.value(value)
        part = _PART.match(after)
        following = after[part.end() :] if part else after
        rest = following if _taken(following) is not None else after
    hold = settings.pop(_HOLD.name, None)
    return Variation(words=rest if says_something(rest) else "", settings=settings, hold=hold)


def words_of(text: str) -> str:
    """Return the words that a line appends to the prompt; none if it cannot be read."""
    try:
        return read_variation(text).words
    except InputError:
        return ""


def _taken(text: str) -> tuple[Field, str, str] | None:
    """Return the setting that a text begins with: its field, its value, and what follows."""
    named = _NAMED.match(text)
    row = _row(named[1].lower()) if named else None
    if named is None or row is None or row.varies is None:
        return None
    has_colon = bool(named[2].strip())
    if row.widget == "words" and not has_colon:  # "negative space" may be words of a prompt.
        return None
    value = row.varies.match(text, named.end())
    after = text[value.end() :] if value else ""
    is_whole = value is not None and (not after.strip() or _PART.match(after) is not None)
    if value is not None and is_whole:
        return row, value[0].strip(), after
    return (row, text[named.end() :], "") if has_colon else None


def _row(name: str) -> Field | None:
    """Return the field of a name, also in the singular: `step 8`."""
    return _ROWS.get(name) or _ROWS.get(f"{name}s")


def fours(
    recipe: Recipe, schedulers: Sequence[str], models: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Suggest up to four variations of each setting; `models` have noise of the same shape."""
    steps = {round(share * recipe.num_inference_steps) for share in _SHARES}
    guidances = {round(2 * share * recipe.guidance_scale) / 2 for share in _SHARES}
    found = {
        "words": list(GUIDE_SUFFIXES) if recipe.prompt else [],
        "guidance": [f"guidance {g:g}" for g in sorted(guidances) if 0 < g <= MAX_GUIDANCE],
        "steps": [f"steps {s}" for s in sorted(steps) if 0 < s <= MAX_STEPS],
        "lora": [f"lora {scale:g}" for scale in _LORA_SCALES] if recipe.loras else [],
        "scheduler": [f"scheduler {name}" for name in schedulers[:4]] if recipe.prompt else [],
        "model": [_model_line(name) for name in models[:4]],
    }
    return {name: lines for name, lines in found.items() if lines}


def _model_line(name: str) -> str:
    """Return the line of a model; a name with a space needs the colon."""
    return f"model {name}" if NAME.fullmatch(name) else f"model: {name}"


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
    """Vary a recipe line by line and keep everything else, its seed above all.

    Each text that is not blank makes one recipe; its words are appended to `prompt`, by default the
    parent's. `card_of` is called only for lines with settings; the model's `vocabulary` translates
    words of other languages. `hold` is the share of the first steps that are the parent's, unless a
    line says another. Only `region` is painted, by default all of the picture.

    Raise `variations_empty`, or for a wrong prompt, value or model.

    Source: https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    opened = (line for text in texts for line in alternatives(text, field="vary"))
    lines = [line for line in opened if says_something(line)]
    if not lines:
        raise InputError("variations_empty", field="vary")
    painted = vocabulary.painted if vocabulary else str
    base, typed = parent.prompt, parent.words
    if prompt is not None:
        typed = check_prompt(prompt, field="prompt")
        base = painted(typed)
    try:
        found = []
        for variation in map(read_variation, lines):
            varied = _varied(parent, _Words(base, typed, painted), variation, card_of)
            held = hold if variation.hold is None else variation.hold
            found.append(steer(parent, varied, hold=held, region=region))
        return tuple(found)
    except InputError as error:
        if error.field != "prompt":
            error.field = "vary"  # There it was written, whatever it sets.
        raise


@dataclass(frozen=True)
class _Words:
    """The prompt that words are appended to: as it is painted, and as it was typed."""

    base: str
    typed: str
    painted: Callable[[str], str]

    def with_suffix(self, suffix: str) -> dict[str, str]:
        """Return both attributes of a recipe; the second only where they differ."""
        prompt = check_prompt(append(self.base, self.painted(suffix)), field="vary")
        typed = check_prompt(append(self.typed, suffix), field="vary")
        return {"prompt": prompt, "typed_prompt": typed if typed != prompt else ""}


def _varied(parent: Recipe, words: _Words, variation: Variation, card_of: CardOf) -> Recipe:
    has_settings = bool(variation.settings) or variation.hold is not None
    if not words.base.strip() and (variation.words or not has_settings):
        raise InputError("prompt_empty", field="prompt")
    update = _checked(parent, variation.changes, card_of) if variation.settings else {}
    texts = words.with_suffix(variation.words)
    texts["prompt"], tags = read_tags(texts["prompt"])
    texts["typed_prompt"], _ = read_tags(texts["typed_prompt"])
    for name, scale in tags:  # As `lora NAME SCALE`: a LoRA of the parent, at another scale.
        update["loras"] = rescaled(update.get("loras", parent.loras), f"{name} {scale}")
    return parent.model_copy(update=texts | update)


def _checked(parent: Recipe, changes: dict[str, Any], card_of: CardOf) -> dict[str, Any]:
    """Return the changed attributes of a recipe, checked against the card of its model."""
    before = ask_again(parent)
    if "loras" in changes:
        changes = changes | {"loras": rescaled(parent.loras, changes["loras"])}
    card = card_of(changes.get("model", before.model))
    request = replace(before, **changes)
    rows = [row for row in FIELDS if row.check and not changes.keys().isdisjoint(row.fills)]
    found: dict[str, Any] = {"loras": request.loras}
    if "model" in changes:
        _check_noise(card_of(before.model), card)
        if request.scheduler not in card.schedulers and "scheduler" not in changes:
            request = replace(request, scheduler=card.scheduler)
        rows = [row for row in FIELDS if row.check and row.name != "prompt"]
        found["model"] = card.ref
    for row in rows:
        if row.check:
            found |= row.filled(row.check(row.of(request), card))
    if not changes.keys().isdisjoint(("strength", "num_inference_steps", "model")):
        settings = {"start": parent.start, "strength": parent.strength} | {
            "num_inference_steps": parent.num_inference_steps,
            **found,
        }
        found |= start_settings(request, settings, card)
    if request.portable:
        portable_settings(request)  # Refuses half precision.
    return found


def _check_noise(before: ModelCard, after: ModelCard) -> None:
    """Refuse a model whose noise has another shape: the seed would give other noise."""
    if before.latent != after.latent:
        raise ModelError("vary_model", value=after.ref.id)
