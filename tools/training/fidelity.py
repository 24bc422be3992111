"""How near a picture comes to the drawing that it stands for.

A picture of this model is a function of its words and of the twelve numbers in its noise. So the
drawing it should be can be drawn, and the two compared pixel by pixel: no judge, no taste.
Knows nothing about how pictures are made.

    compare(picture, wanted_picture(wording, seed=9000)).psnr_db
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from tools.training.coupling import read_normals
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.scenes import FINE_RIM, draw
from tools.training.words import Wording

Picture = NDArray[np.uint8]
"""Shape `(256, 256, 3)`, or a multiple of it, RGB."""

EDGE_SHIFT_PX = 2
"""A line that stands this far from where it should is a line, not a smudge."""

EDGE_THRESHOLDS = (50, 120)
"""Of Canny's detector, on grey values from 0 to 255."""

DETAIL_PX = 5
"""What is narrower than this is a detail: a line, an eye, a window's bar."""

DETAIL_CONTRAST = 30
"""Grey values by which a detail stands out from what is around it."""

BLOCK_PX = 8
"""A long line is several details, one in each block that it crosses."""

PATCH_PX = 5
DETAIL_SHIFT_PX = 3
DETAIL_CORRELATION = 0.5
FINE_CORRELATION = 0.7
"""Below it an eye is a shade."""

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
    details: float
    """0..1: how many of the drawing's details the picture has too; NaN where it has none."""
    slopes: float
    """How steep the picture is on average, of how steep the drawing is."""


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
        details=found_details(grey_made, grey_wanted),
        slopes=_steepness(grey_made) / max(_steepness(grey_wanted), 1e-9),
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


def found_details(made: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> float:
    """How many of a drawing's details a picture has within `DETAIL_SHIFT_PX`, both in grey values.

    A detail is there where the pixels around it resemble those of the drawing, by correlation: it
    may be paler, but not a smudge.
    """
    reach = PATCH_PX
    drawn, around = (np.pad(each, reach, mode="edge") for each in (wanted, made))
    boxes = [(row, column, 2 * reach + 1, 2 * reach + 1) for row, column in _details(wanted)]
    return _share_found(around, drawn, boxes, DETAIL_CORRELATION)


def found_fine_parts(made: Picture, wanted: Picture, places: NDArray[np.bool_]) -> float:
    """How many of a drawing's eyes, whiskers and the like a picture has within the same distance.

    Args:
        made: the picture.
        wanted: its drawing.
        places: where the drawing has them, as `scenes.fine_places` tells.

    Returns:
        0..1, those that touch counted as one; NaN where the drawing has none.
    """
    grey_made, grey_wanted = (cv2.cvtColor(p, cv2.COLOR_RGB2GRAY) for p in (made, wanted))
    parts = cv2.erode(places.astype(np.uint8), FINE_RIM)  # Their rims touch.
    _, _, found, _ = cv2.connectedComponentsWithStats(parts)
    rim = len(FINE_RIM) // 2
    boxes = [
        (max(row - rim, 0), max(column - rim, 0), rows + 2 * rim, columns + 2 * rim)
        for column, row, columns, rows, _ in found[1:].tolist()
    ]
    return _share_found(grey_made, grey_wanted, boxes, FINE_CORRELATION)


def _share_found(
    made: NDArray[np.uint8],
    wanted: NDArray[np.uint8],
    boxes: Sequence[tuple[int, int, int, int]],
    correlation: float,
) -> float:
    """How many boxes (row, column, rows, columns) look alike, `DETAIL_SHIFT_PX` apart or less."""
    around, found = np.pad(made, DETAIL_SHIFT_PX, mode="edge"), []
    for row, column, rows, columns in boxes:
        patch = wanted[row : row + rows, column : column + columns]
        far = 2 * DETAIL_SHIFT_PX
        there = around[row : row + rows + far, column : column + columns + far]
        alike = np.nan_to_num(cv2.matchTemplate(there, patch, cv2.TM_CCOEFF_NORMED))
        found.append(bool(alike.max() >= correlation))
    return float(np.mean(found)) if found else float("nan")


def _details(grey: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """The middles of a drawing's details, rows and columns."""
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (DETAIL_PX, DETAIL_PX))
    thin = [cv2.morphologyEx(grey, kind, disc) for kind in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT)]
    places = np.argwhere(np.maximum(*thin) >= DETAIL_CONTRAST)
    blocks, counts = np.unique(places // BLOCK_PX, axis=0, return_counts=True)
    middles = []
    for block in blocks[counts >= DETAIL_PX]:
        row, column = places[(places // BLOCK_PX == block).all(axis=1)].mean(axis=0).round()
        middles.append((int(row), int(column)))
    return middles


def _steepness(grey: NDArray[np.uint8]) -> float:
    values = grey.astype(np.float32)
    return float(np.abs(np.diff(values, axis=0)).mean() + np.abs(np.diff(values, axis=1)).mean())
