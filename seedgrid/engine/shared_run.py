"""SharedRun: one run that several painters paint at once, batch by batch.

It hands out locked batches, takes back those that came to nothing, and knows when the run has come
to its one end. Guarded by its own lock; knows nothing of threads or of where painters are.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.events import Cancelled, Done, Event, Failed
from seedgrid.core.recipe import Passport
from seedgrid.core.variables import is_on
from seedgrid.diffusion.backend import Placement
from seedgrid.engine.painting import Cells, Painter, ease, same_setting, unfinished
from seedgrid.engine.run import Run
from seedgrid.engine.saving import wait_for

_MAX_LOSSES: Final = 3
"""A batch that so many workers did not survive is not given to another one."""

Setting = tuple[str, Placement]


class SharedRun:
    """A run, as those who paint it share it.

    Attributes:
        run: What is painted.
        misfits: Names of painters whose passport is another than that of the run's first batch.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.misfits: frozenset[str] = frozenset()
        self._is_mixed = is_on("SEEDGRID_MIX_WORKERS")
        self._settings = deque(same_setting(run.jobs))
        self._ready: deque[Cells] = deque()
        self._passports: dict[Setting, Passport] = {}
        self._losses: Counter[Cells] = Counter()
        self._saving: list[Future[None]] = []
        self._error: SeedGridError | None = None
        self._num_painting = 0
        self._has_ended = False
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._start_s = time.monotonic()

    def enter(self) -> bool:
        """Count one more who paints; False when the run has ended."""
        with self._lock:
            self._num_painting += not self._has_ended
            return not self._has_ended

    def leave(self) -> None:
        """Count one less."""
        with self._lock:
            self._num_painting -= 1

    def may_end(self) -> bool:
        """Tell, once, that nothing is left and nobody paints."""
        with self._lock:
            if self._has_ended or self._num_painting or self.has_more():
                return False
            self._has_ended = True
            return True

    def abandon(self) -> None:
        """Forget what is left."""
        with self._lock:
            self._forget_the_rest()

    def fail(self, error: SeedGridError) -> None:
        """Forget what is left, for this reason, the first one that is told."""
        with self._lock:
            self._error = self._error or error
            self._forget_the_rest()

    def has_more(self) -> bool:
        """Tell whether there is more to paint than was handed out."""
        return bool(self._ready or self._settings)

    def next_batch(self, painter: Painter) -> Cells:
        """Hand out a batch; empty when there is none."""
        wait_for([each for each in self._saving if each.done()])
        with self._opening:
            self._open(painter)
        with self._lock:
            return self._ready.popleft() if self._ready else ()

    def _open(self, painter: Painter) -> None:
        while not self._ready and self._settings:
            cells = unfinished(self.run, self._settings[0])
            if cells:
                passport = painter.prepare(self.run, cells)
                self._passports.setdefault(self._setting(cells), passport)
                cells = painter.recall(self.run, cells, passport, self._saving)
            with self._lock:
                if self._settings:
                    self._settings.popleft()
                    self._ready.extend(self._in_batches(cells))

    def is_equal(self, cells: Cells, passport: Passport) -> bool:
        """Tell whether a passport is the one under which cells of this setting are painted."""
        first = self._passports.setdefault(self._setting(cells), passport)
        return self._is_mixed or first.digest == passport.digest

    def misfit(self, name: str, cells: Cells) -> None:
        """Take a batch back from a painter whose pictures could differ in their bits."""
        self.misfits |= {name}
        self._take_back(cells)

    def lost(self, cells: Cells, error: SeedGridError) -> None:
        """Take a batch back from a worker that is gone; empty where it was only loading."""
        self._losses[cells] += 1
        if self._losses[cells] >= _MAX_LOSSES:
            raise error
        self._take_back(cells)

    def ease(self, cells: Cells, error: SeedGridError) -> None:
        """Have what is left of a setting go on in a way that needs less memory, as `ease` says.

        Two batches that did not fit at the same time may go one way further than one would.
        """
        if not cells or not isinstance(error, RunError):
            raise error
        with self._lock:
            key = self.run.jobs[cells[0]].recipe.batch_key
            alike = [each for each in self._ready if self.run.jobs[each[0]].recipe.batch_key == key]
            left = tuple(cell for each in (cells, *alike) for cell in each)
            ease(self.run, left, error)
            self._ready = deque(each for each in self._ready if each not in alike)
            self._ready.extendleft(reversed(self._in_batches(left)))

    def saves(self, saving: Sequence[Future[None]]) -> None:
        """Remember what is being saved."""
        with self._lock:
            self._saving.extend(saving)

    def end(self) -> None:
        """Wait for what is being saved, and tell everybody how the run ended."""
        try:
            wait_for(self._saving)
        except SeedGridError as error:
            self._error = self._error or error
        missed = self.run.missed
        is_complete = len(self.run.finished) + len(missed) >= len(self.run.jobs)
        reason = self._error or next(iter(missed.values()), None)
        event: Event = Done(elapsed_s=time.monotonic() - self._start_s)
        if not is_complete and (reason is None or self.run.cancelled):
            event = Cancelled()
        elif reason is not None:
            event = Failed(error=reason)
        self.run.conclude(event)

    def _take_back(self, cells: Cells) -> None:
        with self._lock:
            if cells and self._error is None and not self.run.cancelled:
                self._ready.appendleft(cells)

    def _forget_the_rest(self) -> None:
        self._ready.clear()
        self._settings.clear()

    def _setting(self, cells: Cells) -> Setting:
        return self.run.jobs[cells[0]].recipe.batch_key, self.run.placement

    def _in_batches(self, cells: Cells) -> list[Cells]:
        if not cells:
            return []
        width = self.run.jobs[cells[0]].recipe.lock_width
        return [cells[start : start + width] for start in range(0, len(cells), width)]
