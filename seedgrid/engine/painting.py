"""Painting: all pictures of one run, batch after batch, on the thread that owns the backend.

Saving goes on in a second thread beside the next batch; a picture is announced only when it is
safe on disk. Knows nothing of turns between runs.
"""

import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

import numpy as np

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.events import Eased, Loading, Missed, Started
from seedgrid.core.picture import Pixels
from seedgrid.core.plan import Job
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, Outcome
from seedgrid.engine.easing import easier_ways
from seedgrid.engine.run import Run
from seedgrid.engine.saving import Saver, save_again, wait_for
from seedgrid.engine.watchdog import Pulse
from seedgrid.engine.watching import BatchWatch

_COPIED_TOGETHER: Final = 4
"""So many remembered pictures are kept again, and shown, at a time."""

Cells = tuple[int, ...]

Batches = Generator[None, bool | None, None]
"""Stops between two batches; True is sent when others had a turn meanwhile."""


class LostThreads:
    """The threads that were given up.

    Attributes:
        num_missing: How many have not come back from the backend.
        num_returned: How many have; their backend put process-wide switches back as it returned.
    """

    def __init__(self) -> None:
        self.num_missing = 0
        self.num_returned = 0


class Painter:
    """Paints runs with a backend, which only the calling thread touches."""

    def __init__(
        self, backend: Backend, saver: Saver, pulse: Pulse, speeds: Speeds, lost: LostThreads
    ) -> None:
        self._backend = backend
        self._saver = saver
        self._pulse = pulse
        self._speeds = speeds
        self._lost = lost

    def paint(self, run: Run) -> Batches:
        """Paint and save all pictures of a run; what was painted is saved, whatever happens."""
        saving: list[Future[None]] = []
        has_painted = False
        try:
            for cells in same_setting(run.jobs):
                left = unfinished(run, cells)
                passport = self.prepare(run, left or cells)
                unknown = self.recall(run, left, passport, saving)
                while unknown:
                    if has_painted and (yield):
                        passport = self.prepare(run, unknown)
                    batch = unknown[: run.jobs[unknown[0]].recipe.lock_width]
                    try:
                        painted = pictures_of(run, batch, self.paint_batch(run, batch))
                    except RunError as error:
                        ease(run, unknown, error)
                        passport = self.prepare(run, unknown)
                        continue
                    unknown = unknown[len(batch) :]
                    has_painted = True
                    before, saving = saving, [self._saver.save(run, painted, passport)]
                    wait_for(before)  # Memory holds two batches at most.
        finally:
            wait_for(saving)
        for reason in run.missed.values():
            raise reason

    def prepare(self, run: Run, cells: Cells) -> Passport:
        """Load what some cells of one setting need and say under which passport, easing the run."""
        while True:
            if run.cancelled:
                raise RunCancelled("run_cancelled")
            recipe, placement = run.jobs[cells[0]].recipe, run.placement
            is_ready, start_s = self._backend.is_ready(recipe, placement), time.monotonic()
            if not is_ready:
                run.announce(Loading(model=recipe.model.id))
                self._pulse.beat(is_loading=True)
            try:
                passport = self._backend.prepare(
                    recipe, placement, partial(self._loads, run, recipe)
                )
            except RunError as error:
                ease(run, cells, error)
                continue
            self._pulse.beat()
            if not is_ready:
                self._speeds.note_loading(recipe, time.monotonic() - start_s)
            return passport

    def _loads(self, run: Run, recipe: Recipe, num_bytes: int, total: int) -> None:
        """Tell a run how much of its model is there, and hear whether it still wants it."""
        self._pulse.beat(is_loading=True)
        if run.cancelled:
            raise RunCancelled("run_cancelled")
        run.announce(Loading(model=recipe.model.id, num_bytes=num_bytes, total=total))

    def recall(
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
        for start in range(0, len(known), _COPIED_TOGETHER):
            some = known[start : start + _COPIED_TOGETHER]
            saving.append(self._saver.submit(partial(save_again, run, some)))
        return tuple(cell for cell, recipe_id in wanted.items() if recipe_id not in found)

    def paint_batch(self, run: Run, cells: Cells) -> tuple[Outcome, ...]:
        """Paint a batch, and tell the run how it goes."""
        if run.cancelled:
            raise RunCancelled("run_cancelled")
        run.announce(Started(cells=cells))
        recipes = [run.jobs[cell].recipe for cell in cells]
        watch = BatchWatch(run, cells, self._pulse, has_previews=run.placement.previews)
        while True:
            num_returned, start_s = self._lost.num_returned, time.monotonic()
            pictures = self._backend.paint(recipes, run.placement, watch)
            self._pulse.beat()
            self._speeds.note(recipes[0], time.monotonic() - start_s, watch.step_s)
            # A thread that came back meanwhile put its own switches in place of this batch's.
            if num_returned == self._lost.num_returned:
                return pictures


def ease(run: Run, cells: Cells, error: RunError) -> None:
    """Have what is left of a run that does not fit into memory go on in a way that needs less."""
    recipe = run.jobs[cells[0]].recipe
    if error.code != "memory_full" or recipe.upscaler:  # Networks know no such ways.
        raise error
    way = next(easier_ways(run.placement, recipe.lock_width, str(error.data["device"])), None)
    if way is None:
        raise error
    run.ease(way.placement, cells, way.lock_width)
    run.announce(Eased(notice=way.notice))


def unfinished(run: Run, cells: Cells) -> Cells:
    """Return those of a run's cells that have neither a picture nor a reason for having none."""
    settled = {*run.finished, *run.missed}
    return tuple(cell for cell in cells if cell not in settled)


def same_setting(jobs: Sequence[Job]) -> tuple[Cells, ...]:
    """Return the cells that may share a batch, together, in the order of their first one."""
    groups: dict[str, list[int]] = {}
    for cell, job in enumerate(jobs):
        groups.setdefault(job.recipe.batch_key, []).append(cell)
    return tuple(tuple(cells) for cells in groups.values())


def pictures_of(run: Run, cells: Cells, outcomes: Sequence[Outcome]) -> list[tuple[int, Pixels]]:
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
    came = f"{outcome.dtype} {'x'.join(map(str, outcome.shape))}"
    return RunError("picture_shape", value=came, wanted=f"uint8 {'x'.join(map(str, shape))}")
