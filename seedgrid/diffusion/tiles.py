"""Tell of each tile of pictures that are decoded in tiles, and stop between two of them.

Decoding a large final takes as long as many steps. Changes no bit: who listens is called before a
tile is decoded, with nothing of it in hand.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.patch import replaced


@contextmanager
def reported_tiles(pipeline: Any, watch: Watch) -> Iterator[None]:
    """Tell `watch` of each tile that a pipeline's VAE decodes in the block.

    A VAE that does not say how it cuts is asked only whether to go on.

    Raises:
        RunCancelled: Out of the pipeline's call, at the first tile after the wish.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None or not getattr(vae, "use_tiling", False):
        yield
        return
    original = vae.tiled_decode

    def tiled_decode(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        total, number = _num_tiles(vae, latents), 0

        def before(*_: Any) -> None:
            nonlocal number
            number += 1
            if watch.cancelled:
                raise RunCancelled("run_cancelled")
            if number <= total:
                watch.tile(number, total)

        listening = vae.decoder.register_forward_pre_hook(before)
        try:
            return original(latents, *args, **kwargs)
        finally:
            listening.remove()

    with replaced(vae, "tiled_decode", tiled_decode):
        yield


def _num_tiles(vae: Any, latents: torch.Tensor) -> int:
    """Return how many tiles there will be; 0 where the VAE cuts in a way of its own.

    Source:
        diffusers' AutoencoderKL.tiled_decode
    """
    size = getattr(vae, "tile_latent_min_size", None)
    overlap = getattr(vae, "tile_overlap_factor", None)
    if size is None or overlap is None:
        return 0
    stride = int(size * (1 - overlap))
    height, width = latents.shape[-2:]
    return math.ceil(height / stride) * math.ceil(width / stride)
