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

from tools.training.declared import DEFAULTS
from tools.training.decoder import load_autoencoder
from tools.training.fidelity import (
    Likeness,
    Picture,
    compare,
    found_fine_parts,
    wanted_normals,
    wanted_picture,
)
from tools.training.latents import LATENT_CHANNELS, LATENT_PX
from tools.training.made import Maker
from tools.training.places import work_dir
from tools.training.scenes import fine_places
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
    likeness: Likeness
    fine: float
    """0..1: how many of the drawing's eyes, whiskers and the like it has; NaN where it has none."""

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


def measure(
    plain: int = 3, varied: int = 6, *, num_steps: int = DEFAULTS["num_inference_steps"]
) -> list[Measured]:
    """Paint and compare so many pictures of each subject, plain ones and others."""
    wordings = held_out(plain, varied)
    seeds = [FIRST_SEED + number for number in range(len(wordings))]
    measured = []
    painted = paint(Maker(num_steps), wordings, seeds)
    for wording, seed, made in zip(wordings, seeds, painted, strict=True):
        wanted = wanted_picture(wording, seed)
        places = fine_places(wanted, wording, wanted_normals(seed))
        measured.append(
            Measured(
                wording=wording,
                made=made,
                wanted=wanted,
                likeness=compare(made, wanted),
                fine=found_fine_parts(made, wanted, places),
            )
        )
    return measured


def table(measured: Sequence[Measured]) -> str:
    """PSNR in dB, details, fine parts and slopes by subject, the worst first; then of both sets."""

    def means(subjects: Sequence[str]) -> tuple[float, ...]:
        chosen = [each for each in measured if each.wording.subject in subjects]
        likeness = [each.likeness for each in chosen]
        return (
            float(np.mean([each.likeness.psnr_db for each in chosen if each.is_plain])),
            float(np.mean([each.likeness.psnr_db for each in chosen if not each.is_plain])),
            _mean([each.details for each in likeness]),
            _mean([each.fine for each in chosen]),
            float(np.mean([each.slopes for each in likeness])),
        )

    rows = sorted(((name, means([name])) for name in SUBJECT_WORDS), key=lambda row: row[1][1])
    rows += [("first ten", means(FIRST_SUBJECTS)), ("later", means(LATER_SUBJECTS))]
    head = f"{'':12} {'plain dB':>9} {'varied dB':>9} {'details':>9} {'fine':>9} {'slopes':>9}"
    lines = [f"{name:12} " + " ".join(f"{v:9.2f}" for v in values) for name, values in rows]
    return "\n".join([head, *lines])


def _mean(shares: Sequence[float]) -> float:
    """Of the pictures that have such parts; NaN where none has."""
    known = [share for share in shares if not np.isnan(share)]
    return float(np.mean(known)) if known else float("nan")


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
