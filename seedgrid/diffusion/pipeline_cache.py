"""Load a diffusers pipeline for a recipe and keep the last ones; the only place that loads.

Weights are safetensors, files are local, and no code comes with a model. Knows nothing of batches.

    pipelines = PipelineCache()
    loaded = pipelines.get(recipe, Placement())
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import torch

from seedgrid.core.checks import check_steps_run
from seedgrid.core.errors import InputError, ModelError, RunError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import LoadWatch, Placement
from seedgrid.diffusion.devices import empty_cache, pick_device, place, torch_dtype
from seedgrid.diffusion.foreign_errors import foreign_errors
from seedgrid.diffusion.loading import reported_loading
from seedgrid.diffusion.loras import add_loras
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.previews import Preview, make_preview
from seedgrid.diffusion.quantised import quantised_parts
from seedgrid.models import registry
from seedgrid.models.digests import states
from seedgrid.models.families import Family
from seedgrid.models.files import ModelFiles
from seedgrid.models.loras import recorded_lora
from seedgrid.models.schedulers import TABLE, min_steps, names_for
from seedgrid.models.tiny_decoders import decoder_folder
from seedgrid.storage import starts

MAX_LOADED: Final = 2


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A pipeline on its device, with what is known about its model.

    Attributes:
        scheduler_config: Of the model's own scheduler, from which others are made.
        preview: Makes small pictures of its latents.
        loras: The files of the recipe's LoRAs, in order.
        states: Of all files when they were read; weights may be mapped, and change with them.
    """

    pipeline: Any
    files: ModelFiles
    device: torch.device
    scheduler_config: dict[str, Any]
    preview: Preview
    loras: tuple[Path, ...]
    states: tuple[str, ...]

    @property
    def has_changed(self) -> bool:
        """Whether any of the files was touched since it was read."""
        return _states(self.files, self.loras) != self.states

    def check_settings(self, recipe: Recipe) -> None:
        """Refuse what a recipe from elsewhere may ask of the wrong model.

        Raises:
            InputError: The scheduler, the number of steps or a start is nothing for this model.
            PictureError: `start_missing`.
        """
        entry = TABLE.get(recipe.scheduler)
        family = self.files.family
        if entry is None or family.sampling not in entry.samplings:
            choices = ", ".join(names_for(family.sampling))
            raise InputError(
                "scheduler_unknown", field="scheduler", value=recipe.scheduler, choices=choices
            )
        self.pipeline_for(recipe)  # Refuses a start that it cannot begin from.
        starts.check_there([recipe.start, recipe.mask])
        if family.strength_shortens:
            check_steps_run(recipe.num_inference_steps, recipe.strength)
        least = min_steps(recipe.scheduler, self.scheduler_config, family)
        if recipe.num_inference_steps < least:
            raise InputError("steps_few", field="steps", value=recipe.scheduler, limit=least)
        if entry.max_steps is not None and recipe.num_inference_steps > entry.max_steps:
            steps = recipe.num_inference_steps
            raise InputError("steps_range", field="steps", value=steps, limit=entry.max_steps)

    def pipeline_for(self, recipe: Recipe) -> Any:
        """Return the pipeline that paints a recipe: from noise alone, or from a picture."""
        if not recipe.start:
            return self.pipeline
        family = self.files.family
        if not family.from_start:
            value, name = recipe.model.id, family.pipeline
            raise InputError("start_family", field="start", value=value, family=name)
        return self._from_start

    @cached_property
    def _from_start(self) -> Any:
        """The pipeline that begins from a picture: the same parts, in diffusers' own."""
        import diffusers

        with quiet_diffusers():
            pipeline = diffusers.AutoPipelineForImage2Image.from_pipe(self.pipeline)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline


class PipelineCache:
    """The pipelines that are loaded, the most recently used last."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[object, ...], Loaded] = OrderedDict()

    def has(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether `get` would be quick."""
        return _key(recipe, placement) in self._loaded

    def get(self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None) -> Loaded:
        """Return the pipeline for a recipe, loading it if need be, which `watch` is told of.

        Raises:
            ModelError: The model is not there, damaged, or its weights are not the recipe's.
            DeviceError: The device is not there.
        """
        key = _key(recipe, placement)
        if key in self._loaded and self._loaded[key].has_changed:
            del self._loaded[key]
        if key not in self._loaded:
            while len(self._loaded) >= MAX_LOADED:
                self._loaded.popitem(last=False)
                empty_cache()
            self._loaded[key] = _load(recipe, placement, watch)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    def clear(self) -> None:
        """Let go of all pipelines."""
        self._loaded.clear()
        empty_cache()


class TinyDecoders:
    """Tiny decoders that are loaded, a few MB each, for live pictures: none is kept of those."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, torch.dtype, torch.device], Any] = {}

    @contextmanager
    def used_by(self, pipeline: Any, name: str, device: torch.device) -> Iterator[None]:
        """Let a tiny decoder decode in the block, in the number format of the model's own.

        Raises:
            ModelError: `model_not_downloaded`; `model_damaged`.
        """
        key = name, pipeline.vae.dtype, device
        if key not in self._loaded:
            self._loaded[key] = _load_tiny(name, pipeline.vae.dtype).to(device)
        with replaced(pipeline, "vae", self._loaded[key]):
            yield


def _load_tiny(name: str, dtype: torch.dtype) -> Any:
    from diffusers import AutoencoderTiny

    folder = decoder_folder(name)
    with (
        foreign_errors(lambda _, reason: ModelError("model_damaged", value=name, file=reason)),
        quiet_diffusers(),
    ):
        return AutoencoderTiny.from_pretrained(
            folder, torch_dtype=dtype, use_safetensors=True, local_files_only=True
        )


def _key(recipe: Recipe, placement: Placement) -> tuple[object, ...]:
    device = str(pick_device(placement.device))
    parts = (placement.offload, placement.vae_slicing, placement.vae_tiling)
    layout = (placement.channels_last, placement.attention == "sliced")
    loras = tuple((lora.id, lora.weights_sha256) for lora in recipe.loras)
    return (recipe.model, recipe.dtype, device, loras, *parts, *layout)


def _load(recipe: Recipe, placement: Placement, watch: LoadWatch | None) -> Loaded:
    device = pick_device(placement.device)
    files = registry.find_recorded(recipe.model, to_paint=recipe.dtype).files
    loras = tuple(recorded_lora(lora) for lora in recipe.loras)
    before = _states(files, loras)
    dtype = torch_dtype(recipe.dtype)
    pipeline_class = _pipeline_class(files.family)
    with (
        foreign_errors(
            lambda _, reason: ModelError("model_damaged", value=recipe.model.id, file=reason)
        ),
        quiet_diffusers(),
        reported_loading(files.num_parameters, dtype, watch),
    ):
        given = dict.fromkeys(files.absent) | quantised_parts(files, recipe)
        pipeline = _read_pipeline(pipeline_class, files, dtype, given)
    with quiet_diffusers():  # It tells of each part for which a LoRA has no layers.
        add_loras(pipeline, recipe, loras)
    pipeline.set_progress_bar_config(disable=True)
    preview = make_preview(pipeline, files, now=placement.previews)
    place(pipeline, device, placement)
    return Loaded(
        pipeline=pipeline,
        files=files,
        device=device,
        scheduler_config=dict(pipeline.scheduler.config),
        preview=preview,
        loras=loras,
        states=before,
    )


def _states(files: ModelFiles, loras: Sequence[Path]) -> tuple[str, ...]:
    return states(files.files | {str(path): path for path in loras})


def _pipeline_class(family: Family) -> Any:
    """Import a family's class and all that it needs: what fails there is no fault of a model's."""
    with foreign_errors(
        # diffusers says the innermost reason last.
        lambda error, _: RunError("library_import", value=str(error).strip().split("\n")[-1][:300])
    ):
        import diffusers

        with quiet_diffusers():
            return getattr(diffusers, family.pipeline)


def _read_pipeline(
    pipeline_class: Any, files: ModelFiles, dtype: torch.dtype, given: dict[str, Any]
) -> Any:
    if files.checkpoint is not None:
        return pipeline_class.from_single_file(
            str(files.checkpoint),
            config=str(files.folder),
            dtype=dtype,
            local_files_only=True,
            **given,
        )
    return pipeline_class.from_pretrained(
        files.folder,
        dtype=dtype,
        variant=files.variant,
        use_safetensors=True,
        local_files_only=True,
        **given,
    )


@contextmanager
def quiet_diffusers() -> Iterator[None]:
    """Keep diffusers' and transformers' progress bars and notices from the terminal."""
    import diffusers.utils.logging as diffusers_logging
    import transformers.utils.logging as transformers_logging

    libraries = (diffusers_logging, transformers_logging)
    before = [(library, library.get_verbosity()) for library in libraries]
    shown = [(library, library.is_progress_bar_enabled()) for library in libraries]
    try:
        for library in libraries:
            library.set_verbosity(logging.ERROR)
            library.disable_progress_bar()
        yield
    finally:
        for library, verbosity in before:
            library.set_verbosity(verbosity)
        for library, was_shown in shown:
            if was_shown:
                library.enable_progress_bar()
