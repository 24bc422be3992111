"""Decode live pictures by a tiny decoder in place of the model's own.

What is kept is never decoded so: its pixels are others. Knows nothing of runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from seedgrid.core.errors import ModelError
from seedgrid.diffusion.foreign_errors import foreign_errors
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.pipeline_cache import quiet_diffusers
from seedgrid.models.tiny_decoders import decoder_folder


class TinyDecoders:
    """The tiny decoders that are loaded, a few MB each."""

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
            self._loaded[key] = _load(name, pipeline.vae.dtype).to(device)
        with replaced(pipeline, "vae", self._loaded[key]):
            yield


def _load(name: str, dtype: torch.dtype) -> Any:
    from diffusers import AutoencoderTiny

    folder = decoder_folder(name)
    with (
        foreign_errors(lambda _, reason: ModelError("model_damaged", value=name, file=reason)),
        quiet_diffusers(),
    ):
        return AutoencoderTiny.from_pretrained(
            folder, torch_dtype=dtype, use_safetensors=True, local_files_only=True
        )
