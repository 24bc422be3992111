"""The pipelines that were used last, on their device, and what is known of their models."""

from collections import OrderedDict
from collections.abc import Iterator
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
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.diffusion.loading import empty_cache, pick_device, place, read_pipeline
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
    paths: dict[str, Path]  # All files that it was read from
    states: tuple[str, ...]  # Of these files when they were read; mapped weights change with them

    def check_settings(self, recipe: Recipe) -> None:
        """Refuse scheduler, steps or start that do not fit this model; raise `start_missing`."""
        name, steps = recipe.scheduler, recipe.num_inference_steps
        entry, family = TABLE.get(name), self.files.family
        if entry is None or family.sampling not in entry.samplings:
            choices = ", ".join(names_for(family.sampling))
            raise InputError("scheduler_unknown", field="scheduler", value=name, choices=choices)
        self.pipeline_for(recipe)  # It refuses a start where this family takes none.
        starts.check_there([recipe.start, recipe.mask])
        if family.strength_shortens:
            check_steps_run(steps, recipe.strength)
        least = min_steps(name, self.scheduler_config, family)
        if steps < least:
            raise InputError("steps_few", field="steps", value=name, limit=least)
        if entry.max_steps is not None and steps > entry.max_steps:
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
        """The image-to-image pipeline, with the same parts."""
        import diffusers

        with quiet_diffusers():
            pipeline = diffusers.AutoPipelineForImage2Image.from_pipe(self.pipeline)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline


class PipelineCache:
    """The pipelines that are loaded, the most recently used last, and tiny decoders."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[object, ...], Loaded] = OrderedDict()
        self._tiny_decoders: dict[tuple[str, torch.dtype, torch.device], Any] = {}

    def has(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether `get` would be quick."""
        return _key(recipe, placement) in self._loaded

    def get(self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None) -> Loaded:
        """Return the pipeline for a recipe, loading it if need be; `watch` may stop that.

        Raises ModelError if the model is missing, damaged or has other weights; DeviceError.
        """
        key = _key(recipe, placement)
        known = self._loaded.get(key)
        if known is not None and states(known.paths) != known.states:
            del self._loaded[key]
        if key not in self._loaded:
            while len(self._loaded) >= MAX_LOADED:
                self._loaded.popitem(last=False)
                empty_cache()
            self._loaded[key] = _load(recipe, placement, watch)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    @contextmanager
    def tiny_decoder(self, pipeline: Any, name: str, device: torch.device) -> Iterator[None]:
        """Decode with a tiny decoder in the block, as live pictures are; it takes a few MB.

        Raises `model_not_downloaded` or `model_damaged`.
        """
        key = name, pipeline.vae.dtype, device
        if key not in self._tiny_decoders:
            self._tiny_decoders[key] = _load_tiny(name, pipeline.vae.dtype).to(device)
        with replaced(pipeline, "vae", self._tiny_decoders[key]):
            yield

    def clear(self) -> None:
        """Drop all pipelines and decoders."""
        self._loaded.clear()
        self._tiny_decoders.clear()
        empty_cache()


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
    paths = files.files | {str(path): path for path in loras}
    before = states(paths)
    pipeline = read_pipeline(files, recipe, loras, watch)
    preview = make_preview(pipeline, files, now=placement.previews)
    place(pipeline, device, placement)
    return Loaded(
        pipeline=pipeline,
        files=files,
        device=device,
        scheduler_config=dict(pipeline.scheduler.config),
        preview=preview,
        paths=paths,
        states=before,
    )
