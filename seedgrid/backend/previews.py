"""Small pictures of latents while a batch is painted. They touch neither noise nor result.

A preview shows the clean picture that the denoiser expects at this step, not the noisy latents. A
linear map from latent pixels to patches of the picture stands in for the VAE, which would cost as
much as a step; it is fitted once, when a model is loaded. Pixel-space models need none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import torch

from seedgrid.backend.families import vae_scale
from seedgrid.backend.generators import fresh_generators
from seedgrid.backend.modelfiles import ModelFiles
from seedgrid.backend.schedulers import TABLE
from seedgrid.picture import Pixels

MAX_PREVIEW_PX: Final = 256

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
        longest = max(rgb.shape[-2:])
        if longest > MAX_PREVIEW_PX:
            rgb = torch.nn.functional.interpolate(rgb, scale_factor=MAX_PREVIEW_PX / longest)
        rgb = (rgb.float() / 2 + 0.5).clamp(0, 1).nan_to_num(0)
        array = (rgb.permute(0, 2, 3, 1).cpu().numpy() * 255).round().astype(np.uint8)
        return tuple(array)


def expected_clean(state: StepState) -> torch.Tensor:
    """Return what the denoiser expects the noise-free latents to be.

    Source: Salimans & Ho, "Progressive distillation", 2022, appendix D, for the velocity.
    """
    sample: torch.Tensor = state.sample.float()
    output: torch.Tensor = state.model_output.float()
    if output.shape[1] == 2 * sample.shape[1]:  # The second half is a learned variance.
        output = output.chunk(2, dim=1)[0]
    if state.alphas_cumprod is None:
        return sample - state.sigma * output
    last = len(state.alphas_cumprod) - 1
    alpha_squared = float(state.alphas_cumprod[min(max(round(state.timestep), 0), last)])
    alpha, sigma = math.sqrt(alpha_squared), math.sqrt(1 - alpha_squared)
    if TABLE[state.scheduler].variance_exploding:
        sample = sample * alpha
    if state.prediction_type == "v_prediction":
        return alpha * sample - sigma * output
    if state.prediction_type == "sample":
        return output
    return (sample - sigma * output) / max(alpha, 1e-3)


def make_preview(pipeline: Any, files: ModelFiles, *, now: bool = True) -> Preview:
    """Prepare previews for a pipeline that was just loaded and is still on the CPU.

    Args:
        pipeline: Of diffusers.
        files: What is known of its model.
        now: Learn how latents look at once; otherwise with the first preview, for it costs a
            second and some memory that a run without previews has no use for.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None:
        return Preview(to_pixels=lambda pixels: pixels, unpack=_as_they_are)
    packed = files.family.pipeline == "FluxPipeline"
    unpack = _unpacker(pipeline) if packed else _as_they_are
    fitted = cache(lambda: _fit_patches(vae, vae_scale(files.configs)))
    if now:
        fitted()
    return Preview(to_pixels=lambda latents: fitted()(latents), unpack=unpack)


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


def _fit_patches(vae: Any, latent_px: int) -> ToPixels:
    """Fit a linear map from a latent pixel to its patch of the picture, by least squares.

    It learns from what the VAE itself makes of smooth random latents, so it knows every VAE.
    """
    (generator,) = fresh_generators((0,))
    channels = vae.config.latent_channels
    coarse = torch.randn(4, channels, 4, 4, generator=generator)
    latents = torch.nn.functional.interpolate(coarse, scale_factor=3, mode="bilinear")
    with torch.no_grad():
        rgb = _decode(vae, latents.to(vae.device)).float().cpu().nan_to_num(0)
    patches = torch.nn.functional.pixel_unshuffle(rgb, latent_px)  # (4, 3·p·p, 12, 12)
    inputs, targets = (
        # The outermost ring sees the picture's edge, where the VAE pads.
        grid[..., 1:-1, 1:-1].permute(0, 2, 3, 1).flatten(0, 2).double()
        for grid in (latents, patches)
    )  # (400, C) and (400, 3·p·p)
    ones = torch.ones(len(inputs), 1, dtype=torch.float64)
    solution = torch.linalg.lstsq(torch.cat([inputs, ones], 1), targets).solution.float()
    weights, bias = solution[:-1], solution[-1]

    def to_pixels(clean: torch.Tensor) -> torch.Tensor:
        patches = torch.einsum("nchw,cr->nrhw", clean.float().cpu(), weights)
        return torch.nn.functional.pixel_shuffle(patches + bias[:, None, None], latent_px)

    return to_pixels
