"""Worker: the thread of one painter. It takes batches and tasks from the queue, one at a time.

On one machine there is one worker, and its thread alone touches torch; in a cluster each remote
worker has one. Whatever goes wrong ends a run and never the thread. Knows nothing of files.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from seedgrid.core.errors import RunCancelled, RunError, SeedGridError
from seedgrid.core.events import Loading, Missed, Started
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, Outcome
from seedgrid.engine.batch_watch import BatchWatch
from seedgrid.engine.batches import Batches, Cells, KnownPassports, known_of
from seedgrid.engine.queue import FairQueue, Task, Work
from seedgrid.engine.run import Run
from seedgrid.engine.saver import Saver
from seedgrid.engine.scratch import Painted

logger = logging.getLogger(__name__)

_LONG: Final = 10
"""A task may be silent for so many times as long as its pictures were estimated to take."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a painter may give no sign of life: no step, no tile, nothing loaded.

    Attributes:
        stop_s: After Stop, beside what its batch was estimated to take.
        silence_s: At any time; a task adds ten times its estimate.
        close_s: How long closing waits for it.
        check_s: Between two looks.
    """

    stop_s: float = 60.0
    silence_s: float = 1800.0
    close_s: float = 2.0
    check_s: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What all workers of an engine share."""

    patience: Patience
    queue: FairQueue = field(default_factory=FairQueue)
    saver: Saver = field(default_factory=Saver)
    speeds: Speeds = field(default_factory=Speeds)
    passports: KnownPassports = field(default_factory=KnownPassports)
    painted: Painted = field(default_factory=Painted)

    def settle(self, batches: Batches) -> None:
        """Let others paint at a run that has more, or let it end behind what it has to save."""
        if batches.has_more and not self.queue.put(batches, is_begun=True):
            batches.abandon()  # The queue is closed.
        if batches.may_end():
            self.queue.remove(batches)
            self.saver.submit(batches.end)


class Worker:
    """One painter and its thread.

    Args:
        backend: What paints; only this thread calls it, and closes it at the end.
        shared: What it shares with other workers.
        on_lost: Called when it gave no sign of life for too long, or its thread died.
        name: Its name among several.

    Attributes:
        gone: Set when the thread has ended.
        is_over: Set it to let the thread end after what it does now.
        work: What it does now.
    """

    def __init__(
        self, backend: Backend, shared: Shared, on_lost: Callable[[], object], name: str = "worker"
    ) -> None:
        self.name = name
        self.gone = threading.Event()
        self.is_over = False
        self.work: Work | None = None
        self._backend = backend
        self._shared = shared
        self._on_lost = on_lost
        self._saving: Future[None] | None = None
        self._num_signs = 0
        self._painted_s: float | None = None  # how long the batch that is painted should take
        for target in (self._live, self._watch):
            threading.Thread(target=target, name=f"seedgrid-{name}", daemon=True).start()

    def sign(self) -> None:
        """Give a sign of life."""
        self._num_signs += 1

    def _live(self) -> None:
        queue = self._shared.queue
        try:
            while (work := queue.take(self._fits, lambda: self.is_over)) is not None:
                self.work = work
                self._do(work)
                self.work = None
        except BaseException:
            logger.exception("the thread of %s has ended", self.name)
            self._on_lost()
        finally:
            self.work = None
            try:
                self._backend.close()
            except Exception:  # A backend that cannot be closed keeps nobody waiting.
                logger.exception("%s could not be closed", self.name)
            self.gone.set()

    def _watch(self) -> None:
        """Look for signs of life; looks are counted, so a machine that slept has not hung."""
        quiet_s, seen = 0.0, (self.work, 0)
        while not self.gone.wait(self._shared.patience.check_s):
            now = (self.work, self._num_signs)
            is_quiet = now == seen and self.work is not None
            quiet_s = quiet_s + self._shared.patience.check_s if is_quiet else 0.0
            seen = now
            if quiet_s > self._patience_s(self.work):
                logger.error("%s does not come back from what it does", self.name)
                self._on_lost()
                return

    def _patience_s(self, work: Work | None) -> float:
        patience, painted_s = self._shared.patience, self._painted_s
        if isinstance(work, Task):
            return patience.silence_s + _LONG * self._shared.speeds.estimate_s(work.recipes)
        if work is not None and work.run.cancelled and painted_s is not None:
            return min(patience.silence_s, patience.stop_s + painted_s)
        return patience.silence_s

    def _fits(self, work: Work) -> bool:
        return isinstance(work, Task) or self.name not in work.misfits

    def _do(self, work: Work) -> None:
        if isinstance(work, Task):
            work.run(self._backend)
        elif work.enter():
            try:
                work.run.context.copy().run(self._paint_next, work)
            except BaseException as error:  # Who follows the run waits for its end.
                logger.exception("a run failed unexpectedly")
                work.fail(error)
            finally:
                work.leave()
                self._shared.settle(work)

    def _paint_next(self, batches: Batches) -> None:
        cells = batches.take()
        if batches.has_more:
            self._shared.queue.put(batches, is_begun=True)
        if not cells:
            return
        try:
            self._paint(batches, cells)
        except RunCancelled:
            batches.abandon()
        except SeedGridError as error:
            self.is_over = error.code == "worker_lost"
            batches.bear(cells, error)

    def _paint(self, batches: Batches, cells: Cells) -> None:
        run, shared = batches.run, self._shared
        passport = self._prepare(run, cells)
        if not batches.is_equal(cells, passport):
            batches.give_back(cells, misfit=self.name)
            return
        known = known_of(run, cells, passport, shared.painted)
        for saved in shared.saver.keep(run, known):
            batches.watch(saved)
        cells = tuple(cell for cell in cells if cell not in known.cells)
        if not cells:
            return
        pictures = _pictures_of(run, cells, self._paint_batch(run, cells))
        if run.is_live:  # Known from this moment: who asks for it in earnest waits for nothing.
            for cell, pixels in pictures:
                decoder = run.placement.decoder
                shared.painted.note(run.owner, run.jobs[cell].recipe, passport, pixels, decoder)
        if self._saving is not None:
            wait([self._saving])  # Memory holds two batches at most.
        self._saving = shared.saver.save(run, pictures, passport)
        batches.watch(self._saving)

    def _prepare(self, run: Run, cells: Cells) -> Passport:
        """Load what a batch needs, and return under which passport it will be painted."""
        _raise_if_cancelled(run)
        recipe, placement = run.jobs[cells[0]].recipe, run.placement
        is_ready, start_s = self._backend.is_ready(recipe, placement), time.monotonic()
        if not is_ready:
            run.announce(Loading(model=recipe.model.id))

        def watch(num_bytes: int, total: int) -> None:
            self.sign()
            _raise_if_cancelled(run)
            run.announce(Loading(model=recipe.model.id, num_bytes=num_bytes, total=total))

        passport = self._backend.prepare(recipe, placement, watch)
        self.sign()
        if not is_ready:
            self._shared.speeds.note_loading(recipe, time.monotonic() - start_s)
        self._shared.passports.note(recipe, placement, passport)
        return passport

    def _paint_batch(self, run: Run, cells: Cells) -> tuple[Outcome, ...]:
        _raise_if_cancelled(run)
        run.announce(Started(cells=cells))
        recipes = [run.jobs[cell].recipe for cell in cells]
        watch, start_s = BatchWatch(run, cells, self.sign), time.monotonic()
        self._painted_s = self._shared.speeds.estimate_s(recipes)
        try:
            outcomes = self._backend.paint(recipes, run.placement, watch)
        finally:
            self._painted_s = None
        self.sign()
        if not run.placement.decoder:
            elapsed_s = time.monotonic() - start_s
            self._shared.speeds.note(recipes[0], elapsed_s, watch.step_s, watch.after_steps_s)
        return outcomes


def _raise_if_cancelled(run: Run) -> None:
    if run.cancelled:
        raise RunCancelled("run_cancelled")


def _pictures_of(run: Run, cells: Cells, outcomes: Sequence[Outcome]) -> list[tuple[int, Pixels]]:
    """Return the pictures that came out, by cell; tell at once of those that did not."""
    pairs = [
        (cell, _checked(outcome, run.jobs[cell].recipe))
        for cell, outcome in zip(cells, outcomes, strict=True)
    ]
    missed = [(cell, error) for cell, error in pairs if isinstance(error, RunError)]
    run.announce(*(Missed(cell=cell, error=error) for cell, error in missed))
    return [(cell, pixels) for cell, pixels in pairs if not isinstance(pixels, RunError)]


def _checked(outcome: Outcome, recipe: Recipe) -> Outcome:
    """Return what came out, or an error for what is no picture of this recipe."""
    if isinstance(outcome, RunError):
        return outcome
    shape = (recipe.height, recipe.width, 3)
    if outcome.shape == shape and outcome.dtype == np.uint8:
        return outcome
    found = f"{outcome.dtype} {'x'.join(map(str, outcome.shape))}"
    return RunError("picture_shape", value=found, wanted=f"uint8 {'x'.join(map(str, shape))}")
