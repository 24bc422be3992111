"""Speeds: how long pictures take, learnt from every batch that is painted.

Where nothing is known yet, another size or another model stands in, and at first a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from seedgrid.core.recipe import Recipe

_GUESS_S: Final = 1e-6
"""Seconds for one pixel at one step before anything was painted: a quarter second at 512x512."""
_NEWEST: Final = 0.3
"""How much of a speed the newest batch decides: machines are busy at times."""


def pixel_steps(recipe: Recipe) -> int:
    """Return how many pixels are painted how often for one picture.

    Only steps that are run count: a start leaves out the first ones, a network knows none. Else
    whoever asks for many that are not run teaches a speed at which every request looks short.
    """
    num_steps = recipe.num_inference_steps
    if recipe.upscaler:
        num_steps = 1
    elif recipe.start:
        num_steps = max(1, int(num_steps * recipe.strength))
    return recipe.width * recipe.height * num_steps


class Speeds:
    """How long a pixel takes at one step, by model, arithmetic and size. Written by one thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int, int], float] = {}

    def note(self, recipe: Recipe, elapsed_s: float) -> None:
        """Learn from a batch that was painted; one of full width, whatever is wanted of it."""
        speed = elapsed_s / (recipe.lock_width * pixel_steps(recipe))
        key = _key(recipe)
        before = self._known.get(key, speed)
        self._known[key] = before + _NEWEST * (speed - before)

    def estimate_s(self, recipes: Iterable[Recipe]) -> float:
        """Return how long pictures of these recipes will take, in their locked batches."""
        counts: dict[str, tuple[Recipe, int]] = {}
        for recipe in recipes:
            key = recipe.batch_key
            counts[key] = (recipe, counts.get(key, (recipe, 0))[1] + 1)
        return sum(self._batches_s(recipe, count) for recipe, count in counts.values())

    def known_s(self, recipes: Iterable[Recipe]) -> float | None:
        """Return what `estimate_s` does; None where nothing like them was painted yet."""
        wanted = list(recipes)
        known = self._known.copy()
        return self.estimate_s(wanted) if all(_key(recipe) in known for recipe in wanted) else None

    def _batches_s(self, recipe: Recipe, count: int) -> float:
        num_painted = math.ceil(count / recipe.lock_width) * recipe.lock_width
        return num_painted * pixel_steps(recipe) * self._speed(recipe)

    def _speed(self, recipe: Recipe) -> float:
        known = self._known.copy()
        wanted = _key(recipe)
        if wanted in known:
            return known[wanted]
        alike = [speed for key, speed in known.items() if key[:2] == wanted[:2]]
        return max(alike or known.values(), default=_GUESS_S)


def _key(recipe: Recipe) -> tuple[str, str, int, int]:
    painter = f"upscaler {recipe.upscaler.id}" if recipe.upscaler else recipe.model.id
    return painter, recipe.arithmetic, recipe.width, recipe.height
