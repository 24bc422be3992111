"""Estimated painting times: moving averages over painted batches and loaded models.

For a size that was not painted yet, the nearest size of the model is used, else another model.
"""

import math
from collections.abc import Iterable
from typing import Final

from seedgrid.core.recipe import Recipe

_GUESS_S: Final = 1e-6  # Per pixel and step before anything was painted: 0.25 s at 512x512
_RUNS_ALL: Final = "LCM"
_NEWEST: Final = 0.3  # Weight of a slower batch in the average: a machine is busy at times

_Key = tuple[str, str, int, int]
_Rate = tuple[float, float]  # Seconds for a pixel: once, whatever the steps, and for each step


def num_steps_run(recipe: Recipe) -> int:
    """Return the maximum number of steps that are run.

    A start skips the first steps; an upscaler network counts as one. A parent may have to be
    painted first, so its steps are added; each share of noise encodes a start again, which counts
    as one. With LCM's scheduler all count: models made for it skip none, and a recipe does not say
    which.
    """
    if recipe.upscaler:
        return 1
    steps = recipe.num_inference_steps
    if recipe.start and recipe.scheduler != _RUNS_ALL:
        steps = max(1, int(steps * recipe.strength))
    if recipe.start:
        steps += len(recipe.noise_mix)
    return steps + (num_steps_run(recipe.parent) if recipe.parent else 0)


def pixel_steps(recipe: Recipe) -> int:
    """Return pixels times steps that are run; skipped steps would teach a wrong speed."""
    return recipe.width * recipe.height * num_steps_run(recipe)


class Speeds:
    """How long a pixel takes, by model, arithmetic and size. Written by one thread."""

    def __init__(self) -> None:
        self._rates: dict[_Key, _Rate] = {}
        self._decoding: dict[tuple[_Key, int], float] = {}
        self._loading: dict[str, float] = {}
        self._last: tuple[str, ...] = ()

    def record(
        self,
        recipe: Recipe,
        elapsed_s: float,
        step_s: float | None = None,
        after_s: float | None = None,
    ) -> None:
        """Learn from the seconds of a painted batch of full width.

        `step_s` is for one step, `after_s` after the last one; None if not measured.
        """
        if recipe.parent:  # Its parent's steps may have come from the cache.
            return
        if after_s is not None:
            self._decoding[_key(recipe), num_steps_run(recipe)] = after_s / elapsed_s
        if step_s is None and recipe.start and recipe.scheduler == _RUNS_ALL:
            return  # Steps that were not run would be counted.
        key, num_steps = _key(recipe), num_steps_run(recipe)
        num_pixels = recipe.lock_width * recipe.width * recipe.height
        whole = elapsed_s / num_pixels
        _, each = self._rates.get(key, (0.0, whole / num_steps))
        step = min(each if step_s is None else step_s / num_pixels, whole / num_steps)
        rate = whole - step * num_steps, step
        before = self._rates.get(key, rate)
        self._rates[key] = (_moved(before[0], rate[0]), _moved(before[1], rate[1]))

    def record_loading(self, recipe: Recipe, elapsed_s: float) -> None:
        """Learn how long it took to load a model, or to load it again with other LoRAs."""
        before = self._loading.get(recipe.model.id, elapsed_s)
        self._loading[recipe.model.id] = _moved(before, elapsed_s)
        self._last = _loaded(recipe)

    def estimate_s(self, recipes: Iterable[Recipe]) -> float:
        """Return how many seconds pictures of these recipes take, with loading the models."""
        counts: dict[str, tuple[Recipe, int]] = {}
        for recipe in recipes:
            key = recipe.batch_key
            counts[key] = (recipe, counts.get(key, (recipe, 0))[1] + 1)
        to_load = {_loaded(recipe) for recipe, _ in counts.values() if not recipe.upscaler}
        loading_s = sum(self._loading.get(each[0], 0.0) for each in to_load - {self._last})
        return loading_s + sum(self._batches_s(recipe, count) for recipe, count in counts.values())

    def known_s(self, recipes: Iterable[Recipe]) -> float | None:
        """Return what `estimate_s` does; None if no recipe of their kind was painted yet."""
        listed = list(recipes)
        rates = self._rates.copy()
        return self.estimate_s(listed) if all(_key(recipe) in rates for recipe in listed) else None

    def decoding_share(self, recipe: Recipe) -> float:
        """Return the share of the last such batch's time after its steps; 0 if unknown."""
        return self._decoding.get((_key(recipe), num_steps_run(recipe)), 0.0)

    def _batches_s(self, recipe: Recipe, count: int) -> float:
        num_painted = math.ceil(count / recipe.lock_width) * recipe.lock_width
        once, step = self._rate(recipe)
        pixel_s = once + step * num_steps_run(recipe)
        return num_painted * recipe.width * recipe.height * pixel_s

    def _rate(self, recipe: Recipe) -> _Rate:
        """Return the rate of the nearest size of the model, else of any."""
        rates, key = self._rates.copy(), _key(recipe)
        if not rates:
            return (0.0, _GUESS_S)

        def distance(other: _Key) -> tuple[bool, float]:
            ratio = other[2] * other[3] / (key[2] * key[3])
            return other[:2] != key[:2], abs(math.log(ratio))

        return rates[min(rates, key=distance)]


def _moved(before: float, newest: float) -> float:
    """Return the average after one more batch; a faster batch replaces it."""
    return min(newest, before + _NEWEST * (newest - before))


def _loaded(recipe: Recipe) -> tuple[str, ...]:
    return (recipe.model.id, recipe.dtype, *(lora.weights_sha256 for lora in recipe.loras))


def _key(recipe: Recipe) -> _Key:
    painter = f"upscaler {recipe.upscaler.id}" if recipe.upscaler else recipe.model.id
    return painter, recipe.arithmetic, recipe.width, recipe.height
