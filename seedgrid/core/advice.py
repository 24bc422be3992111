"""Advice: notices about a request before it is painted. It refuses nothing.

It tells of unknown words, unusual sizes and settings without effect, each at its field. Page and
command line show the same notices.

    advise(Request(prompt="a spaceship"), card)
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import Notice
from seedgrid.core.prompts import without_tags
from seedgrid.core.request import Request
from seedgrid.core.variations import words_of

CODES: Final = frozenset(  # The codes of all advice
    {"words_unknown", "size_unusual", "negative_idle", "negative_unused", "weights_off"}
)

_SUBJECTS: Final = "subjects"
_NAMED: Final = 10
_FAR: Final = (0.7, 1.6)  # Ratio of the mean side to the model's; outside, pictures repeat or break
_LONG: Final = 2.5  # Times as long as wide
_WEIGHED: Final = re.compile(r"[()\[\]]|:[0-9.]{1,8}(?=\))")
"""Brackets, and numbers that close them."""
_LOOKS_WEIGHED: Final = re.compile(r":[0-9.]{1,8}\)")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A notice about a field."""

    field: str  # Which field it is about, by its id (`core.fields`), or `"vary"`
    notice: Notice


def advise(
    request: Request,
    card: ModelCard,
    *,
    also: Sequence[str] = (),
    suffixes: Sequence[str] = (),
    language: str = "en",
) -> tuple[Advice, ...]:
    """Return the notices about a request and its variations' `suffixes`."""
    advice = [
        _words("prompt", " ".join([request.prompt, *also]), card, language),
        _words("vary", " ".join(map(words_of, suffixes)), card, language),
        _words("negative", request.negative_prompt, card, language),
        _weights(request, card),
        _negative(request, card),
        _size(request, card),
    ]
    return tuple(each for each in advice if each is not None)


def _words(field: str, text: str, card: ModelCard, language: str) -> Advice | None:
    vocabulary = card.vocabulary
    unknown = vocabulary.unknown(_WEIGHED.sub(" ", without_tags(text))) if vocabulary else ()
    if vocabulary is None or not unknown:
        return None
    subjects = card.hints.get(_SUBJECTS, ())
    things = ", ".join(vocabulary.called(each, language) for each in subjects[:_NAMED])
    words = ", ".join(unknown)
    notice = Notice("words_unknown", words=words, number=len(subjects), things=things)
    return Advice(field=field, notice=notice)


def _weights(request: Request, card: ModelCard) -> Advice | None:
    """Say that brackets are read as words while weights are off."""
    if request.weights or not card.has_weights or not _LOOKS_WEIGHED.search(request.prompt):
        return None
    return Advice(field="prompt", notice=Notice("weights_off"))


def _negative(request: Request, card: ModelCard) -> Advice | None:
    """Say that a negative prompt has no effect: it needs guidance above 1."""
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
    if _FAR[0] <= side <= _FAR[1] and stretch <= _LONG:
        return None
    usual = f"{card.width}x{card.height}"
    notice = Notice("size_unusual", value=f"{width}x{height}", usual=usual)
    return Advice(field="size", notice=notice)
