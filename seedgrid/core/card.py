"""ModelCard: what a model is and can do, known without loading it.

It answers what a request leaves open, and says which values the model can paint with.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from seedgrid.core.prompts import FURTHER_SUFFIXES, GUIDE_SUFFIXES
from seedgrid.core.recipe import LOCK_WIDTH, MAX_STEPS, DType, ModelRef
from seedgrid.core.words import Vocabulary


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
