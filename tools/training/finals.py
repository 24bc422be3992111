"""The large finals against the drawings at their size: plain enlargements and the network.

Pictures of words and seeds that no training has seen; the drawing is what words and seed stand for,
so what the model itself has displaced counts against every way alike.

    print(table(measure(folder, load_network(folder), count=60)))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

from seedgrid.diffusion.upscaling import Compact
from tools.training.enlarger import SCALE
from tools.training.fidelity import Likeness, Picture, compare, wanted_picture
from tools.training.places import NETWORK_FILE
from tools.training.sampling import bundled_sampler
from tools.training.words import Wording, draw_wording, plain_caption

FIRST_SEED = 9_000
WORDS_SEED = 97
SCALES = (2, 4)

Way = Callable[[Picture, int], Picture]


def load_network(folder: Path) -> Compact:
    """The network that ships in a model's folder."""
    return Compact(load_file(folder / NETWORK_FILE), SCALE)


def plainly(kind: Image.Resampling) -> Way:
    """Enlarge as any program does."""

    def enlarge(picture: Picture, scale: int) -> Picture:
        side = len(picture) * scale
        return np.array(Image.fromarray(picture).resize((side, side), kind))

    return enlarge


def by_network(network: Compact) -> Way:
    """Enlarge four times, and back by Lanczos where that is too much, as SeedGrid does."""

    @torch.no_grad()
    def enlarge(picture: Picture, scale: int) -> Picture:
        image = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 255
        large = (network(image)[0].clamp(0, 1).permute(1, 2, 0) * 255).round().byte().numpy()
        side = len(picture) * scale
        return np.array(Image.fromarray(large).resize((side, side), Image.Resampling.LANCZOS))

    return enlarge


def pictures(folder: Path, count: int) -> list[tuple[Wording, int, Picture]]:
    """Words, seed and picture of so many that are held out."""
    rng = np.random.default_rng(WORDS_SEED)
    wordings = [draw_wording(rng) for _ in range(count)]
    seeds = [FIRST_SEED + index for index in range(count)]
    made = bundled_sampler(folder).pictures([plain_caption(w) for w in wordings], seeds)
    return list(zip(wordings, seeds, made, strict=True))


Measured = dict[tuple[str, int], list[Likeness]]


def measure(held_out: list[tuple[Wording, int, Picture]], network: Compact) -> Measured:
    """How near each way comes to the drawing, a picture at a time, by way and scale."""
    ways = {
        "bicubic": plainly(Image.Resampling.BICUBIC),
        "Lanczos": plainly(Image.Resampling.LANCZOS),
        "the network": by_network(network),
    }
    found: Measured = {(way, scale): [] for scale in SCALES for way in ways}
    for wording, seed, made in held_out:
        for scale in SCALES:
            wanted = wanted_picture(wording, seed, scale)
            for way, enlarge in ways.items():
                found[way, scale].append(compare(enlarge(made, scale), wanted))
    return found


def table(found: Measured) -> str:
    """The mean of each figure, a row for each way and size."""
    lines = ["| size | way | PSNR, dB | SSIM | edges |", "|---|---|---|---|---|"]
    for (way, scale), likenesses in found.items():
        figures = np.array([(each.psnr_db, each.ssim, each.edges) for each in likenesses])
        decibels, ssim, edges = figures.mean(axis=0)
        lines.append(f"| {256 * scale} px | {way} | {decibels:.2f} | {ssim:.3f} | {edges:.3f} |")
    return "\n".join(lines)


def sheet(held_out: list[tuple[Wording, int, Picture]], network: Compact, cell_px: int) -> Picture:
    """Bicubic, the network and the drawing side by side, a row for each picture."""
    ways = (plainly(Image.Resampling.BICUBIC), by_network(network))
    rows = []
    for wording, seed, made in held_out:
        cells = [*(way(made, SCALE) for way in ways), wanted_picture(wording, seed, SCALE)]
        small = [cv2.resize(c, (cell_px, cell_px), interpolation=cv2.INTER_AREA) for c in cells]
        rows.append(np.hstack(small))
    return np.vstack(rows)
