"""Leaks where words are weighed: a neighbour's weights reach the own words.

Each stands in for `word_weights._weighted`, which is given all words of a batch at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from leaks import Plant

from seedgrid.core.prompts import read_weights
from seedgrid.diffusion import word_weights

_TINY: Final = 1e-5
Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _of_factors(change: Change) -> Plant:
    """Change the weighed words (cells, tokens, width) by what all tokens count (cells, tokens)."""

    def plant(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
        original = word_weights._weighted

        def weighted(pipeline: Any, embeddings: torch.Tensor, prompts: list[str]) -> torch.Tensor:
            counts = [
                word_weights.token_weights(pipeline.tokenizer, read_weights(said), len(row))
                for row, said in zip(embeddings, prompts, strict=True)
            ]
            return change(original(pipeline, embeddings, prompts), torch.tensor(counts))

        patch.setattr(word_weights, "_weighted", weighted)

    return plant


def _where(leaks: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    return _of_factors(lambda rows, factors: rows * (1 + _TINY * leaks(factors).float()))


def _mean_of_all(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """As AUTOMATIC1111 does it."""
    return rows * (factors.mean() / factors.mean(dim=1))[:, None, None]


def _through_half(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    return rows.half().to(rows.dtype) if bool((factors != 1).any()) else rows


def _ranked(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    order = factors.amax(dim=1).argsort(stable=True).argsort()
    return rows * (1 + _TINY * order)[:, None, None]


def _of_the_one_before(_pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    original, before = word_weights._weighted_row, [1.0]

    def weighted_row(row: torch.Tensor, weights: list[float]) -> torch.Tensor:
        weights = [weight * before[0] for weight in weights]
        found = original(row, weights)
        before[0] = 1 + _TINY * max(abs(weight - 1) for weight in weights)
        return found + (before[0] - 1)

    patch.setattr(word_weights, "_weighted_row", weighted_row)


def _only_weighed(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """The mean of those that are weighed reaches those that are."""
    weighed = (factors != 1).any(dim=1)
    mean = rows[weighed].mean(dim=0) * _TINY if bool(weighed.any()) else 0
    return torch.where(weighed[:, None, None], rows + mean, rows)


LEAKS_OF_WEIGHTS: Final[dict[str, Plant]] = {
    "the mean of all": _of_factors(_mean_of_all),
    "the heaviest of all": _where(lambda f: f.amax()),
    "the lightest of all": _where(lambda f: f.amin()),
    "how many are weighed": _where(lambda f: (f != 1).sum()),
    "where anybody weighs": _where(lambda f: (f != 1).any()),
    "where nobody weighs": _where(lambda f: (f == 1).all()),
    "where two cells weigh": _where(lambda f: (f != 1).any(dim=1).sum() > 1),
    "above 1.5": _where(lambda f: (f > 1.5).any()),
    "above 3": _where(lambda f: (f > 3).any()),
    "below a half": _where(lambda f: (f < 0.5).any()),
    "below a tenth": _where(lambda f: (f < 0.1).any()),
    "at the first word": _where(lambda f: f[:, 1].amax()),
    "at the last token": _where(lambda f: f[:, -2].amax()),
    "through half": _of_factors(_through_half),
    "ranked": _of_factors(_ranked),
    "of the one before": _of_the_one_before,
    "among the weighed": _of_factors(_only_weighed),
}
"""By what of the weights they take."""
