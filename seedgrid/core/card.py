"""ModelCard: what a model is and can do, known without loading it.

It answers what a request leaves open, and says which values the model can paint with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from seedgrid.core.prompts import FURTHER_SUFFIXES, GUIDE_SUFFIXES
from seedgrid.core.recipe import LOCK_WIDTH, MAX_SIZE_PX, MAX_STEPS, MIN_SIZE_PX, DType, ModelRef


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model is and can do.

    Attributes:
        family: The pipeline class, for example `"StableDiffusionPipeline"`.
        has_prompt: False for unconditional pipelines (DDPM, DDIM): their prompt is empty.
        has_negative_prompt: Whether a negative prompt reaches the picture.
        size_multiple: Width and height must be multiples of this many pixels.
        fixed_size: True when only `width` x `height` can be painted.
        latent: Of the noise that a picture begins from: its channels, and how many pixels of the
            picture one of its pixels is wide.
        max_steps: The most steps that the model's noise schedule allows.
        fewest_steps: The fewest that a scheduler takes, by its name, where that is more than one.
        schedulers: The names on offer with this model, the model's own first.
        lock_width: The model's usual one; where a probe found a leak here, the studio takes less,
            and says so.
        decoding_bytes: Memory that decoding takes at its peak, about, for a pixel of the picture.
        enlarges: Whether it also paints well larger than what it was made for, over an enlargement.
        upscaler: The network that was made for its pictures, by name; empty where none was.
        has_weights: Whether words can be weighed, as in `(red:1.3)`.
        has_start: Whether a picture can be begun from another one.
        strength_shortens: Whether a start leaves its strength's share of the steps to be run; LCM
            runs them all.
        hints: Words the model knows, by kind, for the page; empty when nobody said.
        vocabulary: The words it declares to know; None when nobody said.
        suffixes: Four variations at which the model shines, for the page; empty means the guide's.
        fragile: True for pipelines that only the same hardware and versions reproduce (UnCLIP).
    """

    ref: ModelRef
    family: str
    has_prompt: bool = True
    has_negative_prompt: bool = True
    width: int
    height: int
    size_multiple: int = 8
    fixed_size: bool = False
    latent: tuple[int, int] = (4, 8)
    num_inference_steps: int = 25
    max_steps: int = MAX_STEPS
    fewest_steps: Mapping[str, int] = field(default_factory=dict)
    guidance_scale: float = 7.5
    scheduler: str
    schedulers: tuple[str, ...]
    dtype: DType = "float32"
    lock_width: int = LOCK_WIDTH
    decoding_bytes: int = 0
    enlarges: bool = True
    upscaler: str = ""
    has_start: bool = False
    strength_shortens: bool = True
    has_weights: bool = False
    hints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None
    suffixes: tuple[str, ...] = ()
    fragile: bool = False

    def usual_steps(self, scheduler: str) -> int:
        """Return the steps that are taken where nobody said how many."""
        return max(self.num_inference_steps, self.fewest_steps.get(scheduler, 1))

    def steps_begun(self, num_run: int, strength: float) -> int:
        """Return of how many steps so many are run from a start; no more than there can be."""
        steps = math.ceil(num_run / strength) if self.strength_shortens else num_run
        return min(steps, MAX_STEPS, self.max_steps)

    @property
    def offers(self) -> tuple[str, ...]:
        """Suffixes for one round after another, the best first: its own, then the guide's.

        Of the details that it knows, those of several words come first (`at sunset`): a bare
        colour says little at the end of a prompt.
        """
        words = self.hints.get("modifiers", ()) + tuple(
            sorted(self.hints.get("attributes", ()), key=lambda word: " " not in word)
        )
        further = () if words else FURTHER_SUFFIXES
        own = (*self.suffixes, *(f", {word}" for word in words))
        return tuple(dict.fromkeys((*own, *GUIDE_SUFFIXES, *further)))


_SMALL: Final = frozenset(
    word
    for line in (
        "a an the one of in on at by to as and or with for without over under above below near is",
        "behind beside between through into from are this that its his her my our very some two",
    )
    for word in line.split()
)
"""Small words of English, of which nobody expects a picture."""

_WORD: Final = re.compile(r"[^\W_]+")
_WIDE: Final = str.maketrans(
    {"，": ", ", "、": ", ", "。": ". ", "；": "; ", "：": ": ", "\u3000": " "}
)
_MAX_UNKNOWN: Final = 8


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What a model declares of words.

    Attributes:
        known: Single words in small letters, English.
        names: What something is called in other languages, and the model's own words for it;
            empty words for what says nothing in a prompt, such as a particle.
        shown: By language and the model's own words: the name under which they are offered.
    """

    known: frozenset[str]
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the words that the model does not know, as they were written, each once."""
        words = {word.casefold(): word for word in reversed(_WORD.findall(self.painted(text)))}
        strange = [word for low, word in words.items() if not self._knows(low)]
        return tuple(reversed(strange))[:_MAX_UNKNOWN]

    def painted(self, text: str) -> str:
        """Return the words that are painted for what was typed.

        Where no name of another language stands in it, the text is left as it is, every character.
        """
        found = text
        for name in self.names:
            if " " in name:
                found = found.replace(name, f" {self.names[name]} ")
        parts = re.split(r"([^\W_]+)", found.translate(_WIDE))
        found = "".join(part if part.isascii() else self._translated(part) for part in parts)
        if found == text.translate(_WIDE):
            return text
        return re.sub(r" ([,.;:!?])", r"\1", " ".join(found.split()))

    def _translated(self, word: str) -> str:
        """Return a word's names as the model's own words; what is left of it stays as it is.

        Korean has spaces between words: one that is more than known names is another word.
        """
        is_korean = any("\uac00" <= letter <= "\ud7a3" for letter in word)
        pieces: list[str] = []
        at = 0
        while at < len(word):
            names = self._by_letter.get(word[at], ())
            name = next((name for name in names if word.startswith(name, at)), None)
            if name is None and is_korean:
                return word
            pieces.append(word[at] if name is None else f" {self.names[name]} ")
            at += len(name or word[at])
        return "".join(pieces)

    @cached_property
    def _by_letter(self) -> dict[str, list[str]]:
        """The names by their first letter, the longest first."""
        found: dict[str, list[str]] = {}
        for name in sorted(self.names, key=len, reverse=True):
            found.setdefault(name[:1], []).append(name)
        return found

    def called(self, words: str, language: str) -> str:
        """Return the name of the model's own words in a language; themselves where it has none."""
        return self.shown.get(language, {}).get(words, words)

    def _knows(self, word: str) -> bool:
        return word in self.known or word in _SMALL or word.isdecimal()


RATIOS: Final = ((1, 1), (3, 2), (2, 3), (16, 9), (9, 16))
"""Width to height."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A size to click.

    Attributes:
        ratio: As people say it, `"3:2"`; empty for the model's own where it is none of these.
        width: In pixels.
        height: In pixels.
        is_own: Whether the model was made for this size.
    """

    ratio: str
    width: int
    height: int
    is_own: bool

    @property
    def text(self) -> str:
        """As the size's field has it."""
        return f"{self.width}x{self.height}"


def shapes(card: ModelCard) -> tuple[Shape, ...]:
    """Return the shapes that a model can paint, its own first, and no other if that is fixed."""
    own = (card.width, card.height)
    name = next((_name(ratio) for ratio in RATIOS if ratio[0] * own[1] == ratio[1] * own[0]), "")
    found = {own: Shape(ratio=name, width=own[0], height=own[1], is_own=True)}
    for ratio in () if card.fixed_size else RATIOS:
        size = _fitted(ratio, card)
        if _name(ratio) != name and size not in found:
            found[size] = Shape(ratio=_name(ratio), width=size[0], height=size[1], is_own=False)
    return tuple(found.values())


def _fitted(ratio: tuple[int, int], card: ModelCard) -> tuple[int, int]:
    """Return the size of a ratio with about as many pixels as the model's own."""
    unit = math.sqrt(card.width * card.height / (ratio[0] * ratio[1]))
    unit = min(unit, MAX_SIZE_PX / max(ratio))
    width, height = (rounded_side(side * unit, card.size_multiple) for side in ratio)
    return width, height


def rounded_side(side: float, multiple: int) -> int:
    """Return the next side that a model takes, within what a recipe may have."""
    low = math.ceil(MIN_SIZE_PX / multiple)
    return min(max(round(side / multiple), low), MAX_SIZE_PX // multiple) * multiple


def _name(ratio: tuple[int, int]) -> str:
    return f"{ratio[0]}:{ratio[1]}"
