"""Small preview pictures while a batch is painted. They change neither the noise nor the result.

A preview shows the clean picture that the denoiser predicts, not the noisy latents. Decoding with
the VAE would take as long as a step, so previews use a linear map from latent pixels to pixels,
which is fitted once for each loaded model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from torch.nn import functional

from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.noise import fresh_generators, mix_noise
from seedgrid.models.families import vae_scale
from seedgrid.models.files import ModelFiles
from seedgrid.models.schedulers import TABLE

_MAX_PX: Final = 256  # The longer side of a preview
_DETAIL: Final = 2  # Width of a latent pixel in a preview, in pixels
_ROUGHNESS: Final = 0.5  # Strength of the noise in the latents to which the map is fitted
_RIDGE: Final = 0.1  # Weight of the fit's regularization
_NOISE_STRENGTH: Final = 0.5  # Factor on shown noise: full strength is unpleasant to look at

# From clean latents (n, C, h, w), scaled as in the denoiser, to RGB (n, 3, H, W) in -1 … 1
ToPixels = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Makes small pictures of the latents of one loaded model."""

    vae: Any  # None for a model that denoises pixels, not latents
    channels: int  # Of the latents
    scale: int  # Width of a latent pixel in the picture, in pixels
    is_flow: bool  # Whether the denoiser predicts a flow's velocity

    @cached_property
    def to_pixels(self) -> ToPixels:
        """The map from clean latents to pixels, fitted at the first use, which takes a second."""
        if self.vae is None:
            return lambda pixels: pixels
        return _fit_pixels(self.vae, self.channels, self.scale)

    def __call__(
        self,
        scheduler: Any,
        recipe: Recipe,
        output: torch.Tensor,
        sample: torch.Tensor,
        timestep: float,
    ) -> tuple[Pixels, ...]:
        """Return the clean picture that the denoiser predicts, for each row of the batch.

        `output` is the denoiser's output, `sample` are the latents before the step.

        Source: Salimans & Ho, "Progressive distillation", 2022, appendix D, for `v_prediction`.
        """
        sample, output = sample.float(), output.float()
        if output.shape[1] == 2 * sample.shape[1]:  # The second half is a learned variance.
            output = output.chunk(2, dim=1)[0]
        alphas = None if self.is_flow else getattr(scheduler, "alphas_cumprod", None)
        if alphas is None:
            clean = sample - timestep / float(scheduler.config.num_train_timesteps) * output
        else:
            alpha_squared = float(alphas[min(max(round(timestep), 0), len(alphas) - 1)])
            alpha, sigma = math.sqrt(alpha_squared), math.sqrt(1 - alpha_squared)
            if TABLE[recipe.scheduler].variance_exploding:
                sample = sample * alpha
            match scheduler.config.get("prediction_type", "epsilon"):
                case "v_prediction":
                    clean = alpha * sample - sigma * output
                case "sample":
                    clean = output
                case _:
                    clean = (sample - sigma * output) / max(alpha, 1e-3)
        with torch.no_grad():
            if self.vae is not None:
                clean = unpacked(self.channels, clean, recipe.height, recipe.width)
            return _as_pictures(self.to_pixels(clean))

    def of_noise(self, recipes: Sequence[Recipe]) -> tuple[Pixels, ...]:
        """Return an RGB picture of the noise that each recipe begins from, at half its strength."""
        noise = torch.stack([self._noise(recipe) for recipe in recipes])
        with torch.no_grad():
            return _as_pictures(self.to_pixels(_NOISE_STRENGTH * noise))

    def _noise(self, recipe: Recipe) -> torch.Tensor:
        """Draw a recipe's noise as pipelines do, before packing: (C, h, w)."""
        shape = (1, self.channels, recipe.height // self.scale, recipe.width // self.scale)
        draws = 2 if recipe.start else 1  # The encoding of a start picture draws first.
        noise = _drawn(shape, recipe.seed, draws)
        for share in recipe.noise_mix:
            noise = mix_noise(noise, _drawn(shape, share.seed, draws), share.weight)
        return noise[0]


def make_preview(pipeline: Any, files: ModelFiles, *, now: bool = True) -> Preview:
    """Prepare previews of a pipeline still on the CPU; fit the map `now`, or at its first use."""
    is_flow = files.family.sampling == "flow"
    vae = getattr(pipeline, "vae", None)
    if vae is None:
        channels, scale = pipeline.unet.config.in_channels, 1
    else:
        channels, scale = int(files.family.latent(files.configs)[0]), vae_scale(files.configs)
    preview = Preview(vae=vae, channels=channels, scale=scale, is_flow=is_flow)
    if now:
        preview.to_pixels  # noqa: B018 (reading the property fits the map)
    return preview


def _drawn(shape: tuple[int, ...], seed: int, draws: int) -> torch.Tensor:
    (generator,) = fresh_generators((seed,))
    return [torch.randn(shape, generator=generator) for _ in range(draws)][-1]


def _as_pictures(rgb: torch.Tensor) -> tuple[Pixels, ...]:
    """Turn RGB (n, 3, H, W), -1 … 1, into pictures of at most `_MAX_PX`."""
    shrink = _MAX_PX / max(rgb.shape[-2:])
    if shrink < 1:
        rgb = functional.interpolate(rgb.float(), scale_factor=shrink, mode="area")
    rgb = (rgb.float() / 2 + 0.5).clamp(0, 1).nan_to_num(0)
    array = (rgb.permute(0, 2, 3, 1).cpu().numpy() * 255).round().astype(np.uint8)
    return tuple(array)


def unpacked(channels: int, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return a pipeline's latents as (B, C, h, w), like `FluxPipeline._unpack_latents`."""
    if latents.ndim == 5:
        latents = latents[:, :, 0]
    if latents.ndim == 3:
        token_px = math.isqrt(height * width // latents.shape[1])
        latents = latents.mT.unflatten(2, (height // token_px, width // token_px))
    is_packed = latents.shape[1] == 4 * channels
    return functional.pixel_shuffle(latents, 2) if is_packed else latents


def _decode(vae: Any, latents: torch.Tensor) -> torch.Tensor:
    config = vae.config
    if getattr(config, "latents_mean", None) and getattr(config, "latents_std", None):
        mean, std = torch.tensor([config.latents_mean, config.latents_std])[:, :, None, None]
        latents = latents * std + mean
    else:
        shift = getattr(config, "shift_factor", None) or 0
        latents = latents / (getattr(config, "scaling_factor", None) or 1) + shift
    if "z_dim" in config:  # A VAE of videos: a picture is one frame.
        latents = latents.unsqueeze(2)
    decoded: torch.Tensor = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
    return decoded[:, :, 0] if "z_dim" in config else decoded


def _fit_pixels(vae: Any, channels: int, latent_px: int) -> ToPixels:
    """Fit a linear map from a latent pixel and its neighbours to two by two pixels.

    The map is fitted by least squares to the VAE's output for random latents, so no VAE needs a
    map of its own. Applying the map takes a thousandth of the VAE's time.
    """
    detail = min(_DETAIL, latent_px)
    (generator,) = fresh_generators((0,))
    coarse = torch.randn(4, channels, 4, 4, generator=generator)
    smooth = functional.interpolate(coarse, scale_factor=3, mode="bilinear")
    # Some noise, so that neighbouring latent pixels differ: (4, C, 12, 12)
    latents = smooth + _ROUGHNESS * torch.randn(smooth.shape, generator=generator)
    with torch.no_grad():
        rgb = _decode(vae, latents.to(vae.device)).float().cpu().nan_to_num(0)
    small = functional.interpolate(rgb, size=(12 * detail, 12 * detail), mode="area")
    targets = functional.pixel_unshuffle(small, detail).flatten(2)  # (4, 3·d·d, 144)
    inputs = functional.unfold(_padded(latents), 3)  # (4, C·9, 144)
    solution = _least_squares(inputs, targets)  # (C·9 + 1, 3·d·d)
    kernel = solution[:-1].T.reshape(-1, latents.shape[1], 3, 3).contiguous()
    bias = solution[-1].contiguous()

    def to_pixels(clean: torch.Tensor) -> torch.Tensor:
        pixels = functional.conv2d(_padded(clean.float().cpu()), kernel, bias)
        return functional.pixel_shuffle(pixels, detail)

    return to_pixels


def _padded(latents: torch.Tensor) -> torch.Tensor:
    return functional.pad(latents, (1, 1, 1, 1), mode="replicate")


def _least_squares(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return weights (i + 1, o) from (n, i, pixels) to (n, o, pixels); the last row is the bias."""
    source, target = (part.transpose(1, 2).flatten(0, 1).double() for part in (inputs, targets))
    source = torch.cat([source, torch.ones(len(source), 1, dtype=torch.float64)], 1)
    squares = source.T @ source + _RIDGE * torch.eye(source.shape[1], dtype=torch.float64)
    solution: torch.Tensor = torch.linalg.solve(squares, source.T @ target)
    return solution.float()
