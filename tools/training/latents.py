"""Pictures to latents and back by a linear map: PCA of 8x8 patches of the picture at half size.

No encoder is trained: the map is fitted in seconds, the denoiser can start at once, and
`autoencoder.py` writes the very same map into the weights of an `AutoencoderKL`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

LATENT_CHANNELS = 24
LATENT_PX = 16
PATCH_PX = 8
HALF_PX = LATENT_PX * PATCH_PX
WHITENING = 0.6
"""How far the channels are evened out: 0 leaves them as PCA gives them, 1 makes them alike."""

Floats = NDArray[np.float32]


def to_patches(pictures: NDArray[np.uint8]) -> Floats:
    """Cut pictures into patches.

    Args:
        pictures: shape `(N, 256, 256, 3)`, uint8.

    Returns:
        Shape `(N, 16, 16, 192)`, float32 in -1..1; a patch runs row, column, colour.
    """
    scaled = _at_half_size(pictures) / 127.5 - 1.0
    return _cut(scaled)


def shares_of_patches(masks: NDArray[np.bool_]) -> Floats:
    """Cut masks as `to_patches` cuts pictures.

    Args:
        masks: shape `(N, 256, 256)`.

    Returns:
        How much of each pixel a mask covers, 0..1, shape `(N, 16, 16, 192)`, float32: the same for
        each colour.
    """
    shares = _at_half_size(masks.astype(np.float32))
    return _cut(np.repeat(shares[..., None], 3, axis=-1))


def _at_half_size(pictures: NDArray[np.generic]) -> Floats:
    half = [cv2.resize(p, (HALF_PX, HALF_PX), interpolation=cv2.INTER_AREA) for p in pictures]
    return np.stack(half).astype(np.float32)


def _cut(scaled: Floats) -> Floats:
    cut = scaled.reshape(-1, LATENT_PX, PATCH_PX, LATENT_PX, PATCH_PX, 3)
    return np.ascontiguousarray(cut.transpose(0, 1, 3, 2, 4, 5)).reshape(
        -1, LATENT_PX, LATENT_PX, 192
    )


@dataclass(frozen=True, kw_only=True)
class LatentMap:
    """The linear map: `latent = (patch - mean) @ basis / scale`."""

    mean: Floats
    """Shape `(192,)`."""
    basis: Floats
    """Shape `(192, 24)`, orthonormal columns."""
    scale: Floats
    """Shape `(24,)`."""

    @classmethod
    def fit(cls, pictures: NDArray[np.uint8]) -> LatentMap:
        """Fit the map on pictures of shape `(N, 256, 256, 3)`."""
        patches = to_patches(pictures).reshape(-1, 192)
        mean = patches.mean(0)
        values, vectors = np.linalg.eigh(np.cov((patches - mean).T))
        order = np.argsort(values)[::-1][:LATENT_CHANNELS]
        scale = np.sqrt(values[order]) ** WHITENING
        scale *= np.sqrt(np.mean((np.sqrt(values[order]) / scale) ** 2))
        return cls(
            mean=mean.astype(np.float32),
            basis=vectors[:, order].astype(np.float32),
            scale=scale.astype(np.float32),
        )

    def encode(self, pictures: NDArray[np.uint8]) -> Floats:
        """Pictures `(N, 256, 256, 3)` to latents `(N, 24, 16, 16)`."""
        latents = (to_patches(pictures) - self.mean) @ self.basis / self.scale
        return np.ascontiguousarray(latents.transpose(0, 3, 1, 2))

    def decode(self, latents: Floats) -> NDArray[np.uint8]:
        """Latents `(N, 24, 16, 16)` to pictures at half size, `(N, 128, 128, 3)`."""
        patches = (latents.transpose(0, 2, 3, 1) * self.scale) @ self.basis.T + self.mean
        cut = patches.reshape(-1, LATENT_PX, LATENT_PX, PATCH_PX, PATCH_PX, 3)
        half = cut.transpose(0, 1, 3, 2, 4, 5).reshape(-1, HALF_PX, HALF_PX, 3)
        return np.clip((half + 1) * 127.5, 0, 255).astype(np.uint8)

    def save(self, path: Path) -> None:
        """Write the map."""
        save_file(
            {"mean": self.mean, "basis": np.ascontiguousarray(self.basis), "scale": self.scale},
            path,
        )

    @classmethod
    def load(cls, path: Path) -> LatentMap:
        """Read a map that `save` wrote."""
        return cls(**load_file(path))
