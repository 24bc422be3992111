"""All pictures of an evaluation beside the drawings that they stand for: figures, words, sheet.

Every picture is compared with its drawing, and so is what the VAE alone makes of that drawing: what
lies between the two is the denoiser's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from diffusers import AutoencoderKL
from numpy.typing import NDArray
from PIL import Image

from tools.training.fidelity import Likeness, Picture, compare, wanted_picture
from tools.training.figures import Figure, at_least
from tools.training.sheets import sheet
from tools.training.words import Wording

NUM_WORST = 20
BATCH = 8


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One picture, its drawing, and how alike they are."""

    wording: Wording
    seed: int
    made: Picture
    wanted: Picture
    likeness: Likeness


def compare_all(
    wordings: Sequence[Wording], seeds: Sequence[int], pictures: NDArray[np.uint8]
) -> list[Comparison]:
    """Hold each picture against its drawing; the worst comes first."""
    compared = []
    for wording, seed, made in zip(wordings, seeds, pictures, strict=True):
        wanted = wanted_picture(wording, seed)
        compared.append(
            Comparison(
                wording=wording,
                seed=seed,
                made=made,
                wanted=wanted,
                likeness=compare(made, wanted),
            )
        )
    return sorted(compared, key=lambda each: each.likeness.psnr_db)


@torch.no_grad()
def round_trips(vae: AutoencoderKL, pictures: Sequence[Picture]) -> list[Picture]:
    """What the VAE alone makes of some drawings."""
    made: list[Picture] = []
    for start in range(0, len(pictures), BATCH):
        batch = torch.from_numpy(np.stack(pictures[start : start + BATCH]))
        scaled = batch.permute(0, 3, 1, 2).float() / 127.5 - 1  # (N, 3, 256, 256)
        decoded = vae.decode(vae.encode(scaled).latent_dist.mode()).sample
        made += list(
            ((decoded.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy()
        )
    return made


def _mean_psnr(compared: Sequence[Comparison], key: Callable[[Wording], str]) -> dict[str, float]:
    """Mean PSNR of each group, the worst first."""
    groups: dict[str, list[float]] = defaultdict(list)
    for each in compared:
        groups[key(each.wording)].append(each.likeness.psnr_db)
    means = {name: float(np.mean(values)) for name, values in groups.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def likeness_figures(vae: AutoencoderKL, compared: Sequence[Comparison]) -> list[Figure]:
    """The rows of all pictures, the VAE's own beside them."""
    wanted = [each.wanted for each in compared[:: max(1, len(compared) // 810)]]
    alone = [compare(a, b) for a, b in zip(round_trips(vae, wanted), wanted, strict=True)]
    made = [each.likeness for each in compared]
    return [
        at_least("drawing: PSNR, dB", _mean("psnr_db", made), 20.5),
        Figure(name="drawing: SSIM", value=_mean("ssim", made)),
        at_least("drawing: edges shared within 2 px", _mean("edges", made), 0.705),
        at_least("drawing: details within 3 px", _mean("details", made), 0.85),
        at_least("drawing: slopes, of its own", _mean("slopes", made), 0.9),
        Figure(name="VAE alone: PSNR, dB", value=_mean("psnr_db", alone)),
        Figure(name="VAE alone: SSIM", value=_mean("ssim", alone)),
        Figure(name="VAE alone: edges shared within 2 px", value=_mean("edges", alone)),
        Figure(name="VAE alone: details within 3 px", value=_mean("details", alone)),
    ]


def pair_figures(compared: Sequence[Comparison]) -> list[Figure]:
    """The rows of subjects in a style, of which nothing else is said."""
    worst = min(_mean_psnr(compared, _pair).values())
    made = [each.likeness for each in compared]
    return [
        at_least("subject in a style: PSNR, dB", _mean("psnr_db", made), 21.0),
        at_least("subject in a style: PSNR, dB, the worst", worst, 17.5),
        at_least("subject in a style: details within 3 px", _mean("details", made), 0.85),
        at_least("subject in a style: slopes, of its own", _mean("slopes", made), 0.9),
    ]


def _mean(name: str, of: Sequence[Likeness]) -> float:
    return float(np.nanmean([getattr(each, name) for each in of]))


def _pair(wording: Wording) -> str:
    return f"{wording.subject} + {wording.style}"


def words_worst_first(compared: Sequence[Comparison]) -> str:
    """PSNR by word, and the ten worst subjects in a style."""
    keys: dict[str, Callable[[Wording], str]] = {
        "subject": lambda wording: wording.subject,
        "style": lambda wording: wording.style,
        "subject in a style": _pair,
    }
    lines = []
    for name, key in keys.items():
        worst = list(_mean_psnr(compared, key).items())[:10]
        lines.append(f"PSNR, {name}: " + ", ".join(f"{word} {value:.1f}" for word, value in worst))
    return "\n".join(lines)


def worst_sheet(compared: Sequence[Comparison], cell_px: int = 112) -> Image.Image:
    """The worst pictures in pairs: the model's, and under it the drawing it should be."""
    worst, per_row = compared[:NUM_WORST], NUM_WORST // 2
    rows = []
    for start in range(0, len(worst), per_row):
        part = worst[start : start + per_row]
        rows += [[each.made for each in part], [each.wanted for each in part]]
    return sheet(rows, cell_px, [f"{each.likeness.psnr_db:.1f} dB" for each in worst[:per_row]])
