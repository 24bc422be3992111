"""Estimated painting times: moving averages over painted batches and loaded models.

For a size not painted yet, the model's nearest size is used, or else another model's nearest.
"""

import math
from collections.abc import Iterable
from typing import Final

from seedgrid.core.recipe import Recipe

_GUESS_S: Final = 1e-6  # Per pixel and step, until something is painted: 0.26 s a step at 512x512
_SCHEDULER_RUNS_ALL: Final = "LCM"  # With this scheduler, some models run all steps from a start
_SLOWER_WEIGHT: Final = 0.3  # In the average: a slower batch may be due to a busy machine

_Key = tuple[str, str, int, int]
_Rate = tuple[float, float]  # Seconds that a pixel takes outside the steps, and in each step


def num_steps_run(recipe: Recipe) -> int:
    """Return the maximum number of steps that are run.

    An upscaler network counts as one step. With a start, the first steps are skipped, and each
    noise share counts as a step, as it encodes the start again. With LCM's scheduler all steps
    count: models made for LCM skip none, and a recipe does not say whether its model is one. A
    parent may have to be painted first, so its steps are added.
    """
    if recipe.upscaler:
        return 1
    steps = recipe.num_inference_steps
    if recipe.start and recipe.scheduler != _SCHEDULER_RUNS_ALL:
        steps = max(1, int(steps * recipe.strength))
    if recipe.start:
        steps += len(recipe.noise_mix)
    return steps + (num_steps_run(recipe.parent) if recipe.parent else 0)


def pixel_steps(recipe: Recipe) -> int:
    """Return the number of pixels times the number of steps that are run."""
    return recipe.width * recipe.height * num_steps_run(recipe)


class Speeds:
    """Times per pixel, by model, arithmetic, format, size; simultaneous records may lose one."""

    def __init__(self) -> None:
        self._rates: dict[_Key, _Rate] = {}
        self._decoding: dict[tuple[_Key, int], float] = {}
        self._loading: dict[str, float] = {}
        self._last_loaded: tuple[str, ...] = ()

    def record(
        self,
        recipe: Recipe,
        elapsed_s: float,
        step_s: float | None = None,
        after_s: float | None = None,
    ) -> None:
        """Add a painted batch, computed at its recipe's lock width, to the averages.

        `step_s` is the time of one step, `after_s` that after the last step; None: not measured.
        """
        if recipe.parent:  # Its parent's steps may have come from the cache.
            return
        if after_s is not None:
            self._decoding[_key(recipe), num_steps_run(recipe)] = after_s / elapsed_s
        if step_s is None and recipe.start and recipe.scheduler == _SCHEDULER_RUNS_ALL:
            return  # Steps that were not run would be counted.
        key, num_steps = _key(recipe), num_steps_run(recipe)
        num_pixels = recipe.lock_width * recipe.width * recipe.height
        whole = elapsed_s / num_pixels
        _, each = self._rates.get(key, (0.0, whole / num_steps))
        step = min(each if step_s is None else step_s / num_pixels, whole / num_steps)
        rate = whole - step * num_steps, step
        before = self._rates.get(key, rate)
        self._rates[key] = (_averaged(before[0], rate[0]), _averaged(before[1], rate[1]))

    def record_loading(self, recipe: Recipe, elapsed_s: float) -> None:
        """Add the time of loading a model, or of loading it again with other LoRAs."""
        before = self._loading.get(recipe.model.id, elapsed_s)
        self._loading[recipe.model.id] = _averaged(before, elapsed_s)
        self._last_loaded = _pipeline_key(recipe)

    def estimate_s(self, recipes: Iterable[Recipe]) -> float:
        """Return how many seconds pictures of these recipes take, with loading the models."""
        counts: dict[str, tuple[Recipe, int]] = {}
        for recipe in recipes:
            key = recipe.batch_key
            counts[key] = (recipe, counts.get(key, (recipe, 0))[1] + 1)
        to_load = {_pipeline_key(recipe) for recipe, _ in counts.values() if not recipe.upscaler}
        loading_s = sum(self._loading.get(each[0], 0.0) for each in to_load - {self._last_loaded})
        return loading_s + sum(self._batches_s(recipe, count) for recipe, count in counts.values())

    def known_s(self, recipes: Iterable[Recipe]) -> float | None:
        """Return `estimate_s`; None if any recipe's model and size were not painted yet."""
        listed = list(recipes)
        rates = self._rates.copy()
        return self.estimate_s(listed) if all(_key(recipe) in rates for recipe in listed) else None

    def decoding_share(self, recipe: Recipe) -> float:
        """Return which share of the time of such a batch follows its last step; 0 if unknown."""
        return self._decoding.get((_key(recipe), num_steps_run(recipe)), 0.0)

    def _batches_s(self, recipe: Recipe, count: int) -> float:
        num_painted = math.ceil(count / recipe.lock_width) * recipe.lock_width
        once, step = self._rate(recipe)
        pixel_s = once + step * num_steps_run(recipe)
        return num_painted * recipe.width * recipe.height * pixel_s

    def _rate(self, recipe: Recipe) -> _Rate:
        """Return the rate of the nearest size of this model, else of any model."""
        rates, key = self._rates.copy(), _key(recipe)
        if not rates:
            return (0.0, _GUESS_S)

        def distance(other: _Key) -> tuple[bool, bool, float]:
            ratio = other[2] * other[3] / (key[2] * key[3])
            return other[0] != key[0], other[1] != key[1], abs(math.log(ratio))

        return rates[min(rates, key=distance)]


def _averaged(before: float, newest: float) -> float:
    """Return the average after one more measurement; a faster one replaces it."""
    return min(newest, before + _SLOWER_WEIGHT * (newest - before))


def _pipeline_key(recipe: Recipe) -> tuple[str, ...]:
    return (recipe.model.id, recipe.dtype, *(lora.weights_sha256 for lora in recipe.loras))


def _key(recipe: Recipe) -> _Key:
    painter = f"upscaler {recipe.upscaler.id}" if recipe.upscaler else recipe.model.id
    return painter, f"{recipe.arithmetic} {recipe.dtype}", recipe.width, recipe.height
