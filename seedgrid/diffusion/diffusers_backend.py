"""DiffusersBackend: paint one batch of exactly `lock_width` pictures, or enlarge a picture.

The lock: the bits of a picture depend on the width of its batch, which its recipe names, but not on
its neighbours' prompts and noise.
"""

import gc
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError, is_memory_error
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.variations import WITHOUT_PARENT
from seedgrid.diffusion.backend import LoadWatch, Outcome, Placement, PreviewMaker, Unwatched, Watch
from seedgrid.diffusion.caches import LoadedModel, PairDecoder, PipelineCache, SizedCache, TextCache
from seedgrid.diffusion.environment import current_passport, torch_settings
from seedgrid.diffusion.loading import empty_cache, pick_device, quantiser_of
from seedgrid.diffusion.pipeline_call import CallContext, as_one_call, call_pipeline, paint_batch
from seedgrid.diffusion.probe import run_probe
from seedgrid.diffusion.probe_results import ProbeReport, keep_report, recall_report, record_width
from seedgrid.diffusion.steering import SteeringPlan, Trajectory, max_bytes, missing_parents
from seedgrid.diffusion.upscaling import Enlarger
from seedgrid.models import registry
from seedgrid.models.schedulers import make_scheduler
from seedgrid.portable import check_portable

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class DiffusersBackend:
    """Paints with diffusers; for recipes with an upscaler it enlarges a picture. See `Backend`."""

    def __init__(self) -> None:
        self._pipelines = PipelineCache()
        self._text_cache = TextCache()
        self._pair_decoder = PairDecoder()
        # By recipe id + passport digest; child pictures follow them (steering.py)
        self._trajectories = SizedCache[Trajectory](max_bytes())
        self._enlarger = Enlarger()

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it."""
        return registry.card_here(model)

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs, and return its picture's passport."""
        prepare = partial(self._prepare, recipe, placement, watch)
        if recipe.upscaler is not None:
            prepare = partial(self._enlarger.prepare, recipe, recipe.upscaler, placement)
        return self._within_memory(prepare, recipe, placement, Unwatched())

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the model is loaded already."""
        cache = self._pipelines if recipe.upscaler is None else self._enlarger
        return cache.has(recipe, placement)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to `lock_width` recipes of one `batch_key` in a batch of that width."""
        first = recipes[0]
        if len(recipes) > first.lock_width or any(r.batch_key != first.batch_key for r in recipes):
            raise ValueError("a batch holds at most lock_width recipes of one batch_key")
        if first.upscaler is not None:
            enlarge = partial(self._enlarger.enlarge, first, first.upscaler, placement, watch)
            return (self._within_memory(enlarge, first, placement, watch),)
        paint = partial(self._paint, recipes, placement, watch)
        painted = self._within_memory(paint, first, placement, watch)
        return tuple(outcome for outcome, _ in painted)

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        """Test the lock for recipes like this one, or return the report in the cache folder."""
        recipe = recipe.model_copy(update=WITHOUT_PARENT)  # Parents are painted in other batches
        passport = self.prepare(recipe, placement)
        report = recall_report(recipe, passport)
        if report is None:
            probe = partial(self._run_probe, recipe, placement, watch)
            report = self._within_memory(probe, recipe, placement, watch)
            keep_report(recipe, passport, report)
        # The stored width is advice for the default placement only.
        if replace(placement, device="auto", previews=True) == Placement():
            record_width(recipe, report)
        return report

    def close(self) -> None:
        """Free models and memory."""
        self._pipelines.clear()
        self._enlarger.clear()
        self._text_cache = TextCache()
        self._trajectories = SizedCache[Trajectory](max_bytes())
        gc.collect()
        empty_cache()

    def load(self, recipe: Recipe, placement: Placement) -> Any:
        """Return the loaded diffusers pipeline itself; changing it changes later pictures."""
        with torch_settings(recipe, placement):
            return self._pipelines.get(recipe, placement).pipeline

    def _prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        with torch_settings(recipe, placement):
            loaded = self._pipelines.get(recipe, placement, watch)
            loaded.check_settings(recipe)
            passport = _passport(recipe, loaded, placement)
            if recipe.is_portable:
                check_portable(loaded.device, passport)
            return passport

    def _paint(
        self,
        recipes: Sequence[Recipe],
        placement: Placement,
        watch: Watch,
        *,
        are_parents: bool = False,
        halt_steps: int = 0,
    ) -> tuple[tuple[Outcome, Trajectory], ...]:
        """Paint parents whose trajectories are not in memory, then a batch; cache its trajectories.

        With `are_parents` the trajectories are recorded however much memory they take.
        """
        first = recipes[0]
        parents, batch_watch = self._parent_trajectories(recipes, placement, watch)
        limit = math.inf if are_parents else max_bytes()
        plan = SteeringPlan(parents=parents, halt_steps=halt_steps, max_bytes=limit)
        with torch_settings(first, placement):
            loaded = self._pipelines.get(first, placement)
            passport = _passport(first, loaded, placement)
            batch_watch.noise(lambda: loaded.preview.of_noise(recipes))
            contexts = self._contexts(first, passport, loaded.device, placement.decoder)
            painted = paint_batch(recipes, loaded, batch_watch, contexts, plan)
        for recipe, (outcome, trajectory) in zip(recipes, painted, strict=True):
            if not isinstance(outcome, RunError) and not placement.decoder:
                trajectory.pixels = outcome
            if trajectory.inputs and (halt_steps or trajectory.pixels is not None):
                key = recipe.id + passport.digest
                self._trajectories.put(key, trajectory, trajectory.num_bytes)
        return painted

    def _parent_trajectories(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[dict[str, Trajectory], Watch]:
        """Return the trajectories of recipes' parents, by id; paint parents that have none.

        Also returns a watch for the batch, which adds the parents' steps to the batch's.
        """
        if not any(recipe.parent for recipe in recipes):
            return {}, watch

        def find(parent: Recipe) -> Trajectory | None:
            return self._trajectories.get(parent.id + self._prepare(parent, placement).digest)

        with torch_settings(recipes[0], placement):
            config = self._pipelines.get(recipes[0], placement).scheduler_config
            order = make_scheduler(recipes[0].scheduler, config).order
        trajectories, batches = missing_parents(recipes, find, order)
        steps = recipes[0].num_inference_steps * order
        done = 0
        for index, (parents, halt_steps) in enumerate(batches):
            later = steps * (len(batches) - index)
            parents_watch = _BatchWatch(watch, done, later_steps=later, halt=halt_steps * order)
            painted = self._paint(
                parents, placement, parents_watch, are_parents=True, halt_steps=halt_steps
            )
            done = parents_watch.steps_after
            for parent, (outcome, trajectory) in zip(parents, painted, strict=True):
                if isinstance(outcome, RunError) and not halt_steps:
                    raise outcome
                trajectories[parent.id] = trajectory
        return trajectories, _BatchWatch(watch, done)

    def _within_memory(
        self, work: Callable[[], Result], recipe: Recipe, placement: Placement, watch: Watch
    ) -> Result:
        """Call `work`; if memory is full, free all models and retry, then raise `memory_full`."""
        for is_last in (False, True):
            try:
                return work()
            except Exception as error:
                if not is_memory_error(error):
                    raise
            # Not in the `except` block: until its end the exception's traceback holds tensors
            # (https://github.com/pytorch/pytorch/issues/18853).
            self.close()
            if not is_last:
                logger.warning("memory is full: all models are freed, and the work is tried again")
                watch.freed()
        sizes = {"width": recipe.width, "height": recipe.height, "lock_width": recipe.lock_width}
        raise RunError("memory_full", **sizes, device=str(pick_device(placement.device)))

    def _run_probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        with torch_settings(recipe, placement):
            loaded = self._pipelines.get(recipe, placement)

            # Without the caches, so that every row is really computed
            def compute(
                recipes: Sequence[Recipe], tested_slot: int, watching: CallContext
            ) -> list[torch.Tensor]:
                batch = as_one_call(recipes, loaded, tested_slot)
                output = call_pipeline(batch, loaded, watch, [watching])
                return [output.images, output.latents, torch.tensor(output.withheld)]

            return run_probe(recipe, compute, watch, family=loaded.files.family)

    def _contexts(
        self, recipe: Recipe, passport: Passport, device: torch.device, decoder: str
    ) -> list[CallContext]:
        """Return the contexts of the call: a tiny decoder if any, and caches that change no bit."""
        if recipe.is_portable:  # The caches were tested with torch's own arithmetic only.
            return []
        loras = [(lora.weights_sha256, lora.scale) for lora in recipe.loras]
        model = (recipe.model.weights_sha256, recipe.dtype, loras, passport.digest, decoder)
        context = "|".join(map(str, model))
        tiny = partial(self._pipelines.tiny_decoder, name=decoder, device=device)
        return [
            *([tiny] if decoder else []),
            partial(self._text_cache.applied_to, context=context),
            partial(self._pair_decoder.applied_to, context=context),
        ]


def _passport(recipe: Recipe, loaded: LoadedModel, placement: Placement) -> Passport:
    libraries = ("peft" if recipe.loras else "", quantiser_of(recipe, loaded.files))
    return current_passport(loaded.device, placement, filter(None, libraries))


class _BatchWatch:
    """Reports to `watch` the progress of one of several batches, counting the steps of all.

    `steps_before` steps were run before this batch, and `later_steps` follow it. A batch with a
    `halt` other than 0 is halted at that step.
    """

    def __init__(
        self, watch: Watch, steps_before: int = 0, *, later_steps: int = 0, halt: int = 0
    ) -> None:
        self.tile, self.freed = watch.tile, watch.freed
        self._watch = watch
        self._steps_before = steps_before
        self._later_steps = later_steps
        self._halt = halt
        self._last = 0

    @property
    def steps_after(self) -> int:
        """How many steps were run by the end of this batch; its halting step is not reported."""
        return self._steps_before + (self._halt or self._last)

    @property
    def cancelled(self) -> bool:
        """Whether the batch should stop."""
        return self._watch.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Report the noise, if this is the last batch."""
        if not self._later_steps:
            self._watch.noise(previews)

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Report a step, with previews only if this is the last batch."""
        self._last = number
        all_steps = self._steps_before + (self._halt or total) + self._later_steps
        shown: PreviewMaker = (lambda: ()) if self._later_steps else previews
        self._watch.step(self._steps_before + number, all_steps, shown)
