"""The worker: the one thread that owns the backend. It takes runs one at a time and paints them.

A long run gives way between two batches when others wait. Whatever goes wrong ends the run, never
the worker; a thread that does not come back from the backend is given up.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.errors import RunCancelled, RunError, SeedGridError, told_of
from seedgrid.core.events import Cancelled, Done, Event, Failed
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.fair_queue import Errand, FairQueue
from seedgrid.engine.painting import Batches, LostThreads, Painter
from seedgrid.engine.run import Run
from seedgrid.engine.saving import Saver
from seedgrid.engine.watchdog import Pulse

logger = logging.getLogger(__name__)

_SAVING_S: Final = 10.0
"""How long what was painted may take to be saved before a run is told that its thread is lost."""


@dataclass
class _Turn:
    """A run that was begun."""

    run: Run
    batches: Batches
    worked_s: float = 0.0

    def abandon(self) -> None:
        """Let go of it; on the saver's thread, behind what it had to save."""
        try:
            self.batches.close()
        finally:
            self.run.conclude(Cancelled())


class Worker:
    """Works on what a queue gives until the queue is closed; only it touches the backend.

    Attributes:
        pulse: Its signs of life.
        gone: Set when the thread has ended, or was given up.
        is_closing: Whether the queue was closed: it should end.
    """

    def __init__(
        self, backend: Backend, queue: FairQueue, speeds: Speeds, lost: LostThreads | None = None
    ) -> None:
        self.pulse = Pulse()
        self.gone = threading.Event()
        self.is_closing = False
        self._backend = backend
        self._queue = queue
        self._lost = lost or LostThreads()
        self._is_given_up = False
        self._guard = threading.Lock()
        self._has_ended = False
        self._begun: dict[str, _Turn] = {}  # runs that wait between two batches, by id
        self._saver = Saver()
        self._painter = Painter(backend, self._saver, self.pulse, speeds, self._lost)
        self._thread = threading.Thread(target=self._work, name="seedgrid-worker", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        """Tell whether the thread is there."""
        return self._thread.is_alive()

    def is_stopping(self) -> bool:
        """Tell whether the thread was asked to come back from what it does."""
        task = self.pulse.task
        return self.is_closing or (isinstance(task, Run) and task.cancelled)

    def abandon(self, run: Run) -> None:
        """End a run that was cancelled while it waited; what it had painted is saved before."""
        with self._guard:
            turn = self._begun.pop(run.id, None)
            if turn is not None and not self._has_ended:
                self._saver.submit(turn.abandon)
                return
        if turn is None:
            run.conclude(Cancelled())
        else:
            self._saver.close()  # What it had painted is saved by now.
            turn.abandon()

    def abandon_waiting(self, runs: Sequence[Run]) -> None:
        """End runs that waited when the queue was closed; those that were begun end with us."""
        with self._guard:
            unbegun = [run for run in runs if run.id not in self._begun]
        for run in unbegun:
            run.conclude(Cancelled())

    def give_up(self, error: RunError) -> None:
        """Go on without a thread that is dead or does not come back; whoever waits for it is told.

        When it comes back after all, it lets go of its backend and ends.
        """
        task = self.pulse.task
        self._is_given_up = True
        if self.is_alive():
            self._lost.num_missing += 1
        # Behind what is still being saved, unless it is the disk that does not come back.
        with contextlib.suppress(TimeoutError):
            self._saver.submit(lambda: None).result(_SAVING_S)
        if isinstance(task, Run):
            stopped = Cancelled()
            task.conclude(stopped if task.cancelled else Failed(error=error))
            task.cancel()
        elif isinstance(task, Errand):
            task.fail(error)
        if self.is_closing:
            for turn in tuple(self._begun.values()):
                turn.run.conclude(Cancelled())
        self.gone.set()

    def _work(self) -> None:
        while not self._is_given_up:
            try:
                if not self._do_next():
                    break
            except BaseException as error:
                # SystemExit and the like mean nothing here: who waits must hear of the end.
                if not self._is_given_up:
                    logger.exception("the engine's thread goes on after an error")
                    self._tell_failure(error)
        self._let_go()

    def _do_next(self) -> bool:
        self.pulse.begin(None)
        item = self._queue.take()
        if item is None:
            return False
        if isinstance(item, Run):
            self.pulse.begin(item)
            item.context.run(self._take_turn, item)
        else:
            self.pulse.begin(item, extra_s=item.extra_s)
            item.do(self._backend)
        return True

    def _tell_failure(self, error: BaseException) -> None:
        task = self.pulse.task
        reason = told_of(error)
        if isinstance(task, Run):
            task.conclude(Failed(error=reason))
        elif isinstance(task, Errand):
            task.fail(reason)

    def _let_go(self) -> None:
        if self._is_given_up:
            self._lost.num_missing -= 1
            self._lost.num_returned += 1
            if not self.is_closing:
                logger.warning("a thread that was given up has come back")
        try:
            with self._guard:
                self._has_ended = True
                for turn in self._begun.values():
                    if not self._is_given_up:
                        self._saver.submit(turn.abandon)
            self._saver.close()
            self._backend.close()
        except BaseException:  # The thread's edge; `gone` is set whatever happens.
            logger.exception("the backend could not be closed")
        finally:
            self.gone.set()

    def _take_turn(self, run: Run) -> None:
        """Paint until the run has come to its one end, or somebody else waits."""
        begun = self._begun.pop(run.id, None)
        turn = begun or _Turn(run=run, batches=self._painter.paint(run))
        start_s = time.monotonic()
        event: Event
        try:
            is_done = self._paint_on(run, turn, is_new=begun is None)
        except RunCancelled:
            event = Cancelled()
        except SeedGridError as error:
            event = Failed(error=error)
        except BaseException as error:  # Whatever ends a run, who watches it hears of it.
            if not self._is_given_up:
                logger.exception("a run failed unexpectedly")
            event = Failed(error=told_of(error))
        else:
            turn.worked_s += time.monotonic() - start_s
            if not is_done:
                return
            event = Done(elapsed_s=turn.worked_s)
        run.conclude(event)

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
                self._begun.pop(run.id, None)
