"""FairQueue: what waits for a painter. Owners take turns; each waiting run announces its position.

Tasks (verifying, loading ahead) take turns of their own, between batches; live runs come last.
"""

import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from seedgrid.core.errors import as_ours, is_memory_error
from seedgrid.core.events import Queued
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.admission import Asker
from seedgrid.engine.batches import LIVE, Batches

_CHECK_S: Final = 0.5  # How often a waiting painter looks again


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A function that a painter's thread calls with its backend, between two batches."""

    function: Callable[[Backend], Any]
    asker: Asker
    recipes: tuple[Recipe, ...] = ()  # What it will paint, for the estimate of its time
    future: Future[Any] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)  # The caller's context variables

    @property
    def turn(self) -> tuple[str, str]:
        """Those with the same turn are done in their order."""
        return "task", self.asker.owner

    @property
    def is_active(self) -> bool:
        """Whether it counts among what its owner has waiting."""
        return bool(self.asker.owner) and not self.future.done()

    def run(self, backend: Backend) -> None:
        """Call the function and set the future, unless the future was cancelled."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.context.run(self.function, backend)
        except BaseException as error:  # noqa: BLE001 (the thread's edge: the future raises it)
            self.fail(as_ours(error) if is_memory_error(error) else error)
        else:
            with contextlib.suppress(InvalidStateError):  # The engine gave up this painter.
                self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Let the future raise an error, unless it is done already."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)


Work = Batches | Task


class FairQueue:
    """Work by turn, the next turn first. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turns: OrderedDict[tuple[str, str], deque[Work]] = OrderedDict()
        self._positions: dict[str, int] = {}  # by run
        self.is_closed = False

    def put(self, work: Work, *, is_begun: bool = False) -> bool:
        """Add work behind that of its turn; begun work before that of its turn, behind other turns.

        If it waits already, only its turn moves. False if the queue is closed.
        """
        with self._changed:
            if self.is_closed:
                return False
            turn = self._turns.setdefault(work.turn, deque())
            if work not in turn:
                turn.insert(0 if is_begun else len(turn), work)
                self._announce_positions()
                self._changed.notify()
            if is_begun:
                self._turns.move_to_end(work.turn)
            return True

    def take(self, fits: Callable[[Work], bool], is_over: Callable[[], bool]) -> Work | None:
        """Wait for the next work that fits and remove it; None if the queue is closed."""
        with self._changed:
            while not (self.is_closed or is_over()):
                work = self._take(fits)
                if work is not None:
                    return work
                self._changed.wait(_CHECK_S)
            return None

    def remove(self, work: Work) -> bool:
        """Remove work; False if it does not wait here."""
        with self._changed:
            is_waiting = work in self._turns.get(work.turn, ())
            if is_waiting:
                self._drop(work)
                self._announce_positions()
            return is_waiting

    def close(self) -> None:
        """Accept and hand out nothing more."""
        with self._changed:
            self.is_closed = True
            self._turns.clear()
            self._changed.notify_all()

    def _take(self, fits: Callable[[Work], bool]) -> Work | None:
        for turn, waiting in sorted(self._turns.items(), key=lambda each: each[0][0] == LIVE):
            work = next(filter(fits, waiting), None)
            if work is not None:
                self._turns.move_to_end(turn)
                self._drop(work)
                self._announce_positions()
                return work
        return None

    def _drop(self, work: Work) -> None:
        waiting = self._turns[work.turn]
        waiting.remove(work)
        if not waiting:
            del self._turns[work.turn]
        if isinstance(work, Batches):
            self._positions.pop(work.run.id, None)

    def _in_order(self) -> tuple[Work, ...]:
        rounds = zip_longest(*self._turns.values())
        every = (work for each in rounds for work in each if work is not None)
        return tuple(sorted(every, key=lambda work: work.turn[0] == LIVE))

    def _announce_positions(self) -> None:
        """Announce positions; runs that are being painted count last and have none."""
        runs = [work for work in self._in_order() if isinstance(work, Batches)]
        runs.sort(key=lambda batches: batches.is_painted)
        for position, batches in enumerate(runs):
            if not batches.is_painted and self._positions.get(batches.run.id) != position:
                self._positions[batches.run.id] = position
                batches.run.announce(Queued(position=position))
