"""Keep the pipelines that were used last on their device.

loaded = PipelineCache().get(recipe, Placement())
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import torch

from seedgrid.core.checks import check_steps_run
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import LoadWatch, Placement
from seedgrid.diffusion.devices import empty_cache, pick_device, place
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.diffusion.loading import read_pipeline
from seedgrid.diffusion.previews import Preview, make_preview
from seedgrid.models import registry
from seedgrid.models.files import ModelFiles
from seedgrid.models.hub import decoder_folder
from seedgrid.models.loras import LORAS
from seedgrid.models.schedulers import TABLE, min_steps, names_for
from seedgrid.storage import starts
from seedgrid.storage.cache import states

MAX_LOADED: Final = 2


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A pipeline on its device, with what is known about its model."""

    pipeline: Any
    files: ModelFiles
    device: torch.device
    scheduler_config: dict[str, Any]  # Of the model's own scheduler, from which others are made
    preview: Preview  # Makes small pictures of its latents
    loras: tuple[Path, ...]  # The files of the recipe's LoRAs, in order
    states: tuple[str, ...]  # Of all files when they were read; mapped weights change

    @property
    def has_changed(self) -> bool:
        """Whether any of the files was touched since it was read."""
        return _states(self.files, self.loras) != self.states

    def check_settings(self, recipe: Recipe) -> None:
        """Refuse scheduler, steps or start that do not fit this model; raise `start_missing`."""
        entry = TABLE.get(recipe.scheduler)
        family = self.files.family
        if entry is None or family.sampling not in entry.samplings:
            choices = ", ".join(names_for(family.sampling))
            raise InputError(
                "scheduler_unknown", field="scheduler", value=recipe.scheduler, choices=choices
            )
        self.pipeline_for(recipe)  # It refuses a start where this family takes none.
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
        """Return the pipeline for a recipe, loading it if need be; `watch` may stop that.

        Raises ModelError if the model is missing, damaged or has other weights; DeviceError.
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
        """Drop all pipelines."""
        self._loaded.clear()
        empty_cache()


class TinyDecoders:
    """The tiny decoders that are loaded, a few MB each; they decode live pictures only."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, torch.dtype, torch.device], Any] = {}

    @contextmanager
    def used_by(self, pipeline: Any, name: str, device: torch.device) -> Iterator[None]:
        """Decode by it, in the VAE's format; raise `model_not_downloaded` or `model_damaged`."""
        key = name, pipeline.vae.dtype, device
        if key not in self._loaded:
            self._loaded[key] = _load_tiny(name, pipeline.vae.dtype).to(device)
        with replaced(pipeline, "vae", self._loaded[key]):
            yield


def _load_tiny(name: str, dtype: torch.dtype) -> Any:
    from diffusers import AutoencoderTiny

    folder = decoder_folder(name)
    if folder is None:
        raise ModelError("model_not_downloaded", value=name)
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
    loras = tuple(LORAS.recorded(lora) for lora in recipe.loras)
    before = _states(files, loras)
    pipeline = read_pipeline(files, recipe, loras, watch)
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
