"""Batches: the part of a run that is still to be painted, cut into locked batches.

One painter or several take batches and give back those that they could not paint; the run ends
when the last one leaves it.
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
LIVE: Final = "live"  # Begins the `turn_key` of live runs, which come behind all others

Cells = tuple[int, ...]


class LastPassports:
    """The passports under which recipes were last painted here; the library is searched by them."""

    def __init__(self) -> None:
        self._passports: dict[tuple[str, Placement], Passport] = {}

    def get(self, recipe: Recipe, placement: Placement) -> Passport | None:
        """Return the passport of recipes like this one; None if none was painted yet."""
        return self._passports.get(_passport_key(recipe, placement))

    def put(self, recipe: Recipe, placement: Placement, passport: Passport) -> None:
        """Store the passport of recipes like this one."""
        if len(self._passports) >= _MAX_PASSPORTS:
            self._passports.clear()
        self._passports[_passport_key(recipe, placement)] = passport


def _passport_key(recipe: Recipe, placement: Placement) -> tuple[str, Placement]:
    """Return what a passport may depend on; whether previews are shown changes no bit."""
    return recipe.model_dump_json(include=_IN_PASSPORTS), replace(placement, previews=False)


class Batches:
    """The batches of a run that are still to be painted."""

    def __init__(self, run: Run, passports: LastPassports, live_pictures: LivePictures) -> None:
        self.run = run
        self.turn_key = LIVE if run.is_live else "run", run.owner  # Runs of one key keep order
        self.reusable = self._find_reusable(passports, live_pictures)
        reused = {cell for each in self.reusable for cell in each.cells}
        self.cells_to_paint = tuple(cell for cell in range(len(run.jobs)) if cell not in reused)
        batches = in_batches(self.cells_to_paint, lambda cell: run.jobs[cell].recipe)
        self._ready: deque[Cells] = deque(map(tuple, batches))
        self.excluded_painters: frozenset[str] = frozenset()  # Their passport is not the first's
        self._passports: dict[tuple[str, Placement], str] = {}
        self._losses: Counter[Cells] = Counter()
        self._error: SeedGridError | None = None
        self._num_painting = 0
        self._has_ended = False
        self._lock = threading.Lock()
        self._start_s: float | None = None

    @property
    def is_being_painted(self) -> bool:
        """Whether a batch of it is being painted."""
        return self._num_painting > 0

    @property
    def has_more(self) -> bool:
        """Whether there are batches that no painter has taken."""
        return bool(self._ready)

    def add_painter(self) -> bool:
        """Count one more painter; False if the run has ended."""
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
        """Return True once: when no batch is left and none is being painted."""
        with self._lock:
            if self._has_ended or self._num_painting or self._ready:
                return False
            self._has_ended = True
            return True

    def drop_remaining(self) -> None:
        """Drop the batches that are left."""
        with self._lock:
            self._ready.clear()

    def fail(self, error: BaseException) -> None:
        """Drop the batches that are left; the run fails with the first error of several."""
        with self._lock:
            self._error = self._error or as_ours(error)
            self._ready.clear()

    def fail_if_unsaved(self, saved: Future[None]) -> None:
        """Let the run fail if this saving fails."""

        def check(done: Future[None]) -> None:
            if not done.cancelled() and (error := done.exception()) is not None:
                self.fail(error)

        saved.add_done_callback(check)

    def has_same_passport(self, cells: Cells, passport: Passport) -> bool:
        """Tell whether a passport equals that of the first batch with these settings."""
        key = self.run.jobs[cells[0]].recipe.batch_key, self.run.placement
        return self._passports.setdefault(key, passport.digest) == passport.digest

    def requeue(self, cells: Cells, *, excluded: str = "") -> None:
        """Take a batch back; the painter named `excluded` gets no more of this run."""
        with self._lock:
            self.excluded_painters |= {excluded} - {""}
            if self._error is None and not self.run.cancelled:
                self._ready.appendleft(cells)

    def retry_or_fail(self, cells: Cells, error: SeedGridError) -> None:
        """Take a batch back after a lost worker or full memory; fail after other errors."""
        if error.code == "worker_lost" and self._losses[cells] + 1 < _MAX_LOSSES:
            self._losses[cells] += 1
            self.requeue(cells)
        elif not self._take_less_memory(cells, error):
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

    def _take_less_memory(self, cells: Cells, error: SeedGridError) -> bool:
        """Take a batch back, for a placement that needs less memory; False if there is none."""
        if error.code != "memory_full" or self.run.jobs[cells[0]].recipe.upscaler:
            return False  # Upscaler networks have no such placements.
        smaller = _smaller(self.run.placement, str(error.data["device"]))
        if smaller is None:
            return False
        self.run.placement, notice = smaller
        self.requeue(cells)
        self.run.announce(Eased(notice=notice))
        return True

    def _find_reusable(self, passports: LastPassports, live: LivePictures) -> list[Reusable]:
        cells_of: dict[str, tuple[Passport, list[int]]] = {}
        for cell, job in enumerate(self.run.jobs):
            passport = passports.get(job.recipe, self.run.placement)
            if passport is not None:
                cells_of.setdefault(passport.digest, (passport, []))[1].append(cell)
        pairs = cells_of.values()
        return [find_reusable(self.run, cells, passport, live) for passport, cells in pairs]


def _smaller(now: Placement, device: str) -> tuple[Placement, Notice] | None:
    """Return a placement that needs less memory, with a notice to announce; None if there is none.

    What changes no bit comes first, then what passports record, so that verifying does the same.
    """
    if not device.startswith("cpu") and now.offload != _OFFLOADS[-1]:
        offload = _OFFLOADS[_OFFLOADS.index(now.offload) + 1]
        return replace(now, offload=offload), Notice("memory_offload", value=offload)
    if not now.vae_slicing:
        return replace(now, vae_slicing=True), Notice("memory_decoding")
    if now.attention != "sliced":
        return replace(now, attention="sliced"), Notice("memory_attention")
    if not now.vae_tiling:
        return replace(now, vae_tiling=True), Notice("memory_tiles")
    return None
