"""DiffusersBackend: paint one locked batch of exactly W cells.

What a neighbour says or draws cannot reach a picture: only the width of the batch can, and that is
always W. Knows nothing of runs, libraries or screens.

    backend = DiffusersBackend()
    backend.paint(recipes, Placement(), watch)
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Passport, Recipe, Upscaler
from seedgrid.diffusion.accel import Accelerator, all_used_by, make_accelerators
from seedgrid.diffusion.backend import (
    ATTENTION_NAMES,
    LoadWatch,
    Outcome,
    Placement,
    Unwatched,
    Watch,
    even_threads,
)
from seedgrid.diffusion.determinism import determinism, restored
from seedgrid.diffusion.devices import empty_cache, pick_device
from seedgrid.diffusion.environment import current_passport
from seedgrid.diffusion.lora_layers import peft_version
from seedgrid.diffusion.memory import Result, within_memory
from seedgrid.diffusion.pipeline_cache import Loaded, PipelineCache, quiet_diffusers
from seedgrid.diffusion.pipeline_call import (
    Around,
    call_pipeline,
    cells_of,
    is_one_call,
    paint_batch,
)
from seedgrid.diffusion.portable_check import check_portable, try_portable
from seedgrid.diffusion.portable_trial import PortableTrial
from seedgrid.diffusion.probe import run_probe
from seedgrid.diffusion.probe_results import (
    ProbeReport,
    advise,
    keep_report,
    recall_report,
    report_key,
)
from seedgrid.diffusion.upscaling import Enlarger, spandrel_version
from seedgrid.diffusion.watched_parts import Watching
from seedgrid.diffusion.witness import Witness
from seedgrid.models import registry
from seedgrid.storage import starts

_KERNELS: Final = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


class DiffusersBackend:
    """The backend that paints with diffusers. See `Backend` for what each method promises."""

    def __init__(self) -> None:
        self._pipelines = PipelineCache()
        self._accelerators = make_accelerators()
        self._enlarger = Enlarger()
        self._witnesses: dict[str, Witness] = {}  # Of the last batch, where nothing was tested.
        self._tested = ""  # What was tested, by the key of its report, as last looked up.

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it."""
        return registry.find(model).card

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Load what the recipe needs and say under which passport it would be computed."""

        def prepare() -> Passport:
            with _scope(recipe, placement):
                if recipe.upscaler is not None:
                    return self._ready_to_enlarge(recipe, recipe.upscaler, placement)
                loaded = self._pipelines.get(recipe, placement, watch)
                loaded.check_settings(recipe)
                return _passport(loaded, recipe, placement)

        return self._within_memory(prepare, recipe, placement, Unwatched())

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the model is loaded already."""
        if recipe.upscaler is not None:
            return self._enlarger.has(recipe.upscaler, pick_device(placement.device))
        return self._pipelines.has(recipe, placement)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to W recipes of one `batch_key` in a batch of exactly W cells."""
        first = recipes[0]
        if len(recipes) > first.lock_width or any(r.batch_key != first.batch_key for r in recipes):
            raise ValueError("a batch holds at most lock_width recipes of one batch_key")
        return self._within_memory(
            lambda: self._paint(recipes, placement, watch), first, placement, watch
        )

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Tell whether the lock holds for recipes like this one, here; remembered by passport."""
        if recipe.upscaler is not None:  # It is made alone, without noise.
            return None
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
        """Return what a trial found of portable arithmetic where a recipe would be painted."""
        with _scope(recipe, placement):
            device = self._pipelines.get(recipe, placement).device
            return try_portable(device, current_passport(device, placement))

    def rehash(self, recipe: Recipe) -> None:
        """Compare every byte of a model's and its LoRAs' weights with what a recipe names."""
        registry.rehash(recipe)

    def close(self) -> None:
        """Let go of models and memory."""
        self._witnesses.clear()
        self._pipelines.clear()
        self._enlarger.clear()
        self._accelerators = make_accelerators()
        gc.collect()
        empty_cache()

    def renewed(self) -> DiffusersBackend:
        """Return another one with a model of its own."""
        return DiffusersBackend()

    def load(self, recipe: Recipe, placement: Placement) -> Any:
        """Return the diffusers pipeline that paints a recipe; who changes it changes pictures.

        Raises:
            ModelError: As `prepare`.
            DeviceError: As `prepare`.
        """
        with _scope(recipe, placement):
            return self._pipelines.get(recipe, placement).pipeline

    def _paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        first = recipes[0]
        with _scope(first, placement):
            if first.upscaler is not None:
                return (self._enlarger.paint(first, pick_device(placement.device), watch),)
            loaded = self._pipelines.get(first, placement)
            loaded.check_settings(first)
            passport = _passport(loaded, first, placement)
            if first.is_portable:
                check_portable(loaded.device, passport)
            watch.noise(lambda: loaded.preview.of_noise(recipes))
            # Shortcuts were compared bit for bit with torch's own arithmetic only.
            shortcuts = () if first.is_portable else self._accelerators
            quickened = _quickened(shortcuts, first, passport)
            witness = self._witness_of(recipes, loaded, passport)
            with self._untouched(loaded, first):
                painted = paint_batch(recipes, loaded, watch, _watched(quickened, witness))
            if witness is not None:
                self._witnesses[report_key(first, passport)] = witness
            return painted

    def _witness_of(
        self, recipes: Sequence[Recipe], loaded: Loaded, passport: Passport
    ) -> Witness | None:
        """Return who watches a batch for a probe that will follow, where there was none yet."""
        self._witnesses.clear()
        first = recipes[0]
        key = report_key(first, passport)
        if first.is_portable or key == self._tested or not is_one_call(recipes, loaded):
            return None
        if recall_report(first, passport) is not None:
            self._tested = key
            return None
        cells = cells_of(recipes)
        alike = (slot for slot, cell in enumerate(cells) if report_key(cell, passport) == key)
        return Witness(cells, max(alike))

    def _ready_to_enlarge(
        self, recipe: Recipe, upscaler: Upscaler, placement: Placement
    ) -> Passport:
        starts.check_there([recipe.start])
        device = pick_device(placement.device)
        self._enlarger.load(upscaler, device)
        passport = current_passport(device, placement)
        return passport.model_copy(update={"spandrel": spandrel_version()})

    def _within_memory(
        self, work: Callable[[], Result], recipe: Recipe, placement: Placement, watch: Watch
    ) -> Result:
        device = str(pick_device(placement.device))
        return within_memory(work, self.close, watch.freed, recipe, device)

    def _run_probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        with _scope(recipe, placement):
            loaded = self._pipelines.get(recipe, placement)
            passport = _passport(loaded, recipe, placement)
            witness = self._witnesses.pop(report_key(recipe, passport), None)
            probed = [each for each in self._accelerators if each.is_probed]
            quickened = _quickened(probed, recipe, passport)

            def compute(recipes: Sequence[Recipe], watching: Watching) -> list[torch.Tensor]:
                around = _watched(quickened, watching)
                output = call_pipeline(recipes, loaded, watch, around)
                return [output.images, output.latents, torch.tensor(output.withheld)]

            with self._untouched(loaded, recipe):
                denoiser = loaded.files.family.denoiser
                return run_probe(recipe, compute, watch, denoiser=denoiser, witness=witness)

    @contextmanager
    def _untouched(self, loaded: Loaded, recipe: Recipe) -> Iterator[None]:
        """Let nothing out of the block that was computed while files were touched.

        Raises:
            ModelError: As `Loaded.check_untouched`.
        """
        try:
            yield
        finally:
            if loaded.has_changed:  # Nobody knows of whose weights is what was remembered.
                self._accelerators = make_accelerators()
        loaded.check_untouched(recipe)


def _passport(loaded: Loaded, recipe: Recipe, placement: Placement) -> Passport:
    """Return where a recipe is computed now; with LoRAs, what puts them in is part of it."""
    passport = current_passport(loaded.device, placement)
    return passport.model_copy(update={"peft": peft_version()}) if recipe.loras else passport


def _watched(quickened: Around, watching: Watching | None) -> Around:
    """Return what quickens a pipeline, and lets somebody watch what comes out of the quick ways."""
    if watching is None:
        return quickened

    @contextmanager
    def around(pipeline: Any) -> Iterator[None]:
        with quickened(pipeline), watching.watching(pipeline):
            yield

    return around


def _quickened(accelerators: Sequence[Accelerator], recipe: Recipe, passport: Passport) -> Around:
    """Return what lets a call take quicker ways, which are told all that may change their bits."""
    loras = [(lora.weights_sha256, lora.scale) for lora in recipe.loras]
    context = f"{recipe.model.weights_sha256}|{recipe.dtype}|{loras}|{passport.digest}"
    return partial(all_used_by, accelerators=accelerators, context=context)


@contextmanager
def _scope(recipe: Recipe, placement: Placement) -> Iterator[None]:
    """Hold determinism, threads and attention for one computation, and put them back."""
    if placement.attention not in ATTENTION_NAMES:
        choices = ", ".join(ATTENTION_NAMES)
        raise InputError(
            "attention_unknown", field="attention", value=placement.attention, choices=choices
        )
    kernel = _KERNELS.get(placement.attention)
    threads = torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(restored(placement.switches))
        stack.enter_context(determinism("off" if recipe.is_portable else recipe.determinism))
        stack.enter_context(quiet_diffusers())
        if kernel is not None:
            stack.enter_context(sdpa_kernel(kernel))
        stack.callback(torch.set_num_threads, threads)
        torch.set_num_threads(placement.threads or even_threads(threads))
        yield
