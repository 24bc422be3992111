"""How near a picture comes to the drawing that it stands for.

A picture of this model is a function of its words and of the twelve numbers in its noise. So the
drawing it should be can be drawn, and the two compared pixel by pixel: no judge, no taste.
Knows nothing about how pictures are made.

    compare(picture, wanted_picture(wording, seed=9000)).psnr_db
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from tools.training.coupling import read_normals
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.scenes import draw
from tools.training.words import Wording

Picture = NDArray[np.uint8]
"""Shape `(256, 256, 3)`, or a multiple of it, RGB."""

EDGE_SHIFT_PX = 2
"""A line that stands this far from where it should is a line, not a smudge."""

EDGE_THRESHOLDS = (50, 120)
"""Of Canny's detector, on grey values from 0 to 255."""

WINDOW_SIGMA_PX = 1.5
STABILISERS = (6.5025, 58.5225)
"""(0.01 * 255)^2 and (0.03 * 255)^2."""


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """How alike two pictures are; more is better in each."""

    psnr_db: float
    ssim: float
    """-1..1."""
    edges: float
    """0..1: how many of the edges of either picture the other one has too."""


def wanted_normals(seed: int) -> NDArray[np.float32]:
    """The twelve numbers in the noise that a seed draws for one picture of 256 px."""
    generator = torch.Generator("cpu").manual_seed(seed)
    noise = torch.randn(1, LATENT_CHANNELS, LATENT_PX, LATENT_PX, generator=generator)
    return read_normals(noise)[0].numpy()


def wanted_picture(wording: Wording, seed: int, scale: int = 1) -> Picture:
    """The drawing that words and seed stand for, so many times as wide as 256 px."""
    return draw(wording, wanted_normals(seed), scale)


def compare(made: Picture, wanted: Picture) -> Likeness:
    """Hold a picture against its drawing."""
    error = np.square(made.astype(np.float64) - wanted).mean()
    grey_made, grey_wanted = (cv2.cvtColor(p, cv2.COLOR_RGB2GRAY) for p in (made, wanted))
    return Likeness(
        psnr_db=float(10 * np.log10(255**2 / max(error, 1e-3))),
        ssim=structural_similarity(grey_made, grey_wanted),
        edges=shared_edges(grey_made, grey_wanted),
    )


def structural_similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """The mean SSIM of two grey pictures.

    Source: Z. Wang et al. 2004, "Image quality assessment: from error visibility to structural
    similarity", with its own window and constants.
    """
    a, b = first.astype(np.float64), second.astype(np.float64)

    def local(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return cv2.GaussianBlur(values, (11, 11), WINDOW_SIGMA_PX)

    mean_a, mean_b = local(a), local(b)
    var_a, var_b = local(a * a) - mean_a**2, local(b * b) - mean_b**2
    covariance = local(a * b) - mean_a * mean_b
    light, contrast = STABILISERS
    similar = (2 * mean_a * mean_b + light) * (2 * covariance + contrast)
    return float((similar / ((mean_a**2 + mean_b**2 + light) * (var_a + var_b + contrast))).mean())


def shared_edges(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """The F-measure of two grey pictures' edges, which may stand `EDGE_SHIFT_PX` apart.

    Source: D. Martin et al. 2004, "Learning to detect natural image boundaries", whose measure this
    is, with a plain distance instead of a one-to-one matching.
    """
    a, b = _edges(first), _edges(second)
    if not a.any() or not b.any():
        return float(a.any() == b.any())
    precision, recall = _share_near(a, b), _share_near(b, a)
    return 2 * precision * recall / max(precision + recall, 1e-9)


def _edges(grey: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return cv2.Canny(cv2.GaussianBlur(grey, (0, 0), 1.0), *EDGE_THRESHOLDS) > 0


def _share_near(edges: NDArray[np.bool_], others: NDArray[np.bool_]) -> float:
    """How many of the edges have one of the others near."""
    apart_px = cv2.distanceTransform((~others).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return float((apart_px[edges] <= EDGE_SHIFT_PX).mean())
