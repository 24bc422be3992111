"""Engine: the door to the one thread that paints. See the package for an example."""

import atexit
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, Self, TypeVar

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import Notice, RunError
from seedgrid.core.events import Failed
from seedgrid.core.plan import Job
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend, ManyPainters, Placement, even_threads
from seedgrid.engine.admission import UNBOUNDED, Asker, Bounds, Load, Waiting, admit
from seedgrid.engine.fair_queue import Errand, FairQueue
from seedgrid.engine.loan import Loan
from seedgrid.engine.painter_pool import PainterPool, PainterState
from seedgrid.engine.painting import LostThreads
from seedgrid.engine.run import Run
from seedgrid.engine.store import Store
from seedgrid.engine.warming import Warming, Warmth
from seedgrid.engine.watchdog import Loss, Patience, Watchdog
from seedgrid.engine.worker import Worker

logger = logging.getLogger(__name__)

_NUM_KEPT: Final = 64
_MAX_LOST: Final = 2
"""Each holds a model; when one more does not come back, the engine is lost."""
_LONG: Final = 10
"""An errand may take so many times as long as its pictures were estimated to."""

Result = TypeVar("Result")


class Engine:
    """Makes pictures, one run at a time, in turns between owners. Safe to use from any thread.

    Args:
        backend: What paints; from now on only the engine's own thread calls it, but for `card`.
        library: Where pictures go unless a run names another place, as it must without this one.
        placement: Where to compute.
        runs_per_owner: How many runs one owner may have waiting or running.
        bounds: What strangers may ask for beside.
        patience: How long the engine's thread may stay away.
        on_lost: Called when no thread can be trusted to come back any more: end the process.
    """

    def __init__(
        self,
        backend: Backend,
        library: Store | None = None,
        *,
        placement: Placement | None = None,
        runs_per_owner: int = 2,
        bounds: Bounds = UNBOUNDED,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.library = library
        self._backend = backend
        self.placement = _locked(placement or Placement())
        self._runs_per_owner = runs_per_owner
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._warming = Warming()
        self._bounds = bounds
        self._speeds = Speeds()
        self._loans: list[Loan] = []
        self._queue = FairQueue()
        self._patience = patience
        self._on_lost = on_lost
        self._why_closed = "engine_closed"
        self._lost = LostThreads()
        self._worker: Worker | PainterPool = self._new_worker()
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def card(self, model: str | None) -> ModelCard:
        """Say what a model can do, without loading it."""
        return self._backend.card(model)

    def submit(
        self,
        jobs: Sequence[Job],
        *,
        owner: str,
        address: str = "",
        fresh: bool = False,
        library: Store | None = None,
        placement: Placement | None = None,
        expected: Sequence[str] = (),
        notices: Sequence[Notice] = (),
    ) -> Run:
        """Have pictures made; returns at once.

        Args:
            jobs: At least one; their recipes may differ in everything.
            owner: Who asks: a browser session, for example. Owners take turns.
            address: Where from; empty for one's own machine.
            fresh: Compute even what the library remembers.
            library: Where the pictures go; the engine's own by default.
            placement: Where to compute; the engine's own by default.
            expected: By job, the digest of the pixels that it is compared with.
            notices: What whoever asked should know of the jobs.

        Raises:
            RunError: `too_many_runs`, `too_many_here` or `queue_full`; or `engine_closed`.
            InputError: `run_large` or `run_long`: more than anybody may ask for.
            LibraryError: The library has no room for so many pictures.
        """
        library = library or self.library
        if not jobs or library is None:
            raise ValueError("a run needs at least one job, and a library")
        library.check_room(job.recipe for job in jobs)
        recipes = [job.recipe for job in jobs]
        run = Run(
            jobs,
            owner=owner,
            address=address,
            library=library,
            placement=_locked(placement) if placement else self.placement,
            fresh=fresh,
            expected=expected,
            notices=notices,
            on_cancel=self._on_cancel,
        )
        with self._lock:
            self._admit(Asker(owner=owner, address=address), recipes)
            if not self._queue.put(run):
                raise RunError(self._why_closed)
            self._runs[run.id] = run
            self._forget_old_runs()
        return run

    def run(self, run_id: str) -> Run | None:
        """Return a run that goes on or that ended not long ago."""
        with self._lock:
            return self._runs.get(run_id)

    def borrow(
        self,
        task: Callable[[Backend], Result],
        *,
        owner: str = "",
        address: str = "",
        recipes: Sequence[Recipe] = (),
    ) -> Future[Result]:
        """Have the engine's own thread do something with the backend, between two runs.

        Nobody is counted as its `owner` where the program itself asks; `recipes` will be painted.

        Returns:
            What the task returns or raises; it is cancelled when the engine closes before.
        """
        asker = Asker(owner=owner, address=address)
        loan = Loan(task=task, asker=asker, recipes=tuple(recipes))
        with self._lock:
            self._loans = [other for other in self._loans if not other.future.done()]
            if owner:
                self._admit(asker, recipes)
            errand = Errand(
                do=loan.do,
                fail=loan.fail,
                owner=owner,
                extra_s=_LONG * self._speeds.estimate_s(recipes),
            )
            if not self._queue.put_errand(errand):
                raise RunError(self._why_closed)
            self._loans.append(loan)
        return loan.future

    def warm(self, model: str | None = None) -> None:
        """Load a model in the background, when no run waits; `warmth` tells how far it is."""
        recipe = resolve(Request(prompt="a picture", seeds=(0,)), self._backend.card(model))[0]
        self._queue.put_errand(
            self._warming.errand(
                recipe.model.id,
                lambda backend, watch: backend.prepare(recipe, self.placement, watch),
            )
        )

    @property
    def warmth(self) -> Warmth:
        """How far `warm` has come."""
        return self._warming.warmth

    def known_s(self, recipes: Sequence[Recipe]) -> float | None:
        """Say how long pictures of these recipes take; None where nothing alike was painted yet."""
        return self._speeds.known_s(recipes)

    @property
    def load(self) -> Load:
        """What it has to do at this moment."""
        with self._lock:
            active = self._active()
        return Load(
            num_waiting=len(active),
            left_s=sum(each.left_s for each in active),
            is_lost=self._why_closed == "engine_lost",
        )

    def begin_to_close(self) -> None:
        """Stop all runs, and take nothing more; waits for nothing."""
        self._worker.abandon_waiting(self._queue.close())
        with self._lock:
            runs = tuple(self._runs.values())
            self._worker.is_closing = True
        for run in runs:
            run.cancel()

    def close(self) -> None:
        """Stop all runs, save what is finished, let go of the models.

        A backend that is still busy then is left behind, after the engine's patience: its thread
        lets go of the models when it comes back.
        """
        self.begin_to_close()
        self._worker.gone.wait()
        for loan in self._loans:
            loan.future.cancel()
        atexit.unregister(self.close)

    @property
    def painters(self) -> tuple[PainterState, ...]:
        """Who paints, where several do."""
        return self._worker.painters if isinstance(self._worker, PainterPool) else ()

    def _new_worker(self) -> Worker | PainterPool:
        if isinstance(self._backend, ManyPainters):
            return PainterPool(self._backend, self._queue, self._speeds, self._patience)
        worker = Worker(self._backend, self._queue, self._speeds, self._lost)
        Watchdog(worker, self._patience, lambda loss: self._go_on_without(worker, loss))
        return worker

    def _go_on_without(self, worker: Worker, loss: Loss) -> None:
        """Give up a thread, and start another one with a backend of its own."""
        if not worker.is_closing:
            logger.error("the engine's thread is lost (%s)", loss)
        worker.give_up(RunError(loss))
        with self._lock:
            if worker.is_closing:
                return
            if self._lost.num_missing <= _MAX_LOST:
                self._backend = self._backend.renewed()
                self._worker = self._new_worker()
                return
        self._end(RunError("engine_lost"))

    def _end(self, error: RunError) -> None:
        """Tell everybody that nothing more will be painted."""
        self._why_closed = error.code
        for run in self._queue.close():
            run.conclude(Failed(error=error))
        for loan in self._loans:
            loan.fail(error)
        if self._on_lost is not None:
            self._on_lost()

    def _on_cancel(self, run: Run) -> None:
        if self._queue.remove(run):
            self._worker.abandon(run)

    def _admit(self, asker: Asker, recipes: Sequence[Recipe]) -> None:
        admit(
            asker,
            recipes,
            self._active(),
            wanted_s=self._speeds.estimate_s(recipes),
            runs_per_owner=self._runs_per_owner,
            bounds=self._bounds,
        )

    def _active(self) -> list[Waiting]:
        going = [(run.asker, run.left) for run in self._runs.values() if run.is_active]
        going += [(loan.asker, loan.recipes) for loan in self._loans if loan.is_active]
        return [Waiting(asker=asker, left_s=self._speeds.estimate_s(left)) for asker, left in going]

    def _forget_old_runs(self) -> None:
        ended = [run_id for run_id, run in self._runs.items() if run.has_ended]
        for run_id in ended[:-_NUM_KEPT]:
            del self._runs[run_id]


def _locked(placement: Placement) -> Placement:
    """Return the placement with as many threads as the lock allows."""
    if not placement.threads:
        return placement
    return replace(placement, threads=even_threads(placement.threads))
