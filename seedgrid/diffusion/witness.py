"""What one picture of a grid was at every part of a pipeline: the ordinary side of a comparison.

Whatever a probe compares has to be run twice at the full width. Where nobody tested the lock yet, a
grid that is painted anyway is watched, and is one of the two: beside it the probe needs only the
batch with poisoned neighbours. The rows of one slot are kept; nothing else is computed.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.poison import Batch, is_finite, mapped, tensors_in
from seedgrid.diffusion.watched_parts import Call, Given, fits, parts_called_by


@dataclass(kw_only=True)
class Passed:
    """The own rows of what went through a part in one call.

    Attributes:
        entered: Of the numbers that it was given, each (k, …).
        written: The same afterwards, where the part wrote into what it was given.
        left: What it gave back, with own rows only.
        has_rows: Which tensors of `left` had a row for every cell.
    """

    entered: list[torch.Tensor]
    left: Any
    has_rows: list[bool]
    written: list[torch.Tensor] | None = None

    @property
    def rows(self) -> list[torch.Tensor]:
        """What left with a row for every cell."""
        pairs = zip(tensors_in(self.left), self.has_rows, strict=True)
        return [tensor for tensor, has_rows in pairs if has_rows]


@dataclass
class Record:
    """What passed, by the part's name and the number of its call; and starts that were encoded."""

    passed: dict[tuple[str, int], Passed] = field(default_factory=dict)
    encoded: list[tuple[torch.Tensor, Any]] = field(default_factory=list)

    def keep(
        self, batch: Batch, name: str, turn: int, entered: list[torch.Tensor], result: Any
    ) -> Passed:
        """Keep own rows; those that went in as they did in the call before are kept once."""
        before = self.passed.get((name, turn - 1))
        if before is not None and len(before.entered) == len(entered):
            entered = [
                old if torch.equal(old, new) else new
                for old, new in zip(before.entered, entered, strict=True)
            ]
        has_rows = [batch.is_of(tensor) for tensor in tensors_in(result)]
        own = mapped(result, lambda t: batch.own_rows(t) if batch.is_of(t) else t)
        passed = Passed(entered=entered, left=own, has_rows=has_rows)
        self.passed[name, turn] = passed
        return passed


class Witness:
    """Watches a batch that is painted anyway.

    Args:
        cells: What is painted in one call, one recipe a slot; the last one's rows are kept.

    Attributes:
        slot: Where that one sits.
        recipe: What it is.
        record: Its rows, part by part.
    """

    def __init__(self, cells: Sequence[Recipe]) -> None:
        self.slot = len(cells) - 1
        self.recipe = cells[-1]
        self._batch = Batch(width=len(cells), own=self.slot)
        self.record = Record()
        self._turns: dict[str, int] = {}

    @property
    def has_numbers(self) -> bool:
        """Whether it is a picture: whatever leaks into NaN is NaN, which proves nothing."""
        return all(is_finite(passed.rows) for passed in self.record.passed.values())

    def watching(self, pipeline: Any) -> AbstractContextManager[None]:
        """Watch denoiser and decoder in the block; afterwards the pipeline is as it was."""
        return parts_called_by(pipeline, self._denoise, self._decoding)

    def _denoise(self, name: str, call: Call, given: Given) -> Any:
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        entered = own_numbers(self._batch, given, fits(self._batch, rows))
        result = call(*given[0], **given[1])
        self._keep(name, entered, result)
        return result

    def _decoding(self, decode: Call) -> Call:
        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            entered = [self._batch.own_rows(latents)]
            result = decode(latents, *args, **kwargs)
            self._keep("vae", entered, result)
            return result

        return watched

    def _keep(self, name: str, entered: list[torch.Tensor], result: Any) -> None:
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        self.record.keep(self._batch, name, turn, entered, result)


def numbers_in(given: Given, is_row: Callable[[torch.Tensor], bool]) -> list[torch.Tensor]:
    """Return the numbers among a call's arguments that have a row for every cell."""
    return [t for t in tensors_in(given) if t.is_floating_point() and is_row(t)]


def own_numbers(
    batch: Batch, given: Given, is_row: Callable[[torch.Tensor], bool]
) -> list[torch.Tensor]:
    """Return the own rows of the numbers among a call's arguments."""
    return [batch.own_rows(t) for t in numbers_in(given, is_row)]
