"""The Compact network for enlarging pictures (SRVGGNetCompact), in plain torch.

The bundled model's own network is one, and works in the plain installation: any other kind is
spandrel's to know (`upscaling.py`), to which this is equal bit for bit.

Source: X. Wang et al. 2021, "Real-ESRGAN", arXiv:2107.10833; github.com/xinntao/Real-ESRGAN.

    Compact(load_file("4x-foxes.safetensors"), scale=4)(image)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass(frozen=True, eq=False)
class Compact:
    """Convolutions at the size of what is enlarged; the last gives the pixels in between.

    Attributes:
        weights: float32, by name: `body.0.weight`, …, as `models.upscalers` knows them.
        scale: How many times as wide and high the picture becomes.
    """

    weights: Mapping[str, torch.Tensor]
    scale: int

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        """Return pictures `(N, 3, H * scale, W * scale)` for `(N, 3, H, W)`, both 0 … 1."""
        result = image
        for layer in range(sum(name.endswith(".weight") for name in self.weights)):
            weight = self.weights[f"body.{layer}.weight"]
            if weight.ndim == 1:
                result = functional.prelu(result, weight)
            else:
                bias = self.weights[f"body.{layer}.bias"]
                result = functional.conv2d(result, weight, bias, padding=1)
        result = functional.pixel_shuffle(result, self.scale)
        return result + functional.interpolate(image, scale_factor=self.scale, mode="nearest")
