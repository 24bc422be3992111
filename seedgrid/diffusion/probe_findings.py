"""What a probe compared, by part of the pipeline, and that a leak was found. Knows no pipelines."""

from typing import Any, Final, NoReturn

import torch

from seedgrid.diffusion.poison import Batch, tensors_in
from seedgrid.diffusion.probe_results import Check

BETWEEN: Final = "between the parts"
"""Where what enters a part was made."""


class LeakFound(Exception):  # noqa: N818 (it ends a test; nothing went wrong)
    """A neighbour, or the slot, was seen to reach the own picture."""


class Findings:
    """What was compared at one width, by part."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: dict[str, list[float]] = {}  # compared, differing, largest

    def note(self, part: str, batch: Batch, own: Any, alone: Any) -> None:
        """Compare own rows that had bad neighbours with those in all other slots.

        Args:
            part: Of the pipeline.
            batch: Which rows are the own ones.
            own: Tensors (k, …) in any nesting: the own rows only.
            alone: The same of a batch of copies in all slots but the own one, each (k W, …).

        Raises:
            LeakFound: A bit differs, or there is not as much.
        """
        seen = self._parts.setdefault(part, [0, 0, 0.0])
        mine, theirs = tensors_in(own), tensors_in(alone)
        if len(mine) != len(theirs):
            self.differs(part)
        for one, other in zip(mine, theirs, strict=True):
            if other.shape != (one.shape[0] * batch.width, *one.shape[1:]):
                self.differs(part)
            differing = batch.differing(one, other)
            seen[0] += differing.numel()
            if differing.any():
                seen[1] += int(differing.sum())
                expected = batch.in_other_slots(other).double()
                distance = (one.unsqueeze(1).double() - expected).abs()
                seen[2] = max(seen[2], float(distance.nan_to_num(nan=torch.inf).max()))
        if seen[1]:
            raise LeakFound(part)

    def differs(self, part: str) -> NoReturn:
        """Note that a part was run otherwise altogether: other shapes, or another number of times.

        Raises:
            LeakFound: Always.
        """
        seen = self._parts.setdefault(part, [0, 0, 0.0])
        self._parts[part] = [seen[0] + 1, seen[1] + 1, torch.inf]
        raise LeakFound(part)

    def require(self, part: str) -> None:
        """Make sure that a part was compared at all: what nobody saw is not tested.

        Raises:
            LeakFound: It was not.
        """
        if not self._parts.get(part, [0])[0]:
            self.differs(part)

    def checks(self) -> list[Check]:
        """Return what was compared, part by part."""
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
