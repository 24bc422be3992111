"""Who is next: owners take turns, and everybody who waits is told the position.

Errands (loading ahead, verifying) wait beside the runs; while both wait, they take turns.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import zip_longest

from seedgrid.core.events import Queued
from seedgrid.engine.run import Run

Errand = Callable[[], None]


class FairQueue:
    """Runs by owner. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._by_owner: OrderedDict[str, deque[Run]] = OrderedDict()  # the next owner first
        self._positions: dict[str, int] = {}
        self._errands: deque[Errand] = deque()
        self._owes_an_errand = False
        self._closed = False

    def put(self, run: Run) -> bool:
        """Let a run wait for its turn; False when the queue is closed."""
        with self._changed:
            if self._closed:
                return False
            self._by_owner.setdefault(run.owner, deque()).append(run)
            self._tell_positions()
            self._changed.notify_all()
            return True

    def put_errand(self, errand: Errand) -> bool:
        """Let an errand wait for its turn; False when the queue is closed."""
        with self._changed:
            if self._closed:
                return False
            self._errands.append(errand)
            self._changed.notify_all()
            return True

    def take(self) -> Run | Errand | None:
        """Wait for the next run or errand and take it out; None when the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._by_owner or self._errands or self._closed)
            if self._closed:
                return None
            if self._errands and (self._owes_an_errand or not self._by_owner):
                self._owes_an_errand = False
                return self._errands.popleft()
            self._owes_an_errand = True
            owner, runs = next(iter(self._by_owner.items()))
            run = runs.popleft()
            self._by_owner.move_to_end(owner)
            self._forget(run)
            return run

    def remove(self, run: Run) -> bool:
        """Take a run out of the queue; False when it does not wait there (any more)."""
        with self._changed:
            runs = self._by_owner.get(run.owner, ())
            if run not in runs:
                return False
            self._by_owner[run.owner].remove(run)
            self._forget(run)
            return True

    def close(self) -> tuple[Run, ...]:
        """Take nothing more and give nothing more; return the runs that were waiting."""
        with self._changed:
            waiting = self._in_order()
            self._closed = True
            self._by_owner.clear()
            self._errands.clear()
            self._changed.notify_all()
            return waiting

    def _forget(self, run: Run) -> None:
        if not self._by_owner[run.owner]:
            del self._by_owner[run.owner]
        self._positions.pop(run.id, None)
        self._tell_positions()

    def _in_order(self) -> tuple[Run, ...]:
        rounds = zip_longest(*self._by_owner.values())
        return tuple(run for turn in rounds for run in turn if run is not None)

    def _tell_positions(self) -> None:
        for position, run in enumerate(self._in_order()):
            if self._positions.get(run.id) != position:
                self._positions[run.id] = position
                run.announce(Queued(position=position))
