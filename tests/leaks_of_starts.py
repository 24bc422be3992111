"""Leaks to plant where a picture begins from another, is decoded in tiles, or has a LoRA.

Each takes a pipeline and a `pytest.MonkeyPatch` and is undone with it, as those of `leaks.py`.
"""

from __future__ import annotations

from typing import Any, Final

import diffusers
import pytest
import torch
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from leaks import Plant, of_output, on_output

_TINY: Final = 1e-6


def _running_mean(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A norm of the encoder that was left in training mode: what came before reaches in."""
    state = {"mean": torch.zeros(())}

    def norm(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        state["mean"] = 0.9 * state["mean"] + 0.1 * output.nan_to_num(0, 0, 0).mean()
        return output + state["mean"] * 1e-3

    on_output(_pipeline.vae.encoder.conv_in, patch, norm)


def _scale_of_the_largest_so_far(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """A calibrated scale that grows with every picture that is encoded."""
    state = {"largest": 0.0}

    def calibrated(_module: Any, _args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        largest = float(output.nan_to_num(0).abs().max())
        state["largest"] = max(state["largest"], largest, 1000.0 if output.isnan().any() else 0.0)
        return (output / state["largest"] * 127).round() / 127 * state["largest"]

    on_output(pipeline.vae.encoder.conv_out, patch, calibrated)


def _one_draw_for_all(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """The start's own noise comes from the process, not from the picture's generator."""
    original = DiagonalGaussianDistribution.sample

    def sample(self: Any, generator: Any = None) -> torch.Tensor:  # noqa: ARG001 (it is the leak)
        return original(self, None)

    patch.setattr(DiagonalGaussianDistribution, "sample", sample)


def _noised_with_a_mean(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """What is laid over the start is made even over the batch."""
    original = diffusers.DDIMScheduler.add_noise

    def add_noise(self: Any, start: Any, noise: torch.Tensor, timesteps: Any) -> Any:
        return original(self, start, noise - noise.mean(dim=0) * _TINY, timesteps)

    patch.setattr(diffusers.DDIMScheduler, "add_noise", add_noise)


def _noise_in_rows_of_size(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """All are scaled to the loudest one's noise."""
    original = diffusers.DDIMScheduler.add_noise

    def add_noise(self: Any, start: Any, noise: torch.Tensor, timesteps: Any) -> Any:
        return original(self, start, noise * (1 + noise.abs().max() * _TINY), timesteps)

    patch.setattr(diffusers.DDIMScheduler, "add_noise", add_noise)


def _of_a_tile(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Only what is as small as a tile is normalised over the batch."""

    def tile(_module: Any, args: Any, _kwargs: Any, output: torch.Tensor) -> torch.Tensor:
        is_tile = args[0].shape[-1] <= pipeline.vae.tile_latent_min_size
        return output + output.nan_to_num(0, 0, 0).mean(dim=0) * _TINY if is_tile else output

    on_output(pipeline.vae.decoder.conv_in, patch, tile)


def _seam(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Tiles are blended over the edge of another picture's."""
    original = pipeline.vae.blend_h

    def blend(left: torch.Tensor, right: torch.Tensor, extent: int) -> torch.Tensor:
        blended: torch.Tensor = original(left, right, extent)
        return blended + blended.roll(1, dims=0).nan_to_num(0, 0, 0) * 1e-4

    patch.setattr(pipeline.vae, "blend_h", blend)


def _in_a_lora(change: Any, part: str) -> Plant:
    def plant(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        name = next(name for name, _ in pipeline.unet.named_modules() if name.endswith(part))
        of_output(f"unet.{name}", change)(pipeline, patch)

    return plant


def _rounded_together(tensor: torch.Tensor) -> torch.Tensor:
    scale = tensor.nan_to_num(0).abs().max().clamp(min=1e-9) / 127
    return (tensor / scale).round() * scale


OF_STARTS: Final[dict[str, Plant]] = {
    "encoder: a running mean": _running_mean,
    "encoder: the largest so far": _scale_of_the_largest_so_far,
    "start: the process's own noise": _one_draw_for_all,
    "start: a mean of the noise": _noised_with_a_mean,
    "start: the loudest noise": _noise_in_rows_of_size,
}
OF_TILES: Final[dict[str, Plant]] = {
    "tiles: a mean of the batch": _of_a_tile,
    "tiles: another picture's edge": _seam,
}
OF_LORAS: Final[dict[str, Plant]] = {
    "lora: a mean of the batch": _in_a_lora(lambda t: t + t.mean(dim=0) * 1e-3, "lora_B.lora_0"),
    "lora: int8 with one scale": _in_a_lora(_rounded_together, "lora_A.lora_0"),
    "lora: the neighbour before": _in_a_lora(
        lambda t: t + t.roll(1, 0) * 1e-3, "attn2.to_k.lora_B.lora_0"
    ),
}
"""By what leaks and how."""
