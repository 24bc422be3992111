"""Watching: what the backend tells of a batch, to the run and to the watchdog."""

import time
from dataclasses import replace

from seedgrid.core.errors import Notice, RunCancelled
from seedgrid.core.events import Eased, Noise, Step
from seedgrid.diffusion.backend import PreviewMaker
from seedgrid.engine.run import Run
from seedgrid.engine.watchdog import Pulse


class BatchWatch:
    """Follows one batch for the run it belongs to."""

    def __init__(
        self, run: Run, cells: tuple[int, ...], pulse: Pulse, *, has_previews: bool
    ) -> None:
        self._run = run
        self._cells = cells
        self._pulse = pulse
        self._has_previews = has_previews
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
    def cancelled(self) -> bool:
        """Whether the run was asked to stop."""
        return self._run.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        """Announce the beginning."""
        self._live()
        if self._has_previews:
            self._run.announce(Noise(cells=self._cells, previews=previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        """Announce a step."""
        self._live()
        shown = previews() if self._has_previews else ()
        self._last = Step(cells=self._cells, number=number, total=total, previews=shown)
        self._last_seen_s = time.monotonic()
        self._first_seen = self._first_seen or (number, self._last_seen_s)
        self._run.announce(self._last)

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
        self._pulse.beat()
        if self._run.has_ended:  # its thread was given up, and comes back now
            raise RunCancelled("run_cancelled")
