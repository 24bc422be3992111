"""Speeds: how long pictures take, learnt from every batch that is painted and model that is loaded.

Where nothing is known yet, the nearest size stands in, else another model, and at first a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from seedgrid.core.recipe import Recipe

_GUESS_S: Final = 1e-6
"""Seconds for one pixel at one step before anything was painted: a quarter second at 512x512."""
_RUNS_ALL: Final = "LCM"
_NEAR: Final = 4.0
"""Sizes of so many times the pixels take a pixel's time for each; of a tiny one most is not pixels,
and whoever painted one would have all large ones refused before the first."""
_NEWEST: Final = 0.3
"""How much of a speed the newest batch decides: machines are busy at times."""


def num_steps_run(recipe: Recipe) -> int:
    """Return how many steps are run at most: a start leaves out the first, a network knows none.

    Each share of noise that is mixed into a start reads that anew, which counts as a step.
    Models made for LCM's scheduler leave none out, others that use it do: a recipe does not tell.
    """
    if recipe.upscaler:
        return 1
    steps = recipe.num_inference_steps
    if not recipe.start:
        return steps
    if recipe.scheduler != _RUNS_ALL:
        steps = max(1, int(steps * recipe.strength))
    return steps + len(recipe.noise_mix)


def pixel_steps(recipe: Recipe) -> int:
    """Return how many pixels are painted how often for one picture.

    Only steps that are run count. Else whoever asks for many that are not run teaches a speed at
    which every request looks short.
    """
    return recipe.width * recipe.height * num_steps_run(recipe)


@dataclass(frozen=True, kw_only=True)
class _Speed:
    """Seconds for a pixel.

    Attributes:
        once: Whatever the number of steps: words are read, the picture is decoded.
        step: For each step.
        is_bound: No step was seen alone, so `step` holds what is done once as well.
    """

    once: float = 0.0
    step: float
    is_bound: bool = False

    def towards(self, newer: _Speed) -> _Speed:
        """Return what is known after a newer batch."""
        if self.is_bound != newer.is_bound:
            return newer if self.is_bound else self
        return _Speed(
            once=self.once + _NEWEST * (newer.once - self.once),
            step=self.step + _NEWEST * (newer.step - self.step),
            is_bound=self.is_bound,
        )


class Speeds:
    """How long a pixel takes at one step, by model, arithmetic and size. Written by one thread."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Speed] = {}
        self._loading: dict[str, float] = {}
        self._last: _Loaded | None = None

    def note(self, recipe: Recipe, elapsed_s: float, step_s: float | None = None) -> None:
        """Learn from a batch that was painted; one of full width, whatever is wanted of it.

        Args:
            recipe: One of the batch.
            elapsed_s: How long all of it took.
            step_s: How long a step took; None where none was seen alone.
        """
        num_pixels = recipe.lock_width * recipe.width * recipe.height
        num_steps = num_steps_run(recipe)
        if recipe.start and recipe.scheduler == _RUNS_ALL:
            if step_s is None:
                return  # One step of many that were asked for would teach far too short a time.
            num_steps = min(num_steps, max(1, round(elapsed_s / step_s)))
        step = elapsed_s / num_steps if step_s is None else min(step_s, elapsed_s / num_steps)
        speed = _Speed(
            once=(elapsed_s - step * num_steps) / num_pixels,
            step=step / num_pixels,
            is_bound=step_s is None and num_steps == 1,
        )
        key = _key(recipe)
        self._known[key] = self._known.get(key, speed).towards(speed)

    def note_loading(self, recipe: Recipe, elapsed_s: float) -> None:
        """Learn how long a model was loaded, or loaded anew with other LoRAs."""
        before = self._loading.get(recipe.model.id, elapsed_s)
        self._loading[recipe.model.id] = before + _NEWEST * (elapsed_s - before)
        self._last = _loaded(recipe)

    def estimate_s(self, recipes: Iterable[Recipe]) -> float:
        """Return how long pictures of these recipes will take, in their locked batches.

        What has to be loaded for them counts: else whoever names other LoRAs each time has a model
        loaded again and again for what looks like a moment.
        """
        counts: dict[str, tuple[Recipe, int]] = {}
        for recipe in recipes:
            key = recipe.batch_key
            counts[key] = (recipe, counts.get(key, (recipe, 0))[1] + 1)
        to_load = {_loaded(recipe) for recipe, _ in counts.values() if not recipe.upscaler}
        loading_s = sum(self._loading.get(each[0], 0.0) for each in to_load - {self._last})
        return loading_s + sum(self._batches_s(recipe, count) for recipe, count in counts.values())

    def known_s(self, recipes: Iterable[Recipe]) -> float | None:
        """Return what `estimate_s` does; None where nothing like them was painted yet."""
        wanted = list(recipes)
        known = self._known.copy()
        return self.estimate_s(wanted) if all(_key(recipe) in known for recipe in wanted) else None

    def _batches_s(self, recipe: Recipe, count: int) -> float:
        num_painted = math.ceil(count / recipe.lock_width) * recipe.lock_width
        speed = self._speed(recipe)
        pixel_s = speed.once + speed.step * num_steps_run(recipe)
        return num_painted * recipe.width * recipe.height * pixel_s

    def _speed(self, recipe: Recipe) -> _Speed:
        known, wanted = self._known.copy(), _key(recipe)
        own = known.pop(wanted, None)
        alike = {key: speed for key, speed in known.items() if key[:2] == wanted[:2]}
        if own is None:
            return _nearest(alike or known, wanted) or _Speed(step=_GUESS_S)
        seen = {key: speed for key, speed in alike.items() if not speed.is_bound}
        nearest = _nearest(seen, wanted) if own.is_bound else None
        return own if nearest is None else min(own, nearest, key=_step)


_Key = tuple[str, str, int, int]
_Loaded = tuple[str, str, tuple[str, ...]]


def _step(speed: _Speed) -> float:
    return speed.step


def _nearest(known: Mapping[_Key, _Speed], wanted: _Key) -> _Speed | None:
    """Return the speed of the nearest size, the slowest of those.

    Far from it, a time between as long for a picture and as long for a pixel.
    """

    def ratio(key: _Key) -> float:
        return key[2] * key[3] / (wanted[2] * wanted[3])

    if not known:
        return None
    nearest = min(known, key=lambda key: (abs(math.log(ratio(key))), -known[key].step))
    found, speed = ratio(nearest), known[nearest]
    far = math.sqrt(max(found / _NEAR, 1.0) / max(1 / found / _NEAR, 1.0))
    return replace(speed, once=speed.once * far, step=speed.step * far)


def _loaded(recipe: Recipe) -> _Loaded:
    return recipe.model.id, recipe.dtype, tuple(lora.weights_sha256 for lora in recipe.loras)


def _key(recipe: Recipe) -> _Key:
    painter = f"upscaler {recipe.upscaler.id}" if recipe.upscaler else recipe.model.id
    return painter, recipe.arithmetic, recipe.width, recipe.height
