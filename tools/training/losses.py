"""What training pays for: colours, their slopes, and edges where the drawing has them."""

from __future__ import annotations

import torch
from torch.nn import functional

from tools.training.fidelity import EDGE_SHIFT_PX, EDGE_THRESHOLDS

GREY = (0.299, 0.587, 0.114)
EDGE_WEIGHT = 1.0
FAINT_EDGE = 85.0
"""A slope of grey values that `fidelity.py` may just take for an edge: half of one, here."""
MISSED_EDGE_WEIGHT = 0.5
"""At 0.6 smudges fill with dots."""
EDGE_SOFTNESS = 12.0


def picture_loss(made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Absolute and squared error of colours, absolute error of their slopes and of edges.

    Edges that are missing or too many are paid for by `edge_loss` as well.
    """
    across = (made.diff(dim=3) - wanted.diff(dim=3)).abs().mean()
    down = (made.diff(dim=2) - wanted.diff(dim=2)).abs().mean()
    edges = (edges_near(made) - edges_near(wanted)).abs().mean()
    error = made - wanted
    colours = error.abs().mean() + error.square().mean()
    missed = edge_loss((made.clamp(-1, 1) + 1) / 2, (wanted + 1) / 2)
    return colours + across + down + EDGE_WEIGHT * edges + MISSED_EDGE_WEIGHT * missed


def edges_near(pictures: torch.Tensor) -> torch.Tensor:
    """How strong an edge stands within 2 px of each pixel, 0..1, what Canny's detector looks for.

    Where a line may run here or there, colours alone ask for neither; this asks for one of them.

    Args:
        pictures: shape `(N, 3, rows, columns)`, in -1..1.

    Returns:
        Shape `(N, 1, rows - 12, columns - 12)`.
    """
    grey = 127.5 * (pictures * pictures.new_tensor(GREY).view(1, 3, 1, 1)).sum(1, keepdim=True)
    taps = torch.exp(-torch.arange(-3.0, 4.0, device=grey.device).square() / 2)
    taps = taps / taps.sum()
    sobel = grey.new_tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    smooth = functional.conv2d(grey, (taps[:, None] * taps)[None, None])
    slopes = functional.conv2d(smooth, torch.stack([sobel, sobel.T])[:, None])
    steepness = slopes.abs().sum(1, keepdim=True)
    return functional.max_pool2d(steepness / (steepness + FAINT_EDGE), 5, stride=1)


def psnr(made: torch.Tensor, wanted: torch.Tensor) -> float:
    """Decibels, for pictures in -1..1."""
    return float(-10 * torch.log10((made.clamp(-1, 1) - wanted).square().mean() / 4))


def enlarger_loss(made: torch.Tensor, wanted: torch.Tensor, slope_weight: float) -> torch.Tensor:
    """Absolute error of colours, and of their slopes at four distances: edges are paid for."""
    loss = (made - wanted).abs().mean()
    for apart in (1, 2, 4):
        across = (made[..., apart:] - made[..., :-apart]) - (
            wanted[..., apart:] - wanted[..., :-apart]
        )
        down = (made[..., apart:, :] - made[..., :-apart, :]) - (
            wanted[..., apart:, :] - wanted[..., :-apart, :]
        )
        loss = loss + slope_weight / 3 * (across.abs().mean() + down.abs().mean())
    return loss


def edge_loss(made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """One minus the F-measure of soft edges that may stand `EDGE_SHIFT_PX` apart, at this size.

    The smooth form of `fidelity.shared_edges`: how far a slope is above the mean threshold takes
    the place of Canny's yes or no.
    """
    a, b = _soft_edges(made), _soft_edges(wanted)
    reach = 2 * EDGE_SHIFT_PX + 1
    near_a, near_b = (functional.max_pool2d(each, reach, 1, EDGE_SHIFT_PX) for each in (a, b))
    precision = (a * near_b).sum() / a.sum().clamp(min=1)
    recall = (b * near_a).sum() / b.sum().clamp(min=1)
    return 1 - 2 * precision * recall / (precision + recall).clamp(min=1e-6)


def _soft_edges(pictures: torch.Tensor) -> torch.Tensor:
    """`(N, 1, h, w)`, 0 … 1: how surely a pixel of pictures `(N, 3, h, w)`, 0 … 1, is an edge."""
    grey = 255 * (pictures * pictures.new_tensor(GREY).view(1, 3, 1, 1)).sum(1, True)
    bell = grey.new_tensor([0.054, 0.244, 0.404, 0.244, 0.054])  # a Gaussian of 1 px
    smooth, rise = torch.outer(bell, bell), grey.new_tensor([-1.0, 0.0, 1.0])
    across = torch.outer(grey.new_tensor([1.0, 2.0, 1.0]), rise)
    blurred = functional.conv2d(grey, smooth[None, None], padding=2)
    slopes = [functional.conv2d(blurred, kernel[None, None]).abs() for kernel in (across, across.T)]
    return torch.sigmoid((slopes[0] + slopes[1] - sum(EDGE_THRESHOLDS) / 2) / EDGE_SOFTNESS)
