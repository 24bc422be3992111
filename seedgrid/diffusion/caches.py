"""Caches for later batches: loaded pipelines, encoded prompts, where decoding in pairs is exact."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from seedgrid.core.checks import check_steps_run
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.finals import free_bytes
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import LoadWatch, Placement
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.diffusion.loading import empty_cache, move_to_device, pick_device, read_pipeline
from seedgrid.diffusion.previews import Preview, make_preview
from seedgrid.models import registry
from seedgrid.models.files import ModelFiles
from seedgrid.models.hub import decoder_folder
from seedgrid.models.loras import LORAS
from seedgrid.models.schedulers import TABLE, min_steps, names_for
from seedgrid.storage import starts
from seedgrid.storage.cache import recall, remember_one, states

Kept = TypeVar("Kept")

_MAX_LOADED: Final = 2
_KEPT_TEXT_BYTES: Final = 64 * 1024**2
_ENCODERS: Final = ("text_encoder", "text_encoder_2", "text_encoder_3")
_PAIRS: Final = "pairs"  # The file of the cache folder with the results of PairDecoder

_Key = tuple[object, ...]  # All that a row of an encoder's output depends on
_Row = tuple[list[torch.Tensor | None], TreeSpec]  # A row of each output tensor; how they nest


class SizedCache(Generic[Kept]):
    """Values by key, up to a number of bytes; the least recently used ones are dropped first."""

    def __init__(self, max_bytes: float) -> None:
        self._entries: OrderedDict[Hashable, tuple[Kept, int]] = OrderedDict()
        self._max_bytes = max_bytes
        self._num_bytes = 0

    def get(self, key: Hashable) -> Kept | None:
        """Return a key's value, which becomes the most recently used; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: Hashable, value: Kept, num_bytes: int) -> None:
        """Store a value; to make room, drop the least recently used, and this one last."""
        self._num_bytes += num_bytes - self._entries.pop(key, (None, 0))[1]
        self._entries[key] = value, num_bytes
        while self._num_bytes > self._max_bytes:
            self._num_bytes -= self._entries.popitem(last=False)[1][1]


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A pipeline on its device, with data about its model."""

    pipeline: Any
    files: ModelFiles
    device: torch.device
    scheduler_config: dict[str, Any]  # Of the model's own scheduler, from which others are made
    preview: Preview  # Makes small pictures of its latents
    paths: dict[str, Path]  # All files that it was read from
    states: tuple[str, ...]  # Of these files before loading: mapped weights change with them

    def check_settings(self, recipe: Recipe) -> None:
        """Raise an error if scheduler, steps or start picture do not fit this model."""
        name, steps = recipe.scheduler, recipe.num_inference_steps
        entry, family = TABLE.get(name), self.files.family
        if entry is None or family.sampling not in entry.samplings:
            choices = ", ".join(names_for(family.sampling))
            raise InputError("scheduler_unknown", field="scheduler", value=name, choices=choices)
        self.pipeline_for(recipe)  # Raises `start_family`.
        starts.check_there([recipe.start, recipe.mask])
        if family.strength_shortens:
            check_steps_run(steps, recipe.strength)
        fewest = min_steps(name, self.scheduler_config, family)
        if steps < fewest:
            raise InputError("steps_few", field="steps", value=name, limit=fewest)
        if entry.max_steps is not None and steps > entry.max_steps:
            raise InputError("steps_range", field="steps", value=steps, limit=entry.max_steps)

    def pipeline_for(self, recipe: Recipe) -> Any:
        """Return the pipeline, image-to-image if a recipe has a start; raise `start_family`."""
        if not recipe.start:
            return self.pipeline
        family = self.files.family
        if not family.image_to_image:
            value, name = recipe.model.id, family.pipeline
            raise InputError("start_family", field="start", value=value, family=name)
        return self._image_to_image

    @cached_property
    def _image_to_image(self) -> Any:
        """The image-to-image pipeline, which shares all parts with `pipeline`."""
        import diffusers

        with quiet_diffusers():
            pipeline = diffusers.AutoPipelineForImage2Image.from_pipe(self.pipeline)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline


class PipelineCache:
    """Loaded pipelines, two where memory holds them, the last used last; and tiny decoders."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[object, ...], LoadedModel] = OrderedDict()
        self._tiny_decoders: dict[tuple[str, torch.dtype, torch.device], Any] = {}

    def has(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the pipeline is loaded already."""
        return _key(recipe, placement) in self._loaded

    def get(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> LoadedModel:
        """Return the pipeline for a recipe; load it if it is not loaded, or its files have changed.

        Raises ModelError if the model is missing or damaged, or has other weights than the recipe
        names; DeviceError; what `read_pipeline` raises; and what `watch` raises.
        """
        key = _key(recipe, placement)
        if key in self._loaded and states(self._loaded[key].paths) != self._loaded[key].states:
            del self._loaded[key]
        if key not in self._loaded:
            num_bytes = registry.find_recorded(recipe.model).files.weights_bytes(recipe.dtype)
            while len(self._loaded) >= _MAX_LOADED or (self._loaded and free_bytes() < num_bytes):
                self._loaded.popitem(last=False)
                empty_cache()
            self._loaded[key] = _load(recipe, placement, watch)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    @contextmanager
    def tiny_decoder(self, pipeline: Any, name: str, device: torch.device) -> Iterator[None]:
        """In the block, replace the VAE by a tiny decoder of a few MB, as live pictures do.

        `name` is the decoder's Hub id. Raises `model_not_downloaded` or `model_damaged`.
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


def _load(recipe: Recipe, placement: Placement, watch: LoadWatch | None) -> LoadedModel:
    device = pick_device(placement.device)
    files = registry.find_recorded(recipe.model, to_paint=recipe.dtype).files
    loras = tuple(LORAS.recorded(lora) for lora in recipe.loras)
    paths = files.files | {str(path): path for path in loras}
    states_before = states(paths)
    pipeline = read_pipeline(files, recipe, loras, watch)
    preview = make_preview(pipeline, files, now=placement.previews)
    move_to_device(pipeline, device, placement)
    return LoadedModel(
        pipeline=pipeline,
        files=files,
        device=device,
        scheduler_config=dict(pipeline.scheduler.config),
        preview=preview,
        paths=paths,
        states=states_before,
    )


class TextCache:
    """Rows of text encoders' outputs, up to 64 MB.

    Because of the lock, a row of a text encoder's batch depends on its own prompt alone, at a fixed
    batch width. So rows are cached one by one, but a batch with any uncached row is encoded whole.
    """

    def __init__(self) -> None:
        self._rows = SizedCache[_Row](_KEPT_TEXT_BYTES)

    @contextmanager
    def applied_to(self, pipeline: Any, context: str) -> Iterator[None]:
        """Use the cache in the block; `context` names all that outputs depend on besides inputs."""
        with ExitStack() as stack:
            for name in _ENCODERS:
                encoder = getattr(pipeline, name, None)
                if encoder is not None:
                    forward = partial(self._recall_or_run, encoder.forward, f"{name}|{context}")
                    stack.enter_context(replaced(encoder, "forward", forward))
            yield

    def _recall_or_run(
        self, forward: Callable[..., Any], context: str, *args: Any, **kwargs: Any
    ) -> Any:
        keys = _row_keys(context, args, kwargs)
        cached_rows = [row for row in map(self._rows.get, keys) if row is not None]
        if keys and len(cached_rows) == len(keys):
            rows, specs = zip(*cached_rows, strict=True)
            columns = zip(*rows, strict=True)
            parts = [None if part[0] is None else torch.stack(part) for part in columns]
            return tree_unflatten(parts, specs[0])
        output = forward(*args, **kwargs)
        parts, spec = tree_flatten(output, is_leaf=lambda each: not isinstance(each, dict | tuple))
        if all(_has_rows(part, len(keys)) for part in parts):
            for index, key in enumerate(keys):
                row = [None if part is None else part[index].clone() for part in parts]
                num_bytes = sum(part.nbytes for part in row if part is not None)
                self._rows.put(key, (row, spec), num_bytes)
        return output


def _has_rows(part: Any, width: int) -> bool:
    return part is None or (isinstance(part, torch.Tensor) and part.shape[:1] == (width,))


def _row_keys(context: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Key]:
    """Return one key for each row of the batch; an empty list without a batch of token ids."""
    named: list[tuple[object, Any]] = [*enumerate(args), *kwargs.items()]
    ids = next((value for _, value in named if isinstance(value, torch.Tensor)), None)
    if ids is None or ids.ndim != 2 or ids.is_floating_point():
        return []
    width = len(ids)

    def key(row: int) -> _Key:
        parts: list[object] = [context, width]
        for name, value in named:
            if isinstance(value, torch.Tensor):
                own = value[row] if value.shape[:1] == (width,) else value
                parts += [name, value.shape, value.dtype, repr(own.tolist())]
            else:
                parts += [name, repr(value)]
        return tuple(parts)

    return [key(row) for row in range(width)]


class PairDecoder:
    """Decodes latents in pairs, for each kind of batch for which this gave the same bits.

    On a CPU the VAE computes the pictures of a batch one after another, so decoding two at a time
    is as quick and takes less memory. But some kernels add in another order for another number of
    pictures. So the first batch of each kind (model, environment, shape) is decoded both as a whole
    and in pairs, and whether the results were equal is remembered in the cache folder.
    """

    @cached_property
    def _equal_by_key(self) -> dict[str, bool]:
        return recall(_PAIRS)

    @contextmanager
    def applied_to(self, pipeline: Any, context: str) -> Iterator[None]:
        """Decode in pairs in the block, where that gives the same bits for this `context`."""
        vae = getattr(pipeline, "vae", None)
        if vae is None:
            yield
            return
        original = vae.decode

        def decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            can_be_split = latents.is_cpu and len(latents) > 2 and len(latents) % 2 == 0
            if not can_be_split or kwargs.get("return_dict", True):
                return original(latents, *args, **kwargs)
            return (self._decode(latents, lambda part: original(part, *args, **kwargs), context),)

        with replaced(vae, "decode", decode):
            yield

    def _decode(
        self, latents: torch.Tensor, decode: Callable[..., Any], context: str
    ) -> torch.Tensor:
        kind = f"{context}|{tuple(latents.shape)}|{latents.dtype}"
        key = hashlib.sha256(kind.encode()).hexdigest()
        if self._equal_by_key.get(key) is True:
            return torch.cat([decode(pair)[0] for pair in latents.split(2)])
        pictures: torch.Tensor = decode(latents)[0]
        if key not in self._equal_by_key:
            pairs = torch.cat([decode(pair)[0] for pair in latents.split(2)])
            self._equal_by_key[key] = torch.equal(pairs, pictures)
            remember_one(_PAIRS, key, self._equal_by_key[key])
        return pictures
