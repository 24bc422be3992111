"""Measure the pictures that the model makes, and print one table.

The prompts are all pairs of subject and style, and all combinations of these and a modifier; the
seeds (from 9000) are used nowhere else. Each picture is held against the drawing that it stands for
(`fidelity.py`), and a judge that was trained on drawn pictures says what it shows and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tools.training.comparison import (
    compare_all,
    likeness_figures,
    pair_figures,
    words_worst_first,
    worst_sheet,
)
from tools.training.dataset import draw_many
from tools.training.figures import HEAD, Figure, at_least, at_most
from tools.training.judge import Judge, load_judge, to_views, truth_of
from tools.training.sampling import Sampler
from tools.training.scenes import draw
from tools.training.words import MODIFIER_WORDS, STYLE_WORDS, SUBJECT_WORDS, Wording, plain_caption

FIRST_SEED = 9000
LABELS = ("subject", "style", "modifier")


@torch.no_grad()
def judged(
    judge: Judge, pictures: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The judge's labels `(N, 3)` and places `(N, 3)`."""
    answers = [judge(views) for views in to_views(pictures).split(128)]
    labels = np.stack([torch.cat([a[k] for a in answers]).argmax(1).numpy() for k in range(3)], 1)
    return labels, torch.cat([a[3] for a in answers]).numpy()


def judge_figures(judge: Judge, count: int) -> list[Figure]:
    """The judge's own accuracy, on drawn pictures it has not seen."""
    pictures, normals, wordings = draw_many([77, 1], count)
    truth = truth_of(wordings, normals)
    labels, places = judged(judge, pictures)
    right = (labels == truth.labels.numpy()).mean(0)
    figures = [
        Figure(name=f"judge, drawn pictures: {n}", value=r)
        for n, r in zip(LABELS, right, strict=True)
    ]
    for column, name in ((0, "x"), (2, "size")):
        agreement = np.corrcoef(places[:, column], truth.places[:, column].numpy())[0, 1]
        figures.append(
            Figure(name=f"judge, drawn pictures: correlation of {name}", value=agreement)
        )
    return figures


def combinations(num_seeds: int, keep_one_in: int) -> tuple[list[Wording], list[int]]:
    """All combinations with their own seeds; `keep_one_in` thins them evenly."""
    table = [
        (Wording(subject=a, style=b, modifier=c), FIRST_SEED + (index * num_seeds + k))
        for index, (a, b, c) in enumerate(product(SUBJECT_WORDS, STYLE_WORDS, MODIFIER_WORDS))
        for k in range(num_seeds)
    ][::keep_one_in]
    return [wording for wording, _ in table], [seed for _, seed in table]


def pairs(num_seeds: int) -> tuple[list[Wording], list[int]]:
    """All subjects in all styles, with nothing else said, each with its own seeds."""
    wordings = [
        Wording(subject=a, style=b)
        for a, b in product(SUBJECT_WORDS, STYLE_WORDS)
        for _ in range(num_seeds)
    ]
    return wordings, [FIRST_SEED + 20_000 + index for index in range(len(wordings))]


def word_figures(
    judge: Judge, wordings: list[Wording], pictures: NDArray[np.uint8]
) -> list[Figure]:
    """Do the pictures show what was said."""
    truth = truth_of(wordings, np.zeros((len(wordings), 12), np.float32)).labels.numpy()
    labels, _ = judged(judge, pictures)
    right = labels == truth
    for column, words in enumerate((SUBJECT_WORDS, STYLE_WORDS, MODIFIER_WORDS)):
        parts = [
            f"{w} {right[truth[:, column] == k, column].mean():.2f}" for k, w in enumerate(words)
        ]
        print(f"{LABELS[column]}: " + ", ".join(parts))
    return [
        at_least(f"{n} right", r, b)
        for n, r, b in zip(LABELS, right.mean(0), (0.95, 0.95, 0.90), strict=True)
    ]


def lock_figures(sampler: Sampler, judge: Judge, num_parents: int) -> list[Figure]:
    """Same seed, other modifier: does the composition stay; other seed: does it go."""
    rng = np.random.default_rng(41)
    parents = [
        Wording(
            subject=str(rng.choice(list(SUBJECT_WORDS))), style=str(rng.choice(list(STYLE_WORDS)))
        )
        for _ in range(num_parents)
    ]
    modifiers = [str(rng.choice([m for m in MODIFIER_WORDS if m != "none"])) for _ in parents]
    parent_prompts = [plain_caption(wording) for wording in parents]
    child_prompts = [
        plain_caption(Wording(subject=w.subject, style=w.style, modifier=m))
        for w, m in zip(parents, modifiers, strict=True)
    ]
    seeds = [FIRST_SEED + 50_000 + k for k in range(num_parents)]
    others = [seed + 10_000 for seed in seeds]
    parent = sampler.pictures(parent_prompts, seeds)
    child, stranger = (
        sampler.pictures(child_prompts, seeds),
        sampler.pictures(child_prompts, others),
    )
    places = [judged(judge, pictures)[1] for pictures in (parent, child, stranger)]
    same_prompt = judged(judge, sampler.pictures(parent_prompts, others))[1]
    figures = []
    for column, name in ((0, "x"), (2, "size")):
        kept = np.corrcoef(places[0][:, column], places[1][:, column])[0, 1]
        figures.append(
            at_least(f"lock: {name}, same seed, other modifier (correlation)", kept, 0.8)
        )
        gone = abs(_within(places[0][:, column], same_prompt[:, column], parents))
        figures.append(at_most(f"lock: {name}, other seed, same prompt (correlation)", gone, 0.2))
    nearer = np.mean(
        [_distance(a, b) < _distance(a, c) for a, b, c in zip(parent, child, stranger, strict=True)]
    )
    return [
        *figures,
        at_least("lock: same seed nearer than another (triples)", float(nearer), 0.95),
    ]


def _within(
    first: NDArray[np.float32], second: NDArray[np.float32], parents: list[Wording]
) -> float:
    """Correlation after each subject's own mean is taken off: they differ in where they stand."""
    subjects = np.array([wording.subject for wording in parents])
    first, second = first.copy(), second.copy()
    for subject in set(subjects):
        mine = subjects == subject
        both = np.concatenate([first[mine], second[mine]]).mean()
        first[mine] -= both
        second[mine] -= both
    return float(np.corrcoef(first, second)[0, 1])


def _distance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    views = to_views(np.stack([first, second]))
    return float((views[0] - views[1]).square().mean().sqrt())


def _nearest(pictures: NDArray[np.uint8]) -> float:
    views = to_views(pictures).flatten(1)
    apart = torch.cdist(views, views) + 1e9 * torch.eye(len(views))
    return float(apart.min())


def diversity_figure(sampler: Sampler, num_seeds: int) -> Figure:
    """How near the nearest two of many seeds are, against drawn pictures."""
    wording = Wording(subject="labrador", style="vermeer")
    seeds = [FIRST_SEED + 90_000 + k for k in range(num_seeds)]
    made = sampler.pictures([plain_caption(wording)] * num_seeds, seeds)
    rng = np.random.default_rng(43)
    drawn = np.stack([draw(wording, rng.normal(size=12)) for _ in range(num_seeds)])
    return at_least(
        f"diversity: nearest two of {num_seeds}, of drawn ones' nearest",
        _nearest(made) / _nearest(drawn),
        0.5,
    )


def evaluate(sampler: Sampler, worst_path: Path, *, is_quick: bool) -> str:
    """Measure everything.

    Args:
        sampler: the pipeline to measure.
        worst_path: where the sheet of the worst pictures goes, as JPEG.
        is_quick: one combination in eight with one seed each, and fewer pairs.

    Returns:
        The table, in Markdown.
    """
    wordings, seeds = pairs(4)
    compared = compare_all(wordings, seeds, _painted(sampler, wordings, seeds))
    print(words_worst_first(compared))
    worst_sheet(compared).save(worst_path, quality=82, optimize=True)
    figures = pair_figures(compared)
    wordings, seeds = combinations(2, 16 if is_quick else 1)
    pictures = _painted(sampler, wordings, seeds)
    figures += likeness_figures(sampler.pipeline.vae, compare_all(wordings, seeds, pictures))
    judge = load_judge()
    figures += judge_figures(judge, 400 if is_quick else 1500)
    figures += word_figures(judge, wordings, pictures)
    figures += lock_figures(sampler, judge, 48 if is_quick else 160)
    figures.append(diversity_figure(sampler, 16 if is_quick else 64))
    return "\n".join([HEAD, *(figure.line() for figure in figures)])


def _painted(
    sampler: Sampler, wordings: Sequence[Wording], seeds: Sequence[int]
) -> NDArray[np.uint8]:
    return sampler.pictures([plain_caption(wording) for wording in wordings], seeds)
