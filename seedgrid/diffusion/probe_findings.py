"""Findings: what a probe compares, bit by bit, and what came of it."""

from __future__ import annotations

from typing import Any

import torch

from seedgrid.diffusion.poison import Batch, tensors_in
from seedgrid.diffusion.probe_results import Check


class LeakFound(Exception):  # noqa: N818 (it ends a test; nothing went wrong)
    """A neighbour, or the slot, was seen to reach the own picture."""


class Findings:
    """What was compared at one width, by part."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: dict[str, list[float]] = {}  # compared, differing, largest

    def note(self, part: str, batch: Batch, found: Any, alone: Any) -> None:
        """Compare the own rows of what came out beside neighbours with those of copies.

        Raises:
            LeakFound: A bit differs.
        """
        pairs = [
            pair
            for pair in zip(tensors_in(found), tensors_in(alone), strict=True)
            if batch.is_of(pair[0]) and pair[0].shape == pair[1].shape
        ]
        seen = self._parts.setdefault(part, [0, 0, 0.0])
        for one, other in pairs:
            differing = batch.differing(one, other)
            seen[0] += differing.numel()
            if differing.any():
                seen[1] += int(differing.sum())
                mine = batch.own_rows(one).unsqueeze(1)
                theirs = other.reshape(-1, batch.width, *other.shape[1:])
                largest = (mine.double() - theirs.double()).abs().nan_to_num(nan=torch.inf).max()
                seen[2] = max(seen[2], float(largest))
        if seen[1]:
            raise LeakFound(part)

    def checks(self) -> list[Check]:
        """Return what there is to report, a check each part."""
        return [
            Check(
                name=part,
                lock_width=self._width,
                holds=not differing,
                differing=int(differing),
                compared=int(compared),
                max_difference=largest if largest < float("inf") else None,
            )
            for part, (compared, differing, largest) in self._parts.items()
        ]
