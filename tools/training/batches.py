"""Training batches: latents and numbers from the shards, captions worded anew each time."""

from __future__ import annotations

import numpy as np
import torch
from transformers import CLIPTokenizer

from tools.training.dataset import Shard, load_shard, shard_indices
from tools.training.tokenizer import to_ids
from tools.training.words import Wording, caption, plain_caption

CAPTION_DROPOUT = 0.08
PLAIN_SHARE = 0.35
VALIDATION_SHARDS = frozenset({0})
"""Shards that are never trained on."""

LESSONS = (8_000, 13_000)
"""Pictures seen when the first lesson (one style, no modifier) and the second (no modifier) end.

Without lessons the network learns the words first, and to do so wipes out what little it knows of
the numbers in the noise; with one style to begin with, the numbers are what there is to learn.
"""


def lesson_of(wording: Wording) -> int:
    """In which lesson (0, 1 or 2) a picture first appears."""
    if wording.modifier != "none":
        return 2
    return 0 if wording.style == "plain" else 1


class Batches:
    """Draws batches from whatever shards exist; `refresh` finds new ones."""

    def __init__(self, words: CLIPTokenizer, rng: np.random.Generator) -> None:
        self.words = words
        self.rng = rng
        self.shards: dict[int, Shard] = {}
        self.rows: tuple[list[tuple[int, int]], ...] = ([], [], [])
        self.refresh()

    def refresh(self) -> None:
        """Open the shards that were drawn since."""
        for index in shard_indices():
            if index not in self.shards and index not in VALIDATION_SHARDS:
                self.shards[index] = load_shard(index)
                for row, wording in enumerate(self.shards[index].wordings):
                    for lesson in range(lesson_of(wording), len(self.rows)):
                        self.rows[lesson].append((index, row))

    def draw(self, size: int, seen: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """A batch.

        Args:
            size: how many pictures.
            seen: how many there have been before: decides the lesson.

        Returns:
            Latents `(size, 24, 16, 16)` float32, normals `(size, 12)`, token ids `(size, 40)`.
        """
        rows = self.rows[sum(seen >= end for end in LESSONS)]
        chosen = [rows[int(k)] for k in self.rng.integers(len(rows), size=size)]
        picks = [(self.shards[index], row) for index, row in chosen]
        latents = np.stack([shard.latents[row] for shard, row in picks]).astype(np.float32)
        normals = np.stack([shard.normals[row] for shard, row in picks])
        captions = [self._caption(shard, row) for shard, row in picks]
        ids = torch.tensor(to_ids(self.words, captions))
        return torch.from_numpy(latents), torch.from_numpy(normals), ids

    def _caption(self, shard: Shard, row: int) -> str:
        chance = self.rng.random()
        if chance < CAPTION_DROPOUT:
            return ""
        if chance < CAPTION_DROPOUT + PLAIN_SHARE:
            return plain_caption(shard.wordings[row])
        return caption(shard.wordings[row], self.rng)
