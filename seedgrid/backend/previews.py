"""Small pictures of latents while a batch is painted. They touch neither noise nor result.

A preview shows the clean picture that the denoiser expects at this step, not the noisy latents. A
small VAE decodes it; for a big one a linear map from latent channels to colours does, fitted once
to what the VAE itself makes of a few random latents. Pixel-space models need neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from seedgrid.backend.generators import fresh_generators
from seedgrid.backend.modelfiles import ModelFiles
from seedgrid.backend.schedulers import TABLE
from seedgrid.picture import Pixels

SMALL_DECODER_PARAMETERS: Final = 5_000_000

ToPixels = Callable[[torch.Tensor], torch.Tensor]
"""From clean latents (n, C, h, w), scaled as in the denoiser, to RGB (n, 3, H, W) in -1 … 1."""


@dataclass(frozen=True, kw_only=True)
class StepState:
    """What a scheduler was given at one step, of which a preview is made.

    Attributes:
        scheduler: Its name in the table.
        alphas_cumprod: Of the model's noise schedule; None for flows.
        prediction_type: `"epsilon"`, `"v_prediction"`, `"sample"`; flows predict a velocity.
        sigma: The noise level of a flow, 0 … 1.
    """

    scheduler: str
    model_output: torch.Tensor
    sample: torch.Tensor
    timestep: float
    alphas_cumprod: torch.Tensor | None
    prediction_type: str
    sigma: float


@dataclass(frozen=True, kw_only=True)
class Preview:
    """How the latents of one loaded model become small pictures."""

    to_pixels: ToPixels
    unpack: Callable[[torch.Tensor, int, int], torch.Tensor]

    def __call__(self, state: StepState, width: int, height: int) -> tuple[Pixels, ...]:
        """Return one RGB picture for each row of the batch.

        Args:
            state: What the scheduler was given at the step.
            width: Of the finished picture, in pixels.
            height: Of the finished picture, in pixels.
        """
        with torch.no_grad():
            clean = self.unpack(expected_clean(state), height, width)
            rgb = self.to_pixels(clean)
        rgb = (rgb.float() / 2 + 0.5).clamp(0, 1).nan_to_num(0)
        array = (rgb.permute(0, 2, 3, 1).cpu().numpy() * 255).round().astype(np.uint8)
        return tuple(array)


def expected_clean(state: StepState) -> torch.Tensor:
    """Return what the denoiser expects the noise-free latents to be.

    Source: Salimans & Ho, "Progressive distillation", 2022, appendix D, for the velocity.
    """
    sample, output = state.sample.float(), state.model_output.float()
    if output.shape[1] == 2 * sample.shape[1]:  # The second half is a learned variance.
        output = output.chunk(2, dim=1)[0]
    if state.alphas_cumprod is None:
        return sample - state.sigma * output
    last = len(state.alphas_cumprod) - 1
    alpha_squared = float(state.alphas_cumprod[min(max(round(state.timestep), 0), last)])
    alpha, sigma = alpha_squared**0.5, (1 - alpha_squared) ** 0.5
    if TABLE[state.scheduler].variance_exploding:
        sample = sample * alpha
    if state.prediction_type == "v_prediction":
        return alpha * sample - sigma * output
    if state.prediction_type == "sample":
        return output
    return (sample - sigma * output) / max(alpha, 1e-3)


def make_preview(pipeline: Any, files: ModelFiles, *, may_decode: bool) -> Preview:
    """Prepare previews for a pipeline that was just loaded and is still on the CPU.

    Args:
        pipeline: Of diffusers.
        files: Its checked folder.
        may_decode: False where using the VAE between two steps would move models about.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None:
        return Preview(to_pixels=lambda pixels: pixels, unpack=_as_they_are)
    packed = files.family.pipeline == "FluxPipeline"
    unpack = _unpacker(pipeline) if packed else _as_they_are
    parameters = sum(parameter.numel() for parameter in vae.decoder.parameters())
    if may_decode and parameters <= SMALL_DECODER_PARAMETERS:
        return Preview(to_pixels=lambda latents: _decode(vae, latents), unpack=unpack)
    return Preview(to_pixels=_fit_linear(vae), unpack=unpack)


def _as_they_are(latents: torch.Tensor, height: int, width: int) -> torch.Tensor:  # noqa: ARG001
    return latents


def _unpacker(pipeline: Any) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    """Undo Flux's packing of 2x2 latent pixels into one token."""

    def unpack(latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
        scale = pipeline.vae_scale_factor
        unpacked: torch.Tensor = pipeline._unpack_latents(latents, height, width, scale)
        return unpacked

    return unpack


def _decode(vae: Any, latents: torch.Tensor) -> torch.Tensor:
    """Decode latents as the pipelines do."""
    config = vae.config
    latents = latents / config.scaling_factor + (getattr(config, "shift_factor", None) or 0)
    decoded: torch.Tensor = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
    return decoded


def _fit_linear(vae: Any) -> ToPixels:
    """Fit RGB = latents · weights + bias to the VAE's own decoding of smooth random latents."""
    (generator,) = fresh_generators((0,))
    channels = vae.config.latent_channels
    coarse = torch.randn(4, channels, 4, 4, generator=generator)
    latents = torch.nn.functional.interpolate(coarse, scale_factor=3, mode="bilinear")
    with torch.no_grad():
        rgb = torch.nn.functional.adaptive_avg_pool2d(_decode(vae, latents).float(), 12)
    inputs = latents.permute(0, 2, 3, 1).reshape(-1, channels).double()  # (576, C)
    targets = rgb.permute(0, 2, 3, 1).reshape(-1, 3).double()  # (576, 3)
    ones = torch.ones(len(inputs), 1, dtype=torch.float64)
    solution = torch.linalg.lstsq(torch.cat([inputs, ones], 1), targets).solution.float()
    weights, bias = solution[:-1], solution[-1]

    def to_pixels(clean: torch.Tensor) -> torch.Tensor:
        cpu = clean.float().cpu()
        return torch.einsum("nchw,cr->nrhw", cpu, weights) + bias[:, None, None]

    return to_pixels
