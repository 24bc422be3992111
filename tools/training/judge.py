"""A small classifier, trained on drawn pictures, that says what a picture shows and where.

It measures the generated pictures; it is no part of what ships. It sees pictures at 64 px,
roughened at random so that it judges shapes rather than a renderer's exact pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from tqdm import tqdm

from tools.training.composition import Composition, place
from tools.training.dataset import draw_many
from tools.training.networks import initialise
from tools.training.optimizer import MuonAdam, autocast, matrix_names
from tools.training.places import work_dir
from tools.training.words import MODIFIER_WORDS, STYLE_WORDS, SUBJECT_WORDS, Wording

VIEW_PX = 64
HEADS = (len(SUBJECT_WORDS), len(STYLE_WORDS), len(MODIFIER_WORDS), 3)
JUDGE_SEED = 23


class Judge(nn.Module):
    """Convolutions and one linear layer: subject, style, modifier, and (x, y, half size)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for narrow, wide in ((3, 32), (32, 64), (64, 128), (128, 192)):
            layers += [
                nn.Conv2d(narrow, wide, 3, stride=2, padding=1),
                nn.GroupNorm(8, wide),
                nn.SiLU(),
            ]
            layers += [nn.Conv2d(wide, wide, 3, padding=1), nn.GroupNorm(8, wide), nn.SiLU()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(192 * 16, sum(HEADS))

    def forward(self, views: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Judge views `(N, 3, 64, 64)` in -1..1: three tables of scores and places `(N, 3)`."""
        return self.head(self.features(views).flatten(1)).split(HEADS, dim=1)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What drawn pictures show, as tensors."""

    labels: torch.Tensor
    """Shape `(N, 3)`: subject, style, modifier."""
    places: torch.Tensor
    """Shape `(N, 3)`: x, y, half size, scaled to about 1."""


def to_views(pictures: NDArray[np.uint8]) -> torch.Tensor:
    """Pictures `(N, 256, 256, 3)` as the judge sees them, `(N, 3, 64, 64)` in -1..1."""
    small = [cv2.resize(p, (VIEW_PX, VIEW_PX), interpolation=cv2.INTER_AREA) for p in pictures]
    return torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).float() / 127.5 - 1


def truth_of(wordings: list[Wording], normals: NDArray[np.float32]) -> Truth:
    """The right answers."""
    tables = [list(words) for words in (SUBJECT_WORDS, STYLE_WORDS, MODIFIER_WORDS)]
    labels = [
        [
            table.index(word)
            for table, word in zip(tables, (w.subject, w.style, w.modifier), strict=True)
        ]
        for w in wordings
    ]
    spots = [
        place(Composition.from_normals(z), w.side, w.size)
        for w, z in zip(wordings, normals, strict=True)
    ]
    places = [
        [(s.center_x_px - 128) / 40, (s.center_y_px - 143) / 20, (s.half_size_px - 78) / 20]
        for s in spots
    ]
    return Truth(labels=torch.tensor(labels), places=torch.tensor(places))


def roughen(views: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Blur, noise and a change of brightness, each at random."""
    size = len(views)
    blurred = functional.avg_pool2d(
        functional.pad(views, (1, 1, 1, 1), mode="replicate"), 3, stride=1
    )
    amount = torch.rand(size, 1, 1, 1, generator=generator)
    gain = 1 + 0.2 * (torch.rand(size, 1, 1, 1, generator=generator) - 0.5)
    noise = (
        torch.randn(views.shape, generator=generator)
        * 0.12
        * torch.rand(size, 1, 1, 1, generator=generator)
    )
    return (views + (blurred - views) * amount) * gain + noise


def loss_of(answers: tuple[torch.Tensor, ...], truth: Truth) -> torch.Tensor:
    """Cross entropies and the squared error of places."""
    named = sum(functional.cross_entropy(answers[k], truth.labels[:, k]) for k in range(3))
    return named + 2.0 * (answers[3] - truth.places).square().mean()


def judge_path() -> Path:
    """Where the judge is kept: one that knows other words has another shape, and another file."""
    return work_dir() / f"judge-{'-'.join(map(str, HEADS))}.safetensors"


def train_judge(batches: int = 1500, batch_size: int = 32) -> Judge:
    """Train on freshly drawn pictures, and keep the result."""
    judge, generator = Judge(), torch.Generator().manual_seed(JUDGE_SEED)
    initialise(judge, generator)
    judge = judge.to(memory_format=torch.channels_last)
    optimizer = MuonAdam(judge.named_parameters(), matrix_names(judge))
    progress = tqdm(range(batches), desc="judge")
    for step in progress:
        pictures, normals, wordings = draw_many([JUDGE_SEED, step], batch_size)
        truth = truth_of(wordings, normals)
        views = roughen(to_views(pictures), generator).to(memory_format=torch.channels_last)
        with autocast("cpu"):
            answers = judge(views)
        loss = loss_of(tuple(a.float() for a in answers), truth)
        loss.backward()
        optimizer.step(2e-3 * min(1.0, (step + 1) / 30, 2.5 * (1 - step / batches) + 0.02))
        if step % 20 == 0:
            progress.set_postfix(loss=round(float(loss.detach()), 3))
    tensors = {name: value.contiguous() for name, value in judge.state_dict().items()}
    save_file(tensors, judge_path())
    return judge.eval()


def load_judge() -> Judge:
    """The judge, trained on the first call."""
    path = judge_path()
    if not path.exists():
        return train_judge()
    judge = Judge()
    judge.load_state_dict(load_file(path))
    return judge.eval()
