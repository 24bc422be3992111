"""The lane: the one thread that owns the backend. It takes runs one at a time and paints them.

Saving goes on in a second thread beside the next batch; a picture is announced only when it is
safe on disk. A long run gives way between two batches when others wait. Whatever goes wrong ends
the run, never the lane.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Final

from seedgrid.core.entry import Entry
from seedgrid.core.errors import LibraryError, RunCancelled, RunError, SeedGridError
from seedgrid.core.events import (
    Cancelled,
    Done,
    Event,
    Failed,
    Finished,
    Loading,
    Noise,
    Started,
    Step,
)
from seedgrid.core.picture import Picture, Pixels
from seedgrid.core.plan import Job
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Backend, PreviewMaker
from seedgrid.engine.admission import Speeds
from seedgrid.engine.background import Worker
from seedgrid.engine.fair_queue import FairQueue
from seedgrid.engine.run import Run

logger = logging.getLogger(__name__)

Cells = tuple[int, ...]

_SAVED_TOGETHER: Final = 4
"""Pictures go into the library in one transaction: the disk is waited for once, not four times."""


Batches = Generator[None, bool | None, None]


@dataclass
class _Turn:
    """A run that was begun.

    Attributes:
        batches: Paints the next batch.
        worked_s: How long it was painted so far.
    """

    batches: Batches
    worked_s: float = 0.0

    def abandon(self, run: Run) -> None:
        """Let go of it; on the saver's thread, behind what it had to save."""
        try:
            self.batches.close()
        finally:
            run.announce(Cancelled(elapsed_s=self.worked_s))


class Lane:
    """Works on what a queue gives until the queue is closed.

    Args:
        backend: Touched by this thread only.
        queue: Who is next.
        speeds: Learns from every batch.
    """

    def __init__(self, backend: Backend, queue: FairQueue, speeds: Speeds) -> None:
        self._backend = backend
        self._queue = queue
        self._speeds = speeds
        self._begun: dict[str, _Turn] = {}  # runs that wait between two batches, by id
        self._saver = Worker("seedgrid-saver")
        self._thread = threading.Thread(target=self._work, name="seedgrid-lane", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended; the queue must be closed before."""
        self._thread.join()

    def abandon(self, run: Run) -> None:
        """End a run that was cancelled while it waited; what it had painted is saved before."""
        turn = self._begun.pop(run.id, None)
        if turn is None:
            run.announce(Cancelled(elapsed_s=0.0))
        else:
            self._saver.submit(partial(turn.abandon, run))

    def _work(self) -> None:
        while (item := self._queue.take()) is not None:
            if isinstance(item, Run):
                self._take_turn(item)
            else:
                item.do()
        self._saver.close()
        self._backend.close()

    def _take_turn(self, run: Run) -> None:
        """Paint until the run has come to its one end, or somebody else waits."""
        begun = self._begun.pop(run.id, None)
        turn = begun or _Turn(batches=self._make(run))
        start_s = time.monotonic()
        event: Event
        try:
            is_done = self._paint_on(run, turn, is_new=begun is None)
        except RunCancelled:
            event = Cancelled(elapsed_s=turn.worked_s + time.monotonic() - start_s)
        except SeedGridError as error:
            event = Failed(error=error)
        except Exception as error:
            logger.exception("a run failed unexpectedly")
            event = Failed(error=RunError("run_unexpected", reason=_in_words(error)))
        else:
            turn.worked_s += time.monotonic() - start_s
            if not is_done:
                return
            event = Done(elapsed_s=turn.worked_s)
        run.announce(event)

    def _paint_on(self, run: Run, turn: _Turn, *, is_new: bool) -> bool:
        """Paint batch after batch; False when the run waits for its next turn."""
        was_away: bool | None = None if is_new else True
        while True:
            try:
                turn.batches.send(was_away)
            except StopIteration:
                return True
            was_away = False
            if self._queue.others_wait(run):
                self._begun[run.id] = turn
                if self._queue.put_back(run):
                    return False
                del self._begun[run.id]

    def _make(self, run: Run) -> Batches:
        """Paint and save all pictures of a run; what was painted is saved, whatever happens.

        Yields:
            Between two batches; True comes back when others had a turn meanwhile.
        """
        saving: list[Future[None]] = []
        has_painted = False
        try:
            for cells in _same_setting(run.jobs):
                passport = self._prepare(run, run.jobs[cells[0]].recipe)
                unknown = self._recall(run, cells, passport, saving)
                width = run.jobs[cells[0]].recipe.lock_width
                for start in range(0, len(unknown), width):
                    if has_painted and (yield):
                        passport = self._prepare(run, run.jobs[cells[0]].recipe)
                    batch = unknown[start : start + width]
                    pictures = self._paint(run, batch)
                    has_painted = True
                    before, saving = saving, self._save(run, batch, pictures, passport)
                    _wait_for(before)  # Memory holds two batches at most.
        finally:
            _wait_for(saving)

    def _prepare(self, run: Run, recipe: Recipe) -> Passport:
        if run.cancelled:
            raise RunCancelled("run_cancelled")
        backend, placement = self._backend, run.placement
        if not backend.is_ready(recipe, placement):
            run.announce(Loading(model=recipe.model.id))
        return backend.prepare(recipe, placement)

    def _recall(
        self, run: Run, cells: Cells, passport: Passport, saving: list[Future[None]]
    ) -> Cells:
        """Take what the library remembers from there; return the cells that must be painted."""
        if run.fresh:
            return cells
        wanted = {cell: run.jobs[cell].recipe.id for cell in cells}
        found = run.library.remembered(tuple(wanted.values()), passport.digest)
        known = [
            (cell, found[recipe_id]) for cell, recipe_id in wanted.items() if recipe_id in found
        ]
        for start in range(0, len(known), _SAVED_TOGETHER):
            some = known[start : start + _SAVED_TOGETHER]
            saving.append(self._saver.submit(partial(_save_again, run, some)))
        return tuple(cell for cell, recipe_id in wanted.items() if recipe_id not in found)

    def _paint(self, run: Run, cells: Cells) -> tuple[Pixels, ...]:
        if run.cancelled:
            raise RunCancelled("run_cancelled")
        run.announce(Started(cells=cells))
        recipes = [run.jobs[cell].recipe for cell in cells]
        watch = _Watch(run, cells, has_previews=run.placement.previews)
        start_s = time.monotonic()
        pictures = self._backend.paint(recipes, run.placement, watch)
        self._speeds.note(recipes[0], time.monotonic() - start_s)
        return pictures

    def _save(
        self, run: Run, cells: Cells, pictures: Sequence[Pixels], passport: Passport
    ) -> list[Future[None]]:
        painted = list(zip(cells, pictures, strict=True))
        return [
            self._saver.submit(
                partial(_save, run, painted[start : start + _SAVED_TOGETHER], passport)
            )
            for start in range(0, len(painted), _SAVED_TOGETHER)
        ]


class _Watch:
    """Follows one batch for the run it belongs to."""

    def __init__(self, run: Run, cells: Cells, *, has_previews: bool) -> None:
        self._run = run
        self._cells = cells
        self._has_previews = has_previews

    @property
    def cancelled(self) -> bool:
        return self._run.cancelled

    def noise(self, previews: PreviewMaker) -> None:
        if self._has_previews:
            self._run.announce(Noise(cells=self._cells, previews=previews()))

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:
        shown = previews() if self._has_previews else ()
        self._run.announce(Step(cells=self._cells, number=number, total=total, previews=shown))


def _same_setting(jobs: Sequence[Job]) -> tuple[Cells, ...]:
    """Return the cells that may share a batch, together, in the order of their first one."""
    groups: dict[str, list[int]] = {}
    for cell, job in enumerate(jobs):
        groups.setdefault(job.recipe.batch_key, []).append(cell)
    return tuple(tuple(cells) for cells in groups.values())


def _save(run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport) -> None:
    """Save a few pictures together; on a full disk each that finds room."""
    pictures = {
        cell: Picture(
            pixels=pixels,
            recipe=run.jobs[cell].recipe,
            passport=passport,
            lineage=run.jobs[cell].lineage,
        )
        for cell, pixels in painted
    }
    try:
        entries = run.library.add_together(list(pictures.values()))
    except LibraryError as error:
        if error.code != "disk_full" or len(painted) == 1:
            raise
        _save_one_by_one(run, painted, passport)
    else:
        finished = zip(pictures, entries, strict=True)
        run.announce(*(Finished(cell=cell, entry=entry) for cell, entry in finished))


def _save_one_by_one(run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport) -> None:
    errors: list[LibraryError] = []
    for one in painted:
        try:
            _save(run, [one], passport)
        except LibraryError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _save_again(run: Run, known: Sequence[tuple[int, Entry]]) -> None:
    copies = [(entry, run.jobs[cell].lineage) for cell, entry in known]
    entries = run.library.add_again(*copies)
    run.announce(
        *(
            Finished(cell=cell, entry=entry, remembered=True)
            for (cell, _), entry in zip(known, entries, strict=True)
        )
    )


def _wait_for(saving: Sequence[Future[None]]) -> None:
    """Wait until all are settled, then raise the first error there is."""
    errors = [error for future in saving if (error := future.exception()) is not None]
    if errors:
        raise errors[0]


def _in_words(error: Exception) -> str:
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0][:200]}" if words else type(error).__name__
