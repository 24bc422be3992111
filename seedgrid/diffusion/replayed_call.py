"""One call of a pipeline whose denoiser and decoder only give back what they gave before.

Nothing large is computed, so it costs next to nothing; what lies between the parts is all there.
The own rows that enter a part must be those of the call beside poisoned neighbours, bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from seedgrid.core.errors import RunCancelled
from seedgrid.diffusion.backend import Watch
from seedgrid.diffusion.patch import replaced
from seedgrid.diffusion.poison import MILD, Batch, mapped, tensors_in
from seedgrid.diffusion.poisoned_call import Passed, Record, numbers_in
from seedgrid.diffusion.probe_findings import Findings
from seedgrid.diffusion.watched_parts import Call, Given, called_by, denoisers, fits

_BEGINNING: Final = "noise and words"
_BETWEEN: Final = "between the parts"


class ReplayedCall:
    """Watches one call of a pipeline.

    Args:
        batch: Which rows are the own ones, here.
        watch: Asked whether to give way.
        found: Where comparisons are noted.
        record: What passed in the call beside poisoned neighbours.
        is_alone: Whether every cell is the own one; the others are poisoned otherwise.
    """

    def __init__(
        self, batch: Batch, watch: Watch, found: Findings, record: Record, *, is_alone: bool
    ) -> None:
        self._batch = batch
        self._watch = watch
        self._found = found
        self._record = record
        self._is_alone = is_alone
        self._turns: dict[str, int] = {}

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Watch every part of a pipeline in the block; afterwards it is as it was."""
        with ExitStack() as stack:
            for name, part in denoisers(pipeline).items():
                stack.enter_context(called_by(part, functools.partial(self._denoise, name)))
            vae = pipeline.components.get("vae")
            if vae is not None:
                stack.enter_context(replaced(vae, "decode", self._decoding(vae.decode)))
            yield

    def check_number_of_calls(self) -> None:
        """Make sure that as many calls were made as before.

        Raises:
            LeakFound: Fewer were.
        """
        if sum(self._turns.values()) != len(self._record.passed):
            self._found.differs(_BETWEEN)

    def _denoise(self, name: str, call: Call, given: Given) -> Any:
        rows = tensors_in(given)[0]
        if not self._batch.is_of(rows):
            return call(*given[0], **given[1])
        return self._passing(name, numbers_in(given, fits(self._batch, rows)))

    def _decoding(self, decode: Call) -> Call:
        def watched(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self._batch.is_of(latents):
                return decode(latents, *args, **kwargs)
            return self._passing("vae", [latents])

        return watched

    def _passing(self, name: str, entering: list[torch.Tensor]) -> Any:
        """Compare what enters a part, and give back what it gave."""
        if self._watch.cancelled:
            raise RunCancelled("run_cancelled")
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        passed = self._record.passed.get((name, turn))
        if passed is None:
            self._found.differs(_BETWEEN)
        alone = entering if self._is_alone else [self._batch.copies(t) for t in entering]
        is_first = turn == 0 and name != "vae"
        self._found.note(_BEGINNING if is_first else _BETWEEN, self._batch, passed.entered, alone)
        for tensor, rows in zip(entering, passed.written or (), strict=False):
            tensor.copy_(self._spread(rows, turn))
        return self._given_back(passed, turn)

    def _given_back(self, passed: Passed, turn: int) -> Any:
        has_rows = iter(passed.has_rows)
        return mapped(passed.left, lambda t: self._spread(t, turn) if next(has_rows) else t)

    def _spread(self, rows: torch.Tensor, turn: int) -> torch.Tensor:
        """Make a batch (k W, …) of own rows (k, …)."""
        copies = rows.repeat_interleave(self._batch.width, dim=0)
        return copies if self._is_alone else self._batch.poisoned(copies, turn, MILD)
