"""DiffusersBackend: paint one locked batch of exactly W cells.

A neighbour's words and noise cannot reach a picture: only the width of the batch, always W, can.

    backend = DiffusersBackend()
    backend.paint(recipes, Placement(), watch)
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.variations import FREE
from seedgrid.diffusion.backend import LoadWatch, Outcome, Placement, Unwatched, Watch
from seedgrid.diffusion.devices import empty_cache, pick_device
from seedgrid.diffusion.environment import computing, current_passport
from seedgrid.diffusion.libraries import Result, within_memory
from seedgrid.diffusion.loading import quantiser_of
from seedgrid.diffusion.parents import PartWatch, WayMemory, max_bytes, missing_parents
from seedgrid.diffusion.pipeline_cache import Loaded, PipelineCache, TinyDecoders
from seedgrid.diffusion.pipeline_call import CallContext, call_pipeline, paint_batch, sharing_a_call
from seedgrid.diffusion.probe import run_probe
from seedgrid.diffusion.probe_results import ProbeReport, advise, keep_report, recall_report
from seedgrid.diffusion.shortcuts import PairedDecoding, TextCache
from seedgrid.diffusion.way import Guide, Way
from seedgrid.models import registry
from seedgrid.models.schedulers import make_scheduler
from seedgrid.portable import PortableTrial, check_portable, try_portable


class DiffusersBackend:
    """Paints with diffusers (see `Backend`); `free_memory` frees all models, also of others."""

    def __init__(self, free_memory: Callable[[], None] | None = None) -> None:
        self._pipelines = PipelineCache()
        self._text_cache = TextCache()
        self._decoding = PairedDecoding()
        self._tiny_decoders = TinyDecoders()
        self._ways = WayMemory()
        self._free_memory = free_memory or self.close

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it."""
        return registry.card_here(model)

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs, and return the passport it would have."""
        return self._within_memory(
            lambda: self._prepare(recipe, placement, watch), recipe, placement, Unwatched()
        )

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the model is loaded already."""
        return self._pipelines.has(recipe, placement)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to W recipes of one `batch_key` in a batch of exactly W cells."""
        first = recipes[0]
        if len(recipes) > first.lock_width or any(r.batch_key != first.batch_key for r in recipes):
            raise ValueError("a batch holds at most lock_width recipes of one batch_key")
        painted = self._within_memory(
            lambda: self._paint(recipes, placement, watch), first, placement, watch
        )
        return tuple(outcome for outcome, _ in painted)

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        """Test the lock for recipes like this one; remembered by passport."""
        recipe = recipe.model_copy(update=FREE)  # Parents are painted in other batches.
        passport = self.prepare(recipe, placement)
        report = recall_report(recipe, passport)
        if report is None:
            report = self._within_memory(
                lambda: self._run_probe(recipe, placement, watch), recipe, placement, watch
            )
            keep_report(recipe, passport, report)
        if replace(placement, device="auto", previews=True) == Placement():
            advise(recipe, report)
        return report

    def try_portable(self, recipe: Recipe, placement: Placement) -> PortableTrial:
        """Try portable arithmetic where a recipe would be painted; remembered by passport."""
        with computing(recipe, placement):
            device = self._pipelines.get(recipe, placement).device
            return try_portable(device, current_passport(device, placement))

    def close(self) -> None:
        """Free models and memory."""
        self._pipelines.clear()
        self._text_cache = TextCache()
        self._ways = WayMemory()
        self._tiny_decoders = TinyDecoders()
        gc.collect()
        empty_cache()

    def load(self, recipe: Recipe, placement: Placement) -> Any:
        """Return the diffusers pipeline that paints a recipe; changing it changes pictures."""
        with computing(recipe, placement):
            return self._pipelines.get(recipe, placement).pipeline

    def _prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        with computing(recipe, placement):
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
        is_followed: bool = False,
        halt_steps: int = 0,
    ) -> tuple[tuple[Outcome, Way], ...]:
        """Paint missing parents, then a batch, and keep its ways."""
        first = recipes[0]
        ways, part = self._parents_ways(recipes, placement, watch)
        most = math.inf if halt_steps or is_followed else max_bytes()
        guide = Guide(ways=ways, halt_steps=halt_steps, max_bytes=most)
        with computing(first, placement):
            loaded = self._pipelines.get(first, placement)
            passport = _passport(first, loaded, placement)
            part.noise(lambda: loaded.preview.of_noise(recipes))
            contexts = self._contexts(first, passport, loaded.device, placement.decoder)
            painted = paint_batch(recipes, loaded, part, contexts, guide)
        for recipe, (outcome, way) in zip(recipes, painted, strict=True):
            if not isinstance(outcome, RunError) and not placement.decoder:
                way.pixels = outcome
            if way.outputs and (halt_steps or way.pixels is not None):
                self._ways.keep(recipe.id + passport.digest, way)
        return painted

    def _parents_ways(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[dict[str, Way], Watch]:
        """Return the ways of recipes' parents, painting missing ones, and a watch for the batch."""
        if not any(recipe.parent for recipe in recipes):
            return {}, watch

        def find(parent: Recipe) -> Way | None:
            return self._ways.get(parent.id + self._prepare(parent, placement).digest)

        with computing(recipes[0], placement):
            config = self._pipelines.get(recipes[0], placement).scheduler_config
            order = make_scheduler(recipes[0].scheduler, config).order
        ways, batches = missing_parents(recipes, find, order)
        steps = recipes[0].num_inference_steps * order
        part: PartWatch | None = None
        for place, (parents, halt_steps) in enumerate(batches):
            later = steps * (len(batches) - place)
            part = PartWatch(watch, later_steps=later, halt=halt_steps * order, previous=part)
            painted = self._paint(parents, placement, part, is_followed=True, halt_steps=halt_steps)
            for parent, (outcome, way) in zip(parents, painted, strict=True):
                if isinstance(outcome, RunError) and not halt_steps:
                    raise outcome
                ways[parent.id] = way
        return ways, PartWatch(watch, previous=part)

    def _within_memory(
        self, work: Callable[[], Result], recipe: Recipe, placement: Placement, watch: Watch
    ) -> Result:
        device = str(pick_device(placement.device))
        return within_memory(work, self._free_memory, watch.freed, recipe, device)

    def _run_probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        with computing(recipe, placement):
            loaded = self._pipelines.get(recipe, placement)

            # Without shortcuts: the probe needs every row computed.
            def compute(
                recipes: Sequence[Recipe], own: int, watching: CallContext
            ) -> list[torch.Tensor]:
                batch = sharing_a_call(recipes, loaded, own)
                output = call_pipeline(batch, loaded, watch, [watching])
                return [output.images, output.latents, torch.tensor(output.withheld)]

            return run_probe(recipe, compute, watch, family=loaded.files.family)

    def _contexts(
        self, recipe: Recipe, passport: Passport, device: torch.device, decoder: str
    ) -> list[CallContext]:
        """Return the shortcuts, keyed by all that may change bits, behind a tiny decoder if any."""
        if recipe.is_portable:  # Shortcuts were compared with torch's own arithmetic only.
            return []
        loras = [(lora.weights_sha256, lora.scale) for lora in recipe.loras]
        context = (
            f"{recipe.model.weights_sha256}|{recipe.dtype}|{loras}|{passport.digest}|{decoder}"
        )
        contexts: list[CallContext] = []
        if decoder:
            contexts.append(partial(self._tiny_decoders.used_by, name=decoder, device=device))
        contexts.append(partial(self._text_cache.used_by, context=context))
        contexts.append(partial(self._decoding.used_by, context=context))
        return contexts


def _passport(recipe: Recipe, loaded: Loaded, placement: Placement) -> Passport:
    quantiser = quantiser_of(recipe, loaded.files)
    return current_passport(loaded.device, placement, bool(recipe.loras), quantiser)
