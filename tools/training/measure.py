"""How near the pictures of the last checkpoint are to their drawings, subject by subject.

A minute of one thread, between the legs of a training: `python -m tools.training measure`. Each
subject is measured plain ("fox") and said in many ways with styles, modifiers and attributes, on
held-out seeds; a sheet beside the checkpoint shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tools.training.decoder import load_autoencoder
from tools.training.fidelity import Picture, compare, wanted_picture
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.made import Maker
from tools.training.places import work_dir
from tools.training.sheets import sheet
from tools.training.words import (
    FIRST_SUBJECTS,
    LATER_SUBJECTS,
    SUBJECT_WORDS,
    Wording,
    draw_wording,
    plain_caption,
)

FIRST_SEED = 200_000
WORDING_SEED = 61
BATCH = 16
PER_ROW = 5


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A picture of the checkpoint beside its drawing."""

    wording: Wording
    made: Picture
    wanted: Picture
    psnr_db: float

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the subject is said."""
        return self.wording == Wording(subject=self.wording.subject)


@torch.no_grad()
def paint(maker: Maker, wordings: Sequence[Wording], seeds: Sequence[int]) -> NDArray[np.uint8]:
    """What the last checkpoints make of plain captions, shape `(N, 256, 256, 3)`."""
    vae, made = load_autoencoder(), []
    for start in range(0, len(wordings), BATCH):
        part = slice(start, start + BATCH)
        shape = (1, LATENT_CHANNELS, LATENT_PX, LATENT_PX)
        state = torch.cat(
            [torch.randn(shape, generator=torch.Generator().manual_seed(s)) for s in seeds[part]]
        )
        state = maker.walk(state, [plain_caption(each) for each in wordings[part]])
        pixels = vae.decode(state).sample.clamp(-1, 1)
        made.append(((pixels + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(made)


def held_out(plain: int, varied: int) -> list[Wording]:
    """So many wordings of each subject: nothing but its name, and with whatever else is said."""
    rng = np.random.default_rng(WORDING_SEED)
    wordings = []
    for subject in SUBJECT_WORDS:
        wordings += [Wording(subject=subject)] * plain
        wordings += [replace(draw_wording(rng), subject=subject) for _ in range(varied)]
    return wordings


def measure(plain: int = 3, varied: int = 6) -> list[Measured]:
    """Paint and compare so many pictures of each subject, plain ones and others."""
    wordings = held_out(plain, varied)
    seeds = [FIRST_SEED + number for number in range(len(wordings))]
    measured = []
    for wording, seed, made in zip(wordings, seeds, paint(Maker(), wordings, seeds), strict=True):
        wanted = wanted_picture(wording, seed)
        psnr_db = compare(made, wanted).psnr_db
        measured.append(Measured(wording=wording, made=made, wanted=wanted, psnr_db=psnr_db))
    return measured


def table(measured: Sequence[Measured]) -> str:
    """PSNR in dB by subject, the worst first, and of the first and the later subjects together."""

    def means(subjects: Sequence[str]) -> tuple[float, float]:
        chosen = [each for each in measured if each.wording.subject in subjects]
        plain, varied = (
            float(np.mean([each.psnr_db for each in chosen if each.is_plain == wanted]))
            for wanted in (True, False)
        )
        return plain, varied

    rows = sorted(((name, *means([name])) for name in SUBJECT_WORDS), key=lambda row: row[2])
    rows += [("first ten", *means(FIRST_SUBJECTS)), ("later", *means(LATER_SUBJECTS))]
    lines = [f"{name:12} {plain:6.2f} {varied:6.2f}" for name, plain, varied in rows]
    return "\n".join([f"{'PSNR, dB':12} {'plain':>6} {'varied':>6}", *lines])


def write_sheet(measured: Sequence[Measured]) -> Path:
    """One plain and one other picture of each subject, each left of its drawing, as JPEG."""
    pairs = []
    for subject in SUBJECT_WORDS:
        for is_plain in (True, False):
            own = [m for m in measured if (m.wording.subject, m.is_plain) == (subject, is_plain)]
            pairs.append([own[0].made, own[0].wanted])
    rows = [
        list(chain.from_iterable(pairs[start : start + PER_ROW]))
        for start in range(0, len(pairs), PER_ROW)
    ]
    path = work_dir() / "measure.jpg"
    sheet(rows, 128, ["made", "drawn"] * PER_ROW).save(path, quality=85)
    return path
