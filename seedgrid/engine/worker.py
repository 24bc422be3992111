"""Worker: the thread of one painter. It takes batches and tasks from the queue, one at a time.

On one machine there is one worker, and its thread alone touches torch; in a cluster there is one
for each remote painter. An error in a run ends the thread only if the painter is lost.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from seedgrid.core.errors import Notice, RunCancelled, RunError, SeedGridError
from seedgrid.core.events import Eased, Loading, Missed, Noise, Started, Step
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, Outcome, PreviewMaker
from seedgrid.engine.batches import Batches, Cells, LastPassports
from seedgrid.engine.queue import FairQueue, Task, Work
from seedgrid.engine.run import Run
from seedgrid.engine.saver import LivePictures, Reusable, Saver, find_reusable

logger = logging.getLogger(__name__)

_TASK_FACTOR: Final = 10  # For a task, so many times its estimated time is added to `silence_s`


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a painter may report nothing (step, tile, loading) before it counts as hung."""

    stop_s: float = 60.0  # After its run was cancelled, on top of the estimate of its batch
    silence_s: float = 1800.0  # At any time; for a task ten times its estimate, if any, is added
    close_s: float = 2.0  # How long `Engine.close` waits for a painter
    check_s: float = 0.5  # Time between two checks of its heartbeat


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What all workers of an engine share."""

    patience: Patience
    queue: FairQueue = field(default_factory=FairQueue)
    saver: Saver = field(default_factory=Saver)
    speeds: Speeds = field(default_factory=Speeds)
    passports: LastPassports = field(default_factory=LastPassports)
    live_pictures: LivePictures = field(default_factory=LivePictures)

    def save_reusable(self, batches: Batches, reusable: Reusable) -> None:
        """Save the pictures of a run that need no painting."""
        for saved in self.saver.save_reusable(batches.run, reusable):
            batches.fail_if_unsaved(saved)

    def queue_or_end(self, batches: Batches) -> None:
        """Queue a run that has more batches; end one that has none, once its pictures are saved."""
        if batches.has_more and not self.queue.put(batches, is_begun=True):
            batches.drop_remaining()  # The queue is closed.
        if batches.claim_end():
            self.queue.remove(batches)
            self.saver.enqueue(batches.announce_end)


class Worker:
    """One painter and its thread, which alone calls `backend`, and closes it at the end.

    `on_lost` is called if the painter was silent for too long, or an error ended the thread.
    """

    def __init__(
        self, backend: Backend, shared: Shared, on_lost: Callable[[], object], name: str = "worker"
    ) -> None:
        self.name = name
        self.ended = threading.Event()  # Set when the thread has ended
        self.should_end = False  # To be set to end the thread after its current work
        self._work: Work | None = None
        self._backend = backend
        self._shared = shared
        self._on_lost = on_lost
        self._saving: Future[None] | None = None
        self._num_heartbeats = 0
        self._estimate_s: float | None = None  # Of the batch that is being painted
        for target in (self._run, self._watch):
            threading.Thread(target=target, name=f"seedgrid-{name}", daemon=True).start()

    def _beat(self) -> None:
        self._num_heartbeats += 1

    def _run(self) -> None:
        def fits(work: Work) -> bool:
            return isinstance(work, Task) or self.name not in work.excluded_painters

        try:
            while (work := self._shared.queue.take(fits, lambda: self.should_end)) is not None:
                self._work = work
                self._do(work)
                self._work = None
        except BaseException:
            logger.exception("the thread of %s has ended", self.name)
            self._on_lost()
        finally:
            self._work = None
            try:
                self._backend.close()
            except Exception:  # The thread ends even if its backend cannot be closed.
                logger.exception("%s could not be closed", self.name)
            self.ended.set()

    def _watch(self) -> None:
        """Call `on_lost` after a silence of many checks: a suspended computer makes no checks."""
        silent_s, last = 0.0, (self._work, 0)
        while not self.ended.wait(self._shared.patience.check_s):
            now = (self._work, self._num_heartbeats)
            is_silent = now == last and self._work is not None
            silent_s = silent_s + self._shared.patience.check_s if is_silent else 0.0
            last = now
            if silent_s > self._patience_s(self._work):
                logger.error("%s gives no sign of life", self.name)
                self._on_lost()
                return

    def _patience_s(self, work: Work | None) -> float:
        patience, estimate_s = self._shared.patience, self._estimate_s
        if isinstance(work, Task):
            known_s = self._shared.speeds.known_s(work.recipes)
            return math.inf if known_s is None else patience.silence_s + _TASK_FACTOR * known_s
        if work is not None and work.run.cancelled and estimate_s is not None:
            return min(patience.silence_s, patience.stop_s + estimate_s)
        return patience.silence_s

    def _do(self, work: Work) -> None:
        if isinstance(work, Task):
            work.run(self._backend)
        elif work.add_painter():
            try:
                work.run.context.copy().run(self._paint_next, work)
            except BaseException as error:  # The run must end: callers wait for that.
                logger.exception("a run failed unexpectedly")
                work.fail(error)
            finally:
                work.remove_painter()
                self._shared.queue_or_end(work)

    def _paint_next(self, batches: Batches) -> None:
        cells = batches.take_batch()
        if batches.has_more:
            self._shared.queue.put(batches, is_begun=True)
        if not cells:
            return
        try:
            self._paint(batches, cells)
        except RunCancelled:
            batches.drop_remaining()
        except SeedGridError as error:
            self.should_end |= error.code == "worker_lost"
            batches.retry_or_fail(cells, error)

    def _paint(self, batches: Batches, cells: Cells) -> None:
        run, shared = batches.run, self._shared
        passport = self._prepare(run, cells)
        if not batches.has_same_passport(cells, passport):
            batches.requeue(cells, excluded=self.name)
            return
        reusable = find_reusable(run, cells, passport, shared.live_pictures)
        shared.save_reusable(batches, reusable)
        cells = tuple(cell for cell in cells if cell not in reusable.cells)
        if not cells:
            return
        pictures = _pictures_of(run, cells, self._paint_batch(run, cells))
        if run.is_live:  # An ordinary run of these recipes can reuse the pictures.
            for cell, pixels in pictures:
                recipe, decoder = run.jobs[cell].recipe, run.placement.decoder
                shared.live_pictures.put(run.owner, recipe, passport, pixels, decoder)
        if self._saving is not None:
            wait([self._saving])  # So that memory holds the pictures of at most two batches.
        self._saving = shared.saver.save(run, pictures, passport)
        batches.fail_if_unsaved(self._saving)

    def _prepare(self, run: Run, cells: Cells) -> Passport:
        """Load what a batch needs, and return the passport of its pictures."""
        _raise_if_cancelled(run)
        recipe, placement = run.jobs[cells[0]].recipe, run.placement
        is_ready, start_s = self._backend.is_ready(recipe, placement), time.monotonic()
        if not is_ready:
            run.announce(Loading(model=recipe.model.id))

        def watch() -> None:
            self._beat()
            _raise_if_cancelled(run)

        passport = self._backend.prepare(recipe, placement, watch)
        self._beat()
        if not is_ready:
            self._shared.speeds.record_loading(recipe, time.monotonic() - start_s)
        self._shared.passports.put(recipe, placement, passport)
        return passport

    def _paint_batch(self, run: Run, cells: Cells) -> tuple[Outcome, ...]:
        _raise_if_cancelled(run)
        run.announce(Started(cells=cells))
        recipes = [run.jobs[cell].recipe for cell in cells]
        watch, start_s = _BatchWatch(run, cells, self._beat), time.monotonic()
        self._estimate_s = self._shared.speeds.estimate_s(recipes)
        try:
            outcomes = self._backend.paint(recipes, run.placement, watch)
        finally:
            self._estimate_s = None
        self._beat()
        if not run.placement.decoder:
            elapsed_s = time.monotonic() - start_s
            self._shared.speeds.record(recipes[0], elapsed_s, watch.step_s, watch.after_steps_s)
        return outcomes


def _raise_if_cancelled(run: Run) -> None:
    if run.cancelled:
        raise RunCancelled("run_cancelled")


def _pictures_of(run: Run, cells: Cells, outcomes: Sequence[Outcome]) -> list[tuple[int, Pixels]]:
    """Return the painted pictures with their cells; announce the errors of the others."""
    pictures = []
    for cell, outcome in zip(cells, outcomes, strict=True):
        checked = _checked(outcome, run.jobs[cell].recipe)
        if isinstance(checked, RunError):
            run.announce(Missed(cell=cell, error=checked))
        else:
            pictures.append((cell, checked))
    return pictures


def _checked(outcome: Outcome, recipe: Recipe) -> Outcome:
    """Return an outcome, or an error if it is no picture of this recipe's size."""
    if isinstance(outcome, RunError):
        return outcome
    shape = (recipe.height, recipe.width, 3)
    if outcome.shape == shape and outcome.dtype == np.uint8:
        return outcome
    actual = f"{outcome.dtype} {'x'.join(map(str, outcome.shape))}"
    return RunError("picture_shape", value=actual, wanted=f"uint8 {'x'.join(map(str, shape))}")


class _BatchWatch:
    """Announces the progress of a batch in its run; see `Watch`."""

    def __init__(self, run: Run, cells: Cells, beat: Callable[[], None]) -> None:
        self._run = run
        self._cells = cells
        self._beat = beat
        self._last = Step(cells=cells, number=0, total=0)
        self._first_seen: tuple[int, float] | None = None
        self._last_seen_s = 0.0

    @property
    def step_s(self) -> float | None:
        """The mean seconds of a step; None before two steps are done."""
        if self._first_seen is None or self._last.number <= self._first_seen[0]:
            return None
        number, seen_s = self._first_seen
        return (self._last_seen_s - seen_s) / (self._last.number - number)

    @property
    def after_steps_s(self) -> float | None:
        """The seconds since the last step was done; None before the first."""
        return time.monotonic() - self._last_seen_s if self._last.number else None

    @property
    def cancelled(self) -> bool:
        return self._run.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        self._beat_or_raise()
        if self._run.placement.previews:
            self._run.announce(Noise(cells=self._cells, previews=previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        self._beat_or_raise()
        shown = previews() if self._run.placement.previews else ()
        self._last = Step(cells=self._cells, number=number, total=total, previews=shown)
        self._last_seen_s = time.monotonic()
        self._first_seen = self._first_seen or (number, self._last_seen_s)
        if step_s := self.step_s:
            left_s = step_s * (total - number + total * self._num_later_batches())
            self._last = replace(self._last, left_s=left_s)
        self._run.announce(self._last)

    def _num_later_batches(self) -> int:
        jobs, finished = self._run.jobs, self._run.finished
        later = [cell for cell in range(self._cells[-1] + 1, len(jobs)) if cell not in finished]
        return math.ceil(len(later) / jobs[self._cells[-1]].recipe.lock_width)

    def tile(self, number: int, total: int) -> None:
        """Announce the last step again, with the tile that is decoded now."""
        self._beat_or_raise()
        if self._last.number:
            self._run.announce(replace(self._last, tile=number, num_tiles=total))

    def freed(self) -> None:
        """Announce that the batch starts again, after memory was freed."""
        self._beat_or_raise()
        self._first_seen = None
        self._run.announce(Eased(notice=Notice("memory_freed")))

    def _beat_or_raise(self) -> None:
        self._beat()
        if self._run.has_ended:  # The engine was closed while the batch was painted.
            raise RunCancelled("run_cancelled")
