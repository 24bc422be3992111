"""Engine: accepts jobs and tasks, which its workers carry out."""

import atexit
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, TypeVar

from seedgrid.core.errors import Notice, RunError, SeedGridError, as_ours
from seedgrid.core.events import Cancelled, Failed
from seedgrid.core.picture import Pixels
from seedgrid.core.plan import Job
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Backend, ManyPainters, Placement, even_threads
from seedgrid.engine.batches import Batches
from seedgrid.engine.queue import UNBOUNDED, Bounds, Load, Task, Work, admit
from seedgrid.engine.run import Asker, LibraryProtocol, Run
from seedgrid.engine.worker import Patience, Shared, Worker

logger = logging.getLogger(__name__)

_NUM_KEPT: Final = 64  # How many ended runs `Engine.run` still finds
_LIVE_S: Final = 1.5  # A live run waits for other owners' live runs only if they need more time
_SAVING_S: Final = 10.0  # How long `close` waits for pictures to be saved

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Warmth:
    """The state of a model that is loaded before any run needs it; see `Engine.warm`."""

    state: Literal["cold", "loading", "ready", "failed"] = "cold"
    model: str = ""  # The model's id; empty when cold
    error: SeedGridError | None = None  # Why loading failed; the next run tries again


class Engine:
    """Paints pictures batch by batch; owners take turns. Safe to use from any thread.

    Args:
        backend: What paints. The caller may use only its `card` from now on.
        library: Where the pictures go, unless a run says otherwise.
        placement: Where to compute, unless a run says otherwise.
        runs_per_owner: How many runs one owner may have waiting or running.
        bounds: Limits for a public page: of time, and of runs from one address.
        patience: After how long a silence a painter counts as hung.
        on_lost: Called after the only painter hung or died and all runs failed. It should end the
            process, so that a supervisor restarts the program.
    """

    def __init__(
        self,
        backend: Backend | ManyPainters,
        library: LibraryProtocol | None = None,
        *,
        placement: Placement | None = None,
        runs_per_owner: int = 2,
        bounds: Bounds = UNBOUNDED,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.library = library
        self.placement = _with_even_threads(placement or Placement())
        self.warmth = Warmth()
        self._backend = backend
        self._runs_per_owner = runs_per_owner
        self._bounds = bounds
        self._on_lost = on_lost
        self._runs: dict[str, Batches] = {}
        self._tasks: list[Task] = []
        self._is_lost = False
        self._lock = threading.Lock()
        self._shared = Shared(patience=patience)
        self.speeds = self._shared.speeds  # Measured painting times on this machine
        self._workers: dict[str, Worker] = {}
        if isinstance(backend, ManyPainters):
            backend.begin(self._add_painter, self._remove_painter)
        else:
            self._workers["worker"] = Worker(backend, self._shared, self._fail_all)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self,
        jobs: Sequence[Job],
        *,
        owner: str,
        address: str = "",
        fresh: bool = False,
        live: bool = False,
        library: LibraryProtocol | None = None,
        placement: Placement | None = None,
        expected: Sequence[str] = (),
        notices: Sequence[Notice] = (),
    ) -> Run:
        """Queue a run that paints jobs; return the run at once.

        Args:
            jobs: At least one; their recipes may differ in everything.
            owner: Owners take turns: a browser session, for example.
            address: The owner's network address; empty for one's own machine.
            fresh: Paint even pictures that the library has.
            live: Paint while the owner types: pictures are not saved, and all ordinary runs come
                first. A live run cancels its owner's live run that still waits. An ordinary run
                cancels its owner's live runs of other recipes, and reuses live pictures.
            library: Where the pictures go; the engine's own by default.
            placement: Where to compute; the engine's own by default.
            expected: For each job, the digest of the pixels to compare its picture with.
            notices: Notices about the jobs, for the owner.

        Raises:
            RunError: `too_many_runs`, `too_many_here` or `queue_full`; or the engine has ended.
            InputError: `run_long`: the run takes longer than `bounds` allows.
            LibraryError: The library has no room for so many pictures.
        """
        library = library or self.library
        if not jobs or library is None:
            raise ValueError("a run needs at least one job, and a library")
        if not live:
            library.check_room(job.recipe for job in jobs)
        run = Run(
            jobs,
            asker=Asker(owner=owner, address=address),
            library=library,
            placement=_with_even_threads(placement) if placement else self.placement,
            fresh=fresh,
            expected=expected,
            notices=notices,
            is_live=live,
            on_cancel=self._on_cancel,
        )
        batches = Batches(run, self._shared.passports, self._shared.live_pictures)
        with self._lock:
            self._raise_if_closed()
            self._cancel_replaced_live(run)
            to_paint = [run.jobs[cell].recipe for cell in batches.cells_to_paint]
            self._admit(run.asker, to_paint, needs_painter=bool(to_paint), is_live=live)
            self._forget_old_runs()
            self._runs[run.id] = batches
            for reusable in batches.reusable:
                self._shared.save_reusable(batches, reusable)
            if to_paint:
                self._shared.queue.put(batches)
            else:
                self._shared.queue_or_end(batches)
        return run

    def painted_live(self, owner: str, recipe_id: str) -> Pixels | None:
        """Return a picture of an owner's live runs, (height, width, 3) uint8; None without one."""
        return self._shared.live_pictures.get(owner, recipe_id)

    def is_busy_for_others(self, owner: str) -> bool:
        """Tell whether an owner's live runs should wait, because others have work."""
        with self._lock:
            others = [each for each in self._active_runs() if each.run.owner != owner]
            has_task = any(each.asker.owner != owner for each in self._active_tasks())
        live_s = sum(self._left_s(each) for each in others if each.run.is_live)
        has_ordinary = any(each.cells_to_paint and not each.run.is_live for each in others)
        return live_s > _LIVE_S or has_task or has_ordinary

    def run(self, run_id: str) -> Run | None:
        """Return an active run, or one of the last ended ones; None for another id."""
        batches = self._runs.get(run_id)
        return None if batches is None else batches.run

    def active_runs(self, owner: str) -> tuple[Run, ...]:
        """Return an owner's ordinary runs that go on or wait, the oldest first."""
        with self._lock:
            runs = [batches.run for batches in self._active_runs()]
        return tuple(run for run in runs if run.owner == owner and not run.is_live)

    def submit_task(
        self,
        function: Callable[[Backend], Result],
        *,
        owner: str = "",
        address: str = "",
        recipes: Sequence[Recipe] = (),
    ) -> Future[Result]:
        """Have a worker's thread call a function with its backend, between two batches.

        `owner` and `address` are as in `submit`, empty for tasks of the program itself; `recipes`
        are what the function will paint. Return a future of its result, which is cancelled if the
        engine closes first. Raise RunError and InputError as `submit`.
        """
        asker = Asker(owner=owner, address=address)
        task = Task(function=function, asker=asker, recipes=tuple(recipes))
        with self._lock:
            self._raise_if_closed()
            if owner:
                self._admit(task.asker, recipes, needs_painter=True)
            self._tasks = [*(each for each in self._tasks if not each.future.done()), task]
            self._shared.queue.put(task)
        return task.future

    def warm(self, model: str | None = None) -> None:
        """Load a model before a run needs it; `warmth` has the state of loading."""
        recipe = resolve(Request(prompt="a picture", seeds=(0,)), self._backend.card(model))[0]
        self.warmth = Warmth(state="loading", model=recipe.model.id)

        def load(backend: Backend) -> None:
            passport = backend.prepare(recipe, self.placement)
            self._shared.passports.put(recipe, self.placement, passport)

        self.submit_task(load).add_done_callback(self._set_warmth)

    @property
    def load(self) -> Load:
        """The runs and tasks that wait or go on."""
        with self._lock:
            active: list[Work] = [*self._active_runs(), *self._active_tasks()]
            left_s = [self._left_s(each) for each in active]
        return Load(num_waiting=len(left_s), left_s=sum(left_s), is_lost=self._is_lost)

    @property
    def num_painters(self) -> int:
        """How many workers of a cluster paint; 0 without a cluster."""
        if not isinstance(self._backend, ManyPainters):
            return 0
        return sum(not worker.ended.is_set() for worker in tuple(self._workers.values()))

    def begin_to_close(self) -> None:
        """Stop all runs and refuse new ones; returns at once."""
        with self._lock:
            for batches in tuple(self._runs.values()):
                batches.run.cancel()
            self._shared.queue.close()

    def close(self) -> None:
        """Stop all runs, save finished pictures, free the models (a busy painter does so later)."""
        self.begin_to_close()
        end_s = time.monotonic() + self._shared.patience.close_s
        for worker in tuple(self._workers.values()):
            worker.ended.wait(max(0.0, end_s - time.monotonic()))
        self._shared.saver.flush(_SAVING_S)
        self._shared.saver.close()
        for batches in tuple(self._runs.values()):
            batches.run.conclude(Cancelled())
        for task in self._tasks:
            task.future.cancel()
        if isinstance(self._backend, ManyPainters):
            self._backend.close()
        atexit.unregister(self.close)

    def _add_painter(self, name: str, backend: Backend) -> None:
        with self._lock:
            if self._shared.queue.is_closed:
                backend.close()
            else:  # If the painter hangs, its worker calls `backend.close`, which ends the painter.
                self._workers[name] = Worker(backend, self._shared, backend.close, name)

    def _remove_painter(self, name: str) -> None:
        """Give no more work to a painter that left the cluster."""
        worker = self._workers.pop(name, None)
        if worker is not None:
            worker.should_end = True

    def _fail_all(self) -> None:
        """Fail all runs and tasks: the only painter hung or died."""
        with self._lock:
            if self._shared.queue.is_closed:
                return
            self._is_lost = True
            self._shared.queue.close()
        error = RunError("engine_lost")
        self._shared.saver.flush(_SAVING_S)  # What was painted is saved first.
        for batches in tuple(self._runs.values()):
            run = batches.run
            run.conclude(Cancelled() if run.cancelled else Failed(error=error))
        for task in self._tasks:
            task.fail(error)
        if self._on_lost is not None:
            self._on_lost()

    def _on_cancel(self, run: Run) -> None:
        batches = self._runs.get(run.id)
        if batches is not None and self._shared.queue.remove(batches):
            batches.drop_remaining()
            self._shared.queue_or_end(batches)

    def _set_warmth(self, loaded: Future[None]) -> None:
        if loaded.cancelled():
            self.warmth = Warmth()
        elif (error := loaded.exception()) is None:
            self.warmth = replace(self.warmth, state="ready")
        else:
            if not isinstance(error, SeedGridError):
                logger.error("a model could not be loaded ahead", exc_info=error)
            self.warmth = replace(self.warmth, state="failed", error=as_ours(error))

    def _raise_if_closed(self) -> None:
        if self._shared.queue.is_closed:
            raise RunError("engine_lost" if self._is_lost else "engine_closed")

    def _admit(
        self, asker: Asker, recipes: Sequence[Recipe], *, needs_painter: bool, is_live: bool = False
    ) -> None:
        """Raise an error for a request that is too much; see `admit`.

        Requests that need a painter and those that need none are counted apart; an ordinary run is
        not counted together with its owner's live runs.
        """
        active = [
            (each.run.asker, self._left_s(each))
            for each in self._active_runs()
            if bool(each.cells_to_paint) == needs_painter
            and (is_live or not (each.run.is_live and each.run.asker == asker))
        ]
        if needs_painter:
            active += [(each.asker, self._left_s(each)) for each in self._active_tasks()]
        admit(
            asker,
            active,
            new_s=self.speeds.estimate_s(recipes),
            runs_per_owner=self._runs_per_owner,
            bounds=self._bounds,
        )

    def _cancel_replaced_live(self, run: Run) -> None:
        """Cancel the owner's live runs that a new run replaces; see `submit`."""
        recipes = {job.recipe for job in run.jobs}
        for batches in self._active_runs():
            other = batches.run
            is_waiting = bool(batches.cells_to_paint) and not batches.is_being_painted
            has_other_recipes = {job.recipe for job in other.jobs} != recipes
            is_replaced = is_waiting if run.is_live else has_other_recipes
            if other.is_live and other.owner == run.owner and is_replaced:
                other.cancel()

    def _active_runs(self) -> list[Batches]:
        return [batches for batches in self._runs.values() if batches.run.is_active]

    def _active_tasks(self) -> list[Task]:
        return [task for task in self._tasks if task.is_active]

    def _left_s(self, work: Work) -> float:
        recipes = work.recipes if isinstance(work, Task) else work.run.unsaved_recipes
        return self.speeds.estimate_s(recipes)

    def _forget_old_runs(self) -> None:
        ended = [batches.run for batches in self._runs.values() if batches.run.has_ended]
        kept = [run for run in ended if not run.is_live][-_NUM_KEPT:]
        for run in ended:
            if run not in kept:
                del self._runs[run.id]


def _with_even_threads(placement: Placement) -> Placement:
    """Return the placement with its threads rounded down to a power of two; see `even_threads`."""
    threads = placement.threads and even_threads(placement.threads)
    return replace(placement, threads=threads)
