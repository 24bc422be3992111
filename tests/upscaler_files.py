"""Small upscaler networks with seeded random weights, as safetensors files. No download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pipelines import seeded
from safetensors.torch import save_file

from seedgrid.diffusion.upscaling import import_spandrel


def save_upscaler(path: Path, *, scale: int = 2, kind: str = "ESRGAN", seed: int = 0) -> Path:
    """Write a network of one of spandrel's own architectures."""
    import_spandrel()
    network = seeded(_NETWORKS[kind](scale), seed)
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path)
    return path


def _esrgan(scale: int) -> Any:
    from spandrel.architectures.ESRGAN import ESRGAN

    return ESRGAN(num_filters=4, num_blocks=1, scale=scale)


def _compact(scale: int) -> Any:
    from spandrel.architectures.Compact import Compact

    return Compact(num_feat=8, num_conv=2, upscale=scale)


_NETWORKS = {"ESRGAN": _esrgan, "Compact": _compact}


def plain_pixels(network: Any, image: torch.Tensor) -> torch.Tensor:
    """Round as everybody does: (3, H, W), 0 … 1, to (H, W, 3) of uint8."""
    return (network(image)[0].clamp(0, 1).permute(1, 2, 0) * 255).round().to(torch.uint8)
