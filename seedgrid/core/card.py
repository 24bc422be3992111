"""ModelCard: what a model is and can do, and its defaults, known without loading it."""

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
    """What a model is and can do; the comments below call the model "it"."""

    ref: ModelRef
    family: str  # The pipeline class, for example `"StableDiffusionPipeline"`
    has_prompt: bool = True  # False for unconditional pipelines (DDPM, DDIM): their prompt is empty
    has_negative_prompt: bool = True  # Whether the model uses a negative prompt
    width: int
    height: int
    size_multiple: int = 8  # Width and height must be multiples of this many pixels
    fixed_size: bool = False  # True when only `width` x `height` can be painted
    latent: tuple[int, int] = (4, 8)  # Channels; how many pixels wide one latent pixel is
    num_inference_steps: int = 25
    max_steps: int = MAX_STEPS  # The most steps that the model's noise schedule allows
    fewest_steps: Mapping[str, int] = field(default_factory=dict)  # By scheduler; 1 if absent
    guidance_scale: float = 7.5
    scheduler: str
    schedulers: tuple[str, ...]  # The names that it can use, its default first
    dtype: DType = "float32"
    lock_width: int = LOCK_WIDTH  # Its default batch size; 1 if its denoiser mixes pictures
    decoding_bytes: int = 0  # Approximate peak memory of decoding, bytes for a pixel of the picture
    enlarges: bool = True  # Whether its image-to-image finals are better than a plain enlargement
    upscaler: str = ""  # The name of the network made for its pictures; empty if there is none
    has_start: bool = False  # Whether it has image-to-image: a picture can begin from another one
    strength_shortens: bool = True  # Whether it runs only the strength's share of the steps
    has_weights: bool = False  # Whether words can be weighed, as in `(red:1.3)`
    hints: dict[str, tuple[str, ...]] = field(default_factory=dict)  # Words it declares, by kind
    vocabulary: Vocabulary | None = None  # All words that it declares to know, if any
    suffixes: tuple[str, ...] = ()  # The page's default variations; empty means the guide's four
    fragile: bool = False  # Whether only the same hardware and versions reproduce it (UnCLIP)

    def usual_steps(self, scheduler: str) -> int:
        """Return the default number of steps with a scheduler."""
        return max(self.num_inference_steps, self.fewest_steps.get(scheduler, 1))

    def steps_begun(self, num_run: int, strength: float) -> int:
        """Return how many steps to ask for so that `num_run` are run from a start."""
        steps = math.ceil(num_run / strength) if self.strength_shortens else num_run
        return min(steps, MAX_STEPS, self.max_steps)

    @property
    def offers(self) -> tuple[str, ...]:
        """Suffixes for successive rounds, the best first: the model's own, the guide's, others.

        Attributes of several words (`at sunset`) come before single ones, which say little alone.
        """
        words = self.hints.get("modifiers", ()) + tuple(
            sorted(self.hints.get("attributes", ()), key=lambda word: " " not in word)
        )
        further = () if words else FURTHER_SUFFIXES
        own = (*self.suffixes, *(f", {word}" for word in words))
        return tuple(dict.fromkeys((*own, *GUIDE_SUFFIXES, *further)))


_FUNCTION_WORDS: Final = frozenset(  # English function words, which are not reported as unknown
    word
    for line in (
        "a an the one of in on at by to as and or with for without over under above below near is",
        "behind beside between through into from are this that its his her my our very some two",
    )
    for word in line.split()
)

_WORD: Final = re.compile(r"[^\W_]+")
_FULL_WIDTH: Final = str.maketrans(
    {"，": ", ", "、": ", ", "。": ". ", "；": "; ", "：": ": ", "\u3000": " "}
)
_MAX_UNKNOWN: Final = 8


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words that a model declares to understand, and their translations."""

    known: frozenset[str]  # Single English words in lower case
    # Words of other languages, and the model's words that replace them; an empty text for a word
    # that adds nothing to a prompt, such as a particle
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # By language, and by the model's own words: the name under which the page offers them
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return up to 8 words that the model does not know, as they were written, each once."""
        words = {word.casefold(): word for word in reversed(_WORD.findall(self.painted(text)))}
        strange = [word for low, word in words.items() if not self._knows(low)]
        return tuple(reversed(strange))[:_MAX_UNKNOWN]

    def painted(self, text: str) -> str:
        """Translate a typed prompt: replace names of other languages by the model's words."""
        found = text
        for name in self.names:
            if " " in name:
                found = found.replace(name, f" {self.names[name]} ")
        parts = re.split(r"([^\W_]+)", found.translate(_FULL_WIDTH))
        found = "".join(part if part.isascii() else self._translated(part) for part in parts)
        if found == text.translate(_FULL_WIDTH):
            return text
        return re.sub(r" ([,.;:!?])", r"\1", " ".join(found.split()))

    def _translated(self, word: str) -> str:
        """Replace the names in a word; a Korean word with an unknown part stays unchanged."""
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
        """Return the name of words in a language; the words themselves if it has none."""
        return self.shown.get(language, {}).get(words, words)

    def _knows(self, word: str) -> bool:
        return word in self.known or word in _FUNCTION_WORDS or word.isdecimal()


RATIOS: Final = ((1, 1), (3, 2), (2, 3), (16, 9), (9, 16))  # Width to height


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A size that the page offers."""

    ratio: str  # For example `"3:2"`; empty if the model's own is none of `RATIOS`
    width: int  # In pixels
    height: int  # In pixels
    is_own: bool  # Whether the model was made for this size

    @property
    def text(self) -> str:
        """The size as it is typed in the field `size`."""
        return f"{self.width}x{self.height}"


def shapes(card: ModelCard) -> tuple[Shape, ...]:
    """Return the sizes that the page offers, the model's own first; no other if that is fixed."""
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
    """Return the multiple nearest to a side, from `MIN_SIZE_PX` to `MAX_SIZE_PX`."""
    low = math.ceil(MIN_SIZE_PX / multiple)
    return min(max(round(side / multiple), low), MAX_SIZE_PX // multiple) * multiple


def _name(ratio: tuple[int, int]) -> str:
    return f"{ratio[0]}:{ratio[1]}"
