"""Enlarge a picture with an upscaler network, tile by tile, in float32.

"Compact" networks (SRVGGNetCompact), like the bundled one, are computed here with torch alone, with
the same bits as by spandrel, which loads and computes all other networks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional

from seedgrid.core.errors import ModelError, RunCancelled, RunError, is_memory_error
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe, Upscaler
from seedgrid.diffusion.backend import Outcome, Placement, Watch
from seedgrid.diffusion.environment import current_passport, torch_settings
from seedgrid.diffusion.libraries import foreign_errors
from seedgrid.diffusion.loading import pick_device
from seedgrid.models.files import read_header
from seedgrid.models.shelf import UPSCALERS, compact_scale
from seedgrid.storage import starts

_TILE_PX: Final = 128
_MARGIN_PX: Final = 16  # Border around a tile, enlarged with the tile and then cut off
_CHANNELS: Final = 3
_PREVIEW_STEP: Final = 4  # Previews show every fourth pixel of every fourth row
_MAX_SCALE: Final = 8  # Of a network: with 64, a picture of 2048 pixels would take 50 gigabytes


@dataclass(frozen=True, eq=False)
class Compact:
    """An SRVGGNetCompact: convolutions at the input's size, then a pixel shuffle.

    Source: X. Wang et al. 2021, "Real-ESRGAN", arXiv:2107.10833; github.com/xinntao/Real-ESRGAN.
    """

    weights: Mapping[str, torch.Tensor]  # float32, by name: `body.0.weight`, …
    scale: int  # How many times as wide and high the picture becomes

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


class Enlarger:
    """Enlarges pictures; the network that was used last stays loaded."""

    def __init__(self) -> None:
        self._key: tuple[Upscaler, str] | None = None
        self._network: Any = None

    def has(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the network is loaded already."""
        return self._key == (recipe.upscaler, str(pick_device(placement.device)))

    def prepare(self, recipe: Recipe, upscaler: Upscaler, placement: Placement) -> Passport:
        """Load the network, and return the enlarged picture's passport."""
        starts.check_there([recipe.start])
        device = pick_device(placement.device)
        with torch_settings(recipe, placement):
            network = self.load(upscaler, device)
            libraries = () if isinstance(network, Compact) else ("spandrel",)
            return current_passport(device, placement, libraries)

    def enlarge(
        self, recipe: Recipe, upscaler: Upscaler, placement: Placement, watch: Watch
    ) -> Outcome:
        """Enlarge a recipe's start picture to the recipe's size."""
        device = pick_device(placement.device)
        with torch_settings(recipe, placement):
            return _enlarge(recipe, self.load(upscaler, device), device, watch)

    def clear(self) -> None:
        """Drop the network."""
        self._key = self._network = None

    def load(self, upscaler: Upscaler, device: torch.device) -> Any:
        """Return a network with spandrel's attributes (`scale`, …), loading it if need be.

        Raises `upscaler_library` if it needs spandrel, which is missing; `upscaler_unknown` if it
        is unknown to spandrel, not RGB, or its scale not 2 … 8; and what `Shelf.recorded` raises.
        """
        path = UPSCALERS.recorded(upscaler)  # Checks the file's digest each time
        key = (upscaler, str(device))
        if self._key != key:
            self.clear()
            network = _load_compact(path, device) or _load_by_spandrel(path, device, upscaler.id)
            if not 2 <= network.scale <= _MAX_SCALE:
                raise ModelError("upscaler_unknown", value=upscaler.id)
            self._network, self._key = network, key
        return self._network


def _enlarge(recipe: Recipe, network: Any, device: torch.device, watch: Watch) -> Outcome:
    """Enlarge a start picture to the recipe's size or beyond; then shrink it, by Lanczos."""
    pixels, size = starts.pixels(recipe.start), (recipe.width, recipe.height)
    sizes = _sizes(pixels.shape[1], pixels.shape[0], size, network.scale)
    total, numbers = sum(len(_corners(*each)) for each in sizes), count(1)

    def show(canvas: Pixels) -> None:
        small = canvas[::_PREVIEW_STEP, ::_PREVIEW_STEP]
        watch.step(next(numbers), total, lambda: (small.copy(),))

    with foreign_errors(lambda _, reason: RunError("pipeline_refused", reason=reason)):
        for _ in sizes:
            pixels = _enlarged(pixels, network, device, watch, show)
            if not pixels.size:
                return RunError("picture_nan")
    if pixels.shape[:2] == size[::-1]:
        return pixels
    return np.array(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))


def _enlarged(
    pixels: Pixels, network: Any, device: torch.device, watch: Watch, show: Callable[[Pixels], None]
) -> Pixels:
    """Return a picture enlarged once by a network; an empty one if the network returns NaN."""
    height, width, _ = pixels.shape
    scale = network.scale
    # Until a tile is done, previews show it enlarged by interpolation.
    canvas = np.array(Image.fromarray(pixels).resize((width * scale, height * scale)))
    for top, left in _corners(width, height):
        if watch.cancelled:
            raise RunCancelled("run_cancelled")
        tile = _enlarged_tile(pixels, top, left, network, device)
        if not np.isfinite(tile).all():
            return np.empty((0, 0, _CHANNELS), np.uint8)
        target = canvas[top * scale :, left * scale :]
        target[: tile.shape[0], : tile.shape[1]] = (tile * 255).round()
        show(canvas)
    return canvas


def _load_compact(path: Path, device: torch.device) -> Compact | None:
    scale = compact_scale(read_header(path, path.name))
    if scale is None:
        return None
    weights = load_file(path, device=str(device))
    return Compact({name: weight.float() for name, weight in weights.items()}, scale)


def _load_by_spandrel(path: Path, device: torch.device, name: str) -> Any:
    try:
        import spandrel
    except (ImportError, RuntimeError) as error:  # RuntimeError: torchvision does not fit torch
        raise ModelError("upscaler_library") from error
    try:
        network = spandrel.ModelLoader(device=device).load_from_file(path)
    except Exception as error:  # What spandrel raises for a wrong file is not documented.
        if is_memory_error(error):
            raise
        raise ModelError("upscaler_unknown", value=name) from error
    if (network.input_channels, network.output_channels) != (_CHANNELS, _CHANNELS):
        raise ModelError("upscaler_unknown", value=name)
    return network.eval()


def _sizes(width: int, height: int, target: tuple[int, int], scale: int) -> list[tuple[int, int]]:
    """Return the size before each enlargement, until the target is reached."""
    sizes = []
    while width < target[0] or height < target[1]:
        sizes.append((width, height))
        width, height = width * scale, height * scale
    return sizes


def _corners(width: int, height: int) -> list[tuple[int, int]]:
    """Return top and left of each tile of a picture, row by row."""
    return list(product(range(0, height, _TILE_PX), range(0, width, _TILE_PX)))


def _enlarged_tile(pixels: Pixels, top: int, left: int, network: Any, device: torch.device) -> Any:
    """Return the tile with this corner, enlarged: (rows, columns, 3), 0 … 1."""
    scale, extent = network.scale, _TILE_PX + _MARGIN_PX
    first_row, first_column = max(0, top - _MARGIN_PX), max(0, left - _MARGIN_PX)
    with_margin = pixels[first_row : top + extent, first_column : left + extent].copy()
    image = torch.from_numpy(with_margin).permute(2, 0, 1)[None]  # (1, 3, h, w)
    image = image.to(device).float() / 255
    with torch.inference_mode():
        large = network(image)[0].clamp(0, 1).permute(1, 2, 0).cpu().numpy()
    expected = (image.shape[2] * scale, image.shape[3] * scale, _CHANNELS)
    if large.shape != expected:
        shapes = {"value": large.shape, "wanted": expected}
        raise RunError("picture_shape", **{k: "x".join(map(str, v)) for k, v in shapes.items()})
    large = large[(top - first_row) * scale :, (left - first_column) * scale :]
    return large[: _TILE_PX * scale, : _TILE_PX * scale]
