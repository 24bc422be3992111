"""Batches: the cells of a run that are still to be painted; one call paints a batch of them.

One painter or several take batches and give back those that they could not paint. The run ends
when no batch is left and no painter has one.
"""

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, get_args

from seedgrid.core.errors import Notice, SeedGridError, as_ours
from seedgrid.core.events import Cancelled, Done, Eased, Event, Failed
from seedgrid.core.recipe import Passport, Recipe, in_batches
from seedgrid.diffusion.backend import Offload, Placement
from seedgrid.engine.run import Run
from seedgrid.engine.saver import LivePictures, Reusable, find_reusable

_MAX_LOSSES: Final = 3  # After so many workers were lost while they painted a batch, the run fails
_MAX_PASSPORTS: Final = 256
_OFFLOADS: Final = get_args(Offload)  # Each needs less memory of the device than the one before
_IN_PASSPORTS: Final = {"model", "loras", "upscaler", "dtype", "determinism", "arithmetic"}
LIVE: Final = "live"  # First item of the `turn_key` of live runs, which come after all others

Cells = tuple[int, ...]


class LastPassports:
    """The last passport of each kind of recipe in this process, to search libraries by."""

    def __init__(self) -> None:
        self._passports: dict[tuple[str, Placement], Passport] = {}

    def get(self, recipe: Recipe, placement: Placement) -> Passport | None:
        """Return the passport of recipes like this one; None if it is not known."""
        return self._passports.get(_passport_key(recipe, placement))

    def put(self, recipe: Recipe, placement: Placement, passport: Passport) -> None:
        """Store the passport of recipes like this one."""
        if len(self._passports) >= _MAX_PASSPORTS:
            self._passports.clear()
        self._passports[_passport_key(recipe, placement)] = passport


def _passport_key(recipe: Recipe, placement: Placement) -> tuple[str, Placement]:
    """Return what a passport depends on; showing previews changes no bit, so it is left out."""
    return recipe.model_dump_json(include=_IN_PASSPORTS), replace(placement, previews=False)


class Batches:
    """The batches of a run that are still to be painted."""

    def __init__(self, run: Run, passports: LastPassports, live_pictures: LivePictures) -> None:
        self.run = run
        self.turn_key = LIVE if run.is_live else "run", run.owner  # Runs of one key stay in order
        self.reusable = self._find_reusable(passports, live_pictures)
        reused = {cell for each in self.reusable for cell in each.cells}
        self.cells_to_paint = tuple(cell for cell in range(len(run.jobs)) if cell not in reused)
        batches = in_batches(self.cells_to_paint, lambda cell: run.jobs[cell].recipe)
        self._ready: deque[Cells] = deque(map(tuple, batches))
        self.excluded_painters: frozenset[str] = frozenset()  # Their passport is not the first one
        self._passports: dict[tuple[str, Placement], str] = {}
        self._losses: Counter[Cells] = Counter()
        self._error: SeedGridError | None = None
        self._num_painting = 0
        self._has_ended = False
        self._lock = threading.Lock()
        self._start_s: float | None = None

    @property
    def is_being_painted(self) -> bool:
        """Whether a batch of the run is being painted."""
        return self._num_painting > 0

    @property
    def has_more(self) -> bool:
        """Whether there are batches that no painter has taken."""
        return bool(self._ready)

    def add_painter(self) -> bool:
        """Count one more painter, and start the run's clock; return False if the run has ended."""
        with self._lock:
            self._start_s = self._start_s or time.monotonic()
            self._num_painting += not self._has_ended
            return not self._has_ended

    def remove_painter(self) -> None:
        """Count one painter less."""
        with self._lock:
            self._num_painting -= 1

    def take_batch(self) -> Cells:
        """Remove and return the next batch; empty when there is none."""
        with self._lock:
            return self._ready.popleft() if self._ready else ()

    def claim_end(self) -> bool:
        """Mark the run as ended if no batch is left or being painted; True if this call did so."""
        with self._lock:
            if self._has_ended or self._num_painting or self._ready:
                return False
            self._has_ended = True
            return True

    def drop_remaining(self) -> None:
        """Drop the batches that no painter has taken."""
        with self._lock:
            self._ready.clear()

    def fail(self, error: BaseException) -> None:
        """Record an error and drop the remaining batches; the first error of several counts."""
        with self._lock:
            self._error = self._error or as_ours(error)
            self._ready.clear()

    def fail_if_unsaved(self, saved: Future[None]) -> None:
        """Fail the run if `saved` ends with an error."""

        def check(done: Future[None]) -> None:
            if not done.cancelled() and (error := done.exception()) is not None:
                self.fail(error)

        saved.add_done_callback(check)

    def has_same_passport(self, cells: Cells, passport: Passport) -> bool:
        """Store the first passport of these settings; tell whether this passport equals it."""
        key = self.run.jobs[cells[0]].recipe.batch_key, self.run.placement
        return self._passports.setdefault(key, passport.digest) == passport.digest

    def requeue(self, cells: Cells, *, excluded: str = "") -> None:
        """Put an active run's batch back in front; painter `excluded` gets no more of the run."""
        with self._lock:
            self.excluded_painters |= {excluded} - {""}
            if self._error is None and not self.run.cancelled:
                self._ready.appendleft(cells)

    def retry_or_fail(self, cells: Cells, error: SeedGridError) -> None:
        """Requeue a batch, twice at most for lost workers, or with less memory; or fail the run."""
        if error.code == "worker_lost" and self._losses[cells] + 1 < _MAX_LOSSES:
            self._losses[cells] += 1
            self.requeue(cells)
        elif not self._retry_with_less_memory(cells, error):
            self.fail(error)

    def announce_end(self) -> None:
        """Announce how the run ended; all its pictures are saved by now."""
        missed = self.run.missed
        is_complete = len(self.run.finished) + len(missed) >= len(self.run.jobs)
        reason = self._error or next(iter(missed.values()), None)
        now_s = time.monotonic()
        event: Event = Done(elapsed_s=now_s - (self._start_s or now_s))
        if not is_complete and (reason is None or self.run.cancelled):
            event = Cancelled()
        elif reason is not None:
            event = Failed(error=reason)
        self.run.conclude(event)

    def _retry_with_less_memory(self, cells: Cells, error: SeedGridError) -> bool:
        """Requeue a batch, with a placement that needs less memory; False if there is none."""
        recipe, device = self.run.jobs[cells[0]].recipe, str(error.data.get("device"))
        if error.code != "memory_full" or recipe.upscaler:
            return False  # Upscaler networks have no such placements.
        smaller = _less_memory(self.run.placement, device, same_bits=recipe.is_portable)
        if smaller is None:
            return False
        self.run.placement, notice = smaller
        self.requeue(cells)
        self.run.announce(Eased(notice=notice))
        return True

    def _find_reusable(self, passports: LastPassports, live: LivePictures) -> list[Reusable]:
        by_digest: dict[str, tuple[Passport, list[int]]] = {}
        for cell, job in enumerate(self.run.jobs):
            passport = passports.get(job.recipe, self.run.placement)
            if passport is not None:
                by_digest.setdefault(passport.digest, (passport, []))[1].append(cell)
        pairs = by_digest.values()
        return [find_reusable(self.run, cells, passport, live) for passport, cells in pairs]


def _less_memory(
    now: Placement, device: str, *, same_bits: bool
) -> tuple[Placement, Notice] | None:
    """Return a placement that needs less memory, with a notice to announce; None if there is none.

    Changes that alter no bit come first, with `same_bits` alone; passports record the others, so
    verifying repeats them.
    """
    if not device.startswith("cpu") and now.offload != _OFFLOADS[-1]:
        offload = _OFFLOADS[_OFFLOADS.index(now.offload) + 1]
        return replace(now, offload=offload), Notice("memory_offload", value=offload)
    if not now.vae_slicing:
        return replace(now, vae_slicing=True), Notice("memory_decoding")
    if same_bits:
        return None
    if now.attention != "sliced":
        return replace(now, attention="sliced"), Notice("memory_attention")
    if not now.vae_tiling:
        return replace(now, vae_tiling=True), Notice("memory_tiles")
    return None
