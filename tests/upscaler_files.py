"""Small upscaler networks with seeded random weights, as safetensors files. No download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pipeline_parts import seeded
from safetensors.torch import save_file


def save_upscaler(path: Path, *, scale: int = 2, kind: str = "Compact", seed: int = 0) -> Path:
    """Write a network of a kind that people publish; ESRGAN needs spandrel."""
    network = seeded(_NETWORKS[kind](scale), seed)
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path)
    return path


def _esrgan(scale: int) -> Any:
    from spandrel.architectures.ESRGAN import ESRGAN

    return ESRGAN(num_filters=4, num_blocks=1, scale=scale)


class PlainCompact(torch.nn.Module):
    """A Compact network as it was published: convolutions, slopes, and the picture added.

    Source: https://github.com/xinntao/Real-ESRGAN, `realesrgan/archs/srvgg_arch.py`.
    """

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale
        first, middle = torch.nn.Conv2d(3, 8, 3, 1, 1), torch.nn.Conv2d(8, 8, 3, 1, 1)
        last = torch.nn.Conv2d(8, 3 * scale**2, 3, 1, 1)
        slopes = torch.nn.PReLU(8), torch.nn.PReLU(8)
        self.body = torch.nn.ModuleList([first, slopes[0], middle, slopes[1], last])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        result = image
        for layer in self.body:
            result = layer(result)
        result = torch.nn.functional.pixel_shuffle(result, self.scale)
        return result + torch.nn.functional.interpolate(image, scale_factor=self.scale)


_NETWORKS = {"ESRGAN": _esrgan, "Compact": PlainCompact}


def plain_pixels(network: Any, image: torch.Tensor) -> torch.Tensor:
    """Round as everybody does: (3, H, W), 0 … 1, to (H, W, 3) of uint8."""
    return (network(image)[0].clamp(0, 1).permute(1, 2, 0) * 255).round().to(torch.uint8)
