"""Small pictures of latents while a batch is painted. They touch neither noise nor result.

A preview shows the clean picture that the denoiser expects at this step, not the noisy latents. A
linear map from latent pixels to pixels stands in for the VAE, which would cost as much as a step;
it is fitted once, when a model is loaded. Pixel-space models need none.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.generators import fresh_generators
from seedgrid.diffusion.noise_mix import mix_noise
from seedgrid.models.families import vae_scale
from seedgrid.models.files import ModelFiles
from seedgrid.models.schedulers import TABLE

MAX_PREVIEW_PX: Final = 256

_DETAIL: Final = 2
_ROUGHNESS: Final = 0.5
_RIDGE: Final = 0.1
_CALM: Final = 0.5  # A screen full of noise in a model's full colours dazzles.

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
    """How the latents of one loaded model become small pictures.

    Attributes:
        channels: Of its latents; of its pictures, where it has none.
        scale: How many pixels of the picture a latent pixel stands for, along a side.
    """

    to_pixels: ToPixels
    unpack: Callable[[torch.Tensor, int, int], torch.Tensor]
    channels: int
    scale: int

    def __call__(self, state: StepState, width: int, height: int) -> tuple[Pixels, ...]:
        """Return one RGB picture for each row of the batch."""
        with torch.no_grad():
            clean = self.unpack(expected_clean(state), height, width)
            return _as_pictures(self.to_pixels(clean))

    def of_noise(self, recipes: Sequence[Recipe]) -> tuple[Pixels, ...]:
        """Return the noise that each recipe begins from, half as strong, as an RGB picture."""
        noise = torch.stack([self._noise(recipe) for recipe in recipes])
        with torch.no_grad():
            return _as_pictures(self.to_pixels(_CALM * noise))

    def _noise(self, recipe: Recipe) -> torch.Tensor:
        """Draw as pipelines do, before anything is packed: (C, h, w), its mixes in it."""
        shape = (1, self.channels, recipe.height // self.scale, recipe.width // self.scale)
        draws = 2 if recipe.start else 1  # The first is then the encoder's.
        noise = _drawn(shape, recipe.seed, draws)
        for share in recipe.noise_mix:
            noise = mix_noise(noise, _drawn(shape, share.seed, draws), share.weight)
        return noise[0]


def _drawn(shape: tuple[int, ...], seed: int, draws: int) -> torch.Tensor:
    """Return the last of so many draws."""
    (generator,) = fresh_generators((seed,))
    return [torch.randn(shape, generator=generator) for _ in range(draws)][-1]


def _as_pictures(rgb: torch.Tensor) -> tuple[Pixels, ...]:
    """Turn RGB (n, 3, H, W) in -1 … 1 into small pictures."""
    longest = max(rgb.shape[-2:])
    if longest > MAX_PREVIEW_PX:
        shrink = MAX_PREVIEW_PX / longest
        rgb = functional.interpolate(rgb.float(), scale_factor=shrink, mode="area")
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

    How latents look is learnt `now`, or with the first preview: it costs a second and some memory
    that a run without previews has no use for.
    """
    vae = getattr(pipeline, "vae", None)
    if vae is None:
        return Preview(
            to_pixels=lambda pixels: pixels,
            unpack=lambda latents, *_: latents,
            channels=pipeline.unet.config.in_channels,
            scale=1,
        )
    scale = vae_scale(files.configs)
    channels = int(files.family.latent(files.configs)[0])
    fitted = cache(lambda: _fit_pixels(vae, channels, scale))
    if now:
        fitted()
    return Preview(
        to_pixels=lambda latents: fitted()(latents),
        unpack=partial(_unpacked, channels),
        channels=channels,
        scale=scale,
    )


def _unpacked(channels: int, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return latents as (B, C, h, w): without tokens, blocks of 2x2, or frames.

    Source: `diffusers.FluxPipeline._unpack_latents`, which is private; others pack alike.
    """
    if latents.ndim == 5:
        latents = latents[:, :, 0]
    if latents.ndim == 3:
        token_px = math.isqrt(height * width // latents.shape[1])
        latents = latents.mT.unflatten(2, (height // token_px, width // token_px))
    is_packed = latents.shape[1] == 4 * channels
    return functional.pixel_shuffle(latents, 2) if is_packed else latents


def _decode(vae: Any, latents: torch.Tensor) -> torch.Tensor:
    """Decode latents as the pipelines do."""
    config = vae.config
    if "latents_mean" in config and "latents_std" in config and config.latents_mean:
        shape = (1, -1, 1, 1)
        mean, std = (
            torch.tensor(each).view(shape) for each in (config.latents_mean, config.latents_std)
        )
        latents = latents * std + mean
    else:
        shift = getattr(config, "shift_factor", None) or 0
        latents = latents / (getattr(config, "scaling_factor", None) or 1) + shift
    if "z_dim" in config:  # A video's, of which a picture is one frame.
        latents = latents.unsqueeze(2)
    decoded: torch.Tensor = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
    return decoded[:, :, 0] if "z_dim" in config else decoded


def _fit_pixels(vae: Any, channels: int, latent_px: int) -> ToPixels:
    """Fit what a latent pixel and its eight neighbours say of its place in the picture.

    Two by two pixels for each latent one, by least squares: half of what the VAE would show, for
    a thousandth of its time. It learns from what the VAE itself makes of random latents, so it
    knows every VAE.
    """
    detail = min(_DETAIL, latent_px)
    latents = _sample_latents(channels)  # (4, C, 12, 12)
    with torch.no_grad():
        rgb = _decode(vae, latents.to(vae.device)).float().cpu().nan_to_num(0)
    small = functional.interpolate(rgb, size=(12 * detail, 12 * detail), mode="area")
    targets = functional.pixel_unshuffle(small, detail).flatten(2)  # (4, 3·d·d, 144)
    inputs = functional.unfold(_padded(latents), 3)  # (4, C·9, 144)
    solution = _least_squares(inputs, targets)  # (C·9 + 1, 3·d·d)
    kernel = solution[:-1].T.reshape(-1, latents.shape[1], 3, 3).contiguous()
    bias = solution[-1].contiguous()

    def to_pixels(clean: torch.Tensor) -> torch.Tensor:
        seen = functional.conv2d(_padded(clean.float().cpu()), kernel, bias)
        return functional.pixel_shuffle(seen, detail)

    return to_pixels


def _sample_latents(channels: int) -> torch.Tensor:
    """Smooth fields with some noise: without it the neighbours would say nothing of their own."""
    (generator,) = fresh_generators((0,))
    coarse = torch.randn(4, channels, 4, 4, generator=generator)
    smooth = functional.interpolate(coarse, scale_factor=3, mode="bilinear")
    return smooth + _ROUGHNESS * torch.randn(smooth.shape, generator=generator)


def _padded(latents: torch.Tensor) -> torch.Tensor:
    return functional.pad(latents, (1, 1, 1, 1), mode="replicate")


def _least_squares(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Solve for weights and, in the last row, the bias.

    Args:
        inputs: Shape (n, i, places).
        targets: Shape (n, o, places).
    """
    known, wanted = (part.transpose(1, 2).flatten(0, 1).double() for part in (inputs, targets))
    known = torch.cat([known, torch.ones(len(known), 1, dtype=torch.float64)], 1)
    squares = known.T @ known + _RIDGE * torch.eye(known.shape[1], dtype=torch.float64)
    solution: torch.Tensor = torch.linalg.solve(squares, known.T @ wanted)
    return solution.float()
