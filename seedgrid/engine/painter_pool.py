"""As many threads as there are painters; each has one, and takes batches of runs in turns.

Where one thread owns the one backend (`worker.py`), one paints a run. Here a run is put back into
the queue as soon as one of its batches was handed out, behind those of all other owners: shares
are fair batch by batch, no painter waits while there is a batch, and no batch is handed out that
nobody is free to paint. Painters join and leave at any time; what a lost one had is painted again.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_until_done
from dataclasses import dataclass
from typing import Final

from seedgrid.core.errors import RunCancelled, SeedGridError, told_of
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, ManyPainters
from seedgrid.engine.fair_queue import FairQueue
from seedgrid.engine.painting import Cells, LostThreads, Painter, pictures_of
from seedgrid.engine.run import Run
from seedgrid.engine.saving import Saver
from seedgrid.engine.shared_run import SharedRun
from seedgrid.engine.watchdog import Loss, Patience, Pulse, Watchdog

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.2
"""Between two looks for painters that joined or left."""


@dataclass(frozen=True, kw_only=True)
class PainterState:
    """One painter, as the owner's page and the metrics show it.

    Attributes:
        busy_s: How long it was given batches to paint, this one too, of `seen_s` since it joined.
    """

    name: str
    is_busy: bool
    num_batches: int
    num_pictures: int
    busy_s: float
    seen_s: float


class PainterPool:
    """Paints the runs of a queue with all painters there are, until the queue is closed."""

    def __init__(
        self, backend: ManyPainters, queue: FairQueue, speeds: Speeds, patience: Patience
    ) -> None:
        self.gone = threading.Event()
        self.is_closing = False
        self.saver = Saver()
        self.queue = queue
        self.speeds = speeds
        self._backend = backend
        self._patience = patience
        self._lanes: dict[str, _Lane] = {}
        self._shared: dict[str, SharedRun] = {}
        self._guard = threading.Lock()
        threading.Thread(target=self._look_after, name="seedgrid-pool", daemon=True).start()

    @property
    def painters(self) -> tuple[PainterState, ...]:
        """Who paints."""
        return tuple(lane.state for lane in tuple(self._lanes.values()))

    def abandon(self, run: Run) -> None:
        """End a run that was cancelled and waits for nobody; whoever paints at it ends it else."""
        shared = self.shared(run)
        shared.abandon()
        self.end_if_done(shared)

    def abandon_waiting(self, runs: Sequence[Run]) -> None:
        """End runs that waited when the queue was closed."""
        for run in runs:
            run.cancel()
            self.abandon(run)

    def shared(self, run: Run) -> SharedRun:
        """Return what painters of a run share."""
        with self._guard:
            if run.id not in self._shared:
                self._shared[run.id] = SharedRun(run)
            return self._shared[run.id]

    def fits(self, run: Run, name: str) -> bool:
        """Tell whether a painter may paint a run."""
        shared = self._shared.get(run.id)
        return shared is None or name not in shared.misfits

    def end_if_done(self, shared: SharedRun) -> None:
        """Let a run come to its end when nothing is left of it, else let others paint at it."""
        if shared.has_more() and not self.queue.share(shared.run):
            shared.abandon()  # The queue is closed.
        if shared.may_end():
            self.queue.remove(shared.run)
            shared.end()
            self._shared.pop(shared.run.id, None)

    def _look_after(self) -> None:
        try:
            while not self.is_closing:
                self._meet()
                time.sleep(_LOOK_S)
            for lane in tuple(self._lanes.values()):
                lane.gone.wait()
        finally:
            self.saver.close()
            self._backend.close()
            self.gone.set()

    def _meet(self) -> None:
        """Give those who joined a thread; let those go who left."""
        try:
            there = self._backend.painters()
        except Exception:  # A cluster's client raises anything; this thread must live on.
            logger.exception("the painters cannot be asked for; those that are known go on")
            return
        for name, lane in tuple(self._lanes.items()):
            if lane.gone.is_set():
                del self._lanes[name]
            elif name not in there:
                lane.is_over = True
                self.queue.nudge()
        for name, backend in there.items():
            if name not in self._lanes:
                self._lanes[name] = lane = _Lane(self, name, backend)
                Watchdog(lane, self._patience, lane.lose)


class _Lane:
    """The thread of one painter; see `Watched` for what its watchdog reads."""

    def __init__(self, pool: PainterPool, name: str, backend: Backend) -> None:
        self.pulse = Pulse()
        self.gone = threading.Event()
        self.is_over = False
        self._pool = pool
        self._name = name
        self._backend = backend
        self._painter = Painter(backend, pool.saver, self.pulse, pool.speeds, LostThreads())
        self._saving: list[Future[None]] = []
        self._num_batches = self._num_pictures = 0
        self._busy_s = 0.0
        self._begun_s: float | None = None
        self._start_s = time.monotonic()
        self._thread = threading.Thread(target=self._work, name=f"seedgrid-{name}", daemon=True)
        self._thread.start()

    @property
    def state(self) -> PainterState:
        """How it has done so far."""
        now_s, begun_s = time.monotonic(), self._begun_s
        return PainterState(
            name=self._name,
            is_busy=self.pulse.task is not None,
            num_batches=self._num_batches,
            num_pictures=self._num_pictures,
            busy_s=self._busy_s + (0.0 if begun_s is None else now_s - begun_s),
            seen_s=now_s - self._start_s,
        )

    @property
    def is_closing(self) -> bool:
        return self.is_over or self._pool.is_closing

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def is_stopping(self) -> bool:
        task = self.pulse.task
        return self._pool.is_closing or (isinstance(task, Run) and task.cancelled)

    def lose(self, loss: Loss) -> None:
        """Let go of a worker that does not come back; its batch is painted elsewhere."""
        logger.error("worker %s is given up (%s)", self._name, loss)
        self._backend.close()

    def _work(self) -> None:
        try:
            while self._do_next():
                pass
        except Exception:  # The edge of the thread; the others paint on.
            logger.exception("worker %s is let go of after an error", self._name)
        finally:
            self._backend.close()
            self.gone.set()

    def _do_next(self) -> bool:
        self.pulse.begin(None)
        item = self._pool.queue.take(self._fits, lambda: self.is_over)
        if item is None:
            return False
        start_s = self._begun_s = time.monotonic()
        try:
            if isinstance(item, Run):
                self.pulse.begin(item)
                self._take_turn(item)
            else:
                self.pulse.begin(item, extra_s=item.extra_s)
                item.do(self._backend)
        finally:
            self._begun_s = None
            self._busy_s += time.monotonic() - start_s
        return True

    def _fits(self, run: Run) -> bool:
        return self._pool.fits(run, self._name)

    def _take_turn(self, run: Run) -> None:
        """Paint one batch of a run; whoever is the last to leave it ends it."""
        if run.has_ended or not (shared := self._pool.shared(run)).enter():
            return
        cells: Cells = ()
        try:
            cells = shared.next_batch(self._painter)
            if shared.has_more():
                self._pool.queue.share(run)
            if cells:
                run.context.copy().run(self._paint, shared, cells)
        except RunCancelled:
            shared.abandon()
        except SeedGridError as error:
            self._bear(shared, cells, error)
        except BaseException as error:  # Whoever follows the run waits for its end.
            logger.exception("a run failed unexpectedly")
            shared.fail(told_of(error))
        finally:
            shared.leave()
            self._pool.end_if_done(shared)

    def _bear(self, shared: SharedRun, cells: Cells, error: SeedGridError) -> None:
        """Go on after an error, or let the run fail."""
        self.is_over = error.code == "worker_lost"
        try:
            if self.is_over:
                shared.lost(cells, error)
            else:
                shared.ease(cells, error)
        except SeedGridError as reason:
            shared.fail(reason)

    def _paint(self, shared: SharedRun, cells: Cells) -> None:
        run = shared.run
        passport = self._painter.prepare(run, cells)
        if not shared.is_equal(cells, passport):
            shared.misfit(self._name, cells)
            return
        pictures = pictures_of(run, cells, self._painter.paint_batch(run, cells))
        wait_until_done(self._saving)  # Memory holds two batches of each painter at most.
        self._saving = [self._pool.saver.save(run, pictures, passport)]
        shared.saves(self._saving)
        self._num_batches += 1
        self._num_pictures += len(pictures)
