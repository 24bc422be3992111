"""BatchWatch: tells a run how one of its batches goes."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

from seedgrid.core.errors import Notice, RunCancelled
from seedgrid.core.events import Eased, Noise, Step
from seedgrid.diffusion.backend import PreviewMaker
from seedgrid.engine.batches import Cells
from seedgrid.engine.run import Run


class BatchWatch:
    """Tells a run how one of its batches goes; see `Watch`."""

    def __init__(self, run: Run, cells: Cells, sign: Callable[[], None]) -> None:
        self._run = run
        self._cells = cells
        self._sign = sign
        self._last = Step(cells=cells, number=0, total=0)
        self._first_seen: tuple[int, float] | None = None
        self._last_seen_s = 0.0

    @property
    def step_s(self) -> float | None:
        """How long a step took, in seconds; None before two of them are done."""
        if self._first_seen is None or self._last.number <= self._first_seen[0]:
            return None
        number, seen_s = self._first_seen
        return (self._last_seen_s - seen_s) / (self._last.number - number)

    @property
    def after_steps_s(self) -> float | None:
        """How long ago the last step was done, in seconds; None before any."""
        return time.monotonic() - self._last_seen_s if self._last.number else None

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop."""
        return self._run.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Announce the beginning."""
        self._live()
        if self._run.placement.previews:
            self._run.announce(Noise(cells=self._cells, previews=previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Announce a step."""
        self._live()
        shown = previews() if self._run.placement.previews else ()
        self._last = Step(cells=self._cells, number=number, total=total, previews=shown)
        self._last_seen_s = time.monotonic()
        self._first_seen = self._first_seen or (number, self._last_seen_s)
        if step_s := self.step_s:
            left_s = step_s * (total - number + total * self._num_batches_behind())
            self._last = replace(self._last, left_s=left_s)
        self._run.announce(self._last)

    def _num_batches_behind(self) -> int:
        jobs, finished = self._run.jobs, self._run.finished
        behind = [cell for cell in range(self._cells[-1] + 1, len(jobs)) if cell not in finished]
        return math.ceil(len(behind) / jobs[self._cells[-1]].recipe.lock_width)

    def tile(self, number: int, total: int) -> None:
        """Announce the last step once more, with the tile that is decoded now."""
        self._live()
        if self._last.number:
            self._run.announce(replace(self._last, tile=number, num_tiles=total))

    def freed(self) -> None:
        """Announce that the batch begins anew, with all memory that can be had."""
        self._live()
        self._first_seen = None
        self._run.announce(Eased(notice=Notice("memory_freed")))

    def _live(self) -> None:
        self._sign()
        if self._run.has_ended:  # It was closed meanwhile and waits for nobody.
            raise RunCancelled("run_cancelled")
