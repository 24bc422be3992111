"""Who is next: owners take turns, and everybody who waits is told the position.

Errands (loading ahead, verifying) wait beside the runs, by owner as well; while both wait, they
take turns. A run that was begun may be put back, so that others come between two of its batches.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeVar

from seedgrid.core.errors import RunError
from seedgrid.core.events import Queued
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.run import Run


@dataclass(frozen=True, kw_only=True, eq=False)
class Errand:
    """Something else than pictures, to be done by the engine's own thread.

    Attributes:
        do: Does it with a backend; raises nothing that anybody waits for.
        fail: Tells whoever waits that the engine's thread is lost.
        owner: Whose turn it takes; the engine's own has none.
        extra_s: How much longer than a run it may be without a sign of life.
    """

    do: Callable[[Backend], None]
    fail: Callable[[RunError], None] = field(default=lambda error: None)  # noqa: ARG005
    owner: str = ""
    extra_s: float = 0.0


Item = TypeVar("Item", Run, Errand)


class _Turns(Generic[Item]):
    """Items by owner, the next owner first. Guarded by whoever holds it."""

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, deque[Item]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._by_owner)

    def put(self, item: Item) -> None:
        self._by_owner.setdefault(item.owner, deque()).append(item)

    def put_back(self, item: Item) -> None:
        """Before what its owner has waiting, after all other owners."""
        self._by_owner.setdefault(item.owner, deque()).appendleft(item)
        self._by_owner.move_to_end(item.owner)

    def take(self, fits: Callable[[Item], bool]) -> Item | None:
        for owner, items in self._by_owner.items():
            item = next(filter(fits, items), None)
            if item is not None:
                items.remove(item)
                self._by_owner.move_to_end(owner)
                self._tidy(owner)
                return item
        return None

    def has_any(self, fits: Callable[[Item], bool]) -> bool:
        return any(fits(item) for items in self._by_owner.values() for item in items)

    def has(self, item: Item) -> bool:
        return item in self._by_owner.get(item.owner, ())

    def remove(self, item: Item) -> bool:
        items = self._by_owner.get(item.owner)
        if items is None or item not in items:
            return False
        items.remove(item)
        self._tidy(item.owner)
        return True

    def others_than(self, owner: str) -> bool:
        return any(other != owner for other in self._by_owner)

    def in_order(self) -> tuple[Item, ...]:
        rounds = zip_longest(*self._by_owner.values())
        return tuple(item for turn in rounds for item in turn if item is not None)

    def clear(self) -> None:
        self._by_owner.clear()

    def _tidy(self, owner: str) -> None:
        if not self._by_owner[owner]:
            del self._by_owner[owner]


def _any(_: object) -> bool:
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class _Waiter:
    """Somebody who waits in `take`.

    Attributes:
        fits: Which runs may wake it; an errand always may.
        woken: Waits on the queue's own lock.
    """

    fits: Callable[[Run], bool]
    woken: threading.Condition


class FairQueue:
    """Runs and errands. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._waiters: list[_Waiter] = []  # Who has waited longest comes first.
        self._runs: _Turns[Run] = _Turns()
        self._errands: _Turns[Errand] = _Turns()
        self._positions: dict[str, int] = {}
        self._shared: set[str] = set()
        self._owes_an_errand = False
        self._closed = False

    def put(self, run: Run) -> bool:
        """Let a run wait for its turn; False when the queue is closed."""
        return self._wait(self._runs.put, run)

    def put_back(self, run: Run) -> bool:
        """Let a run that was begun wait for its next turn; False when the queue is closed."""
        return self._wait(self._runs.put_back, run)

    def share(self, run: Run) -> bool:
        """Let others paint at a run that is being painted; False when the queue is closed.

        It is told of no position: it does not wait.
        """
        with self._guard:
            if self._runs.has(run):
                return True
            self._shared.add(run.id)
            return self._wait(self._runs.put_back, run)

    def put_errand(self, errand: Errand) -> bool:
        """Let an errand wait for its turn; False when the queue is closed."""
        return self._wait(self._errands.put, errand)

    def take(
        self, fits: Callable[[Run], bool] = _any, is_over: Callable[[], bool] = lambda: False
    ) -> Run | Errand | None:
        """Wait for the next run or errand and take it out; None when the queue is closed."""
        waiter = _Waiter(fits=fits, woken=threading.Condition(self._guard))
        with self._guard:
            while not (self._closed or is_over()):
                item = self._take(fits)
                # What was for us alone when we were woken may be for somebody else by now.
                self._wake_one()
                if item:
                    return item
                self._waiters.append(waiter)
                waiter.woken.wait()
            self._wake_one()
            return None

    def nudge(self) -> None:
        """Have everybody who waits in `take` look again."""
        with self._guard:
            self._wake(*self._waiters)

    def _wake_one(self) -> None:
        """Wake one of those for whom there is something: a hundred would run for one batch."""
        for waiter in self._waiters:
            if self._errands or self._runs.has_any(waiter.fits):
                self._wake(waiter)
                return

    def _wake(self, *waiters: _Waiter) -> None:
        for waiter in waiters:
            self._waiters.remove(waiter)
            waiter.woken.notify()

    def _take(self, fits: Callable[[Run], bool]) -> Run | Errand | None:
        if self._errands and self._owes_an_errand:
            self._owes_an_errand = False
            return self._errands.take(_any)
        run = self._runs.take(fits)
        if run is None:
            return self._errands.take(_any)
        self._owes_an_errand = True
        self._shared.discard(run.id)
        self._positions.pop(run.id, None)
        self._tell_positions()
        return run

    def others_wait(self, run: Run) -> bool:
        """Tell whether anybody but a run's owner waits for a turn, or an errand does."""
        with self._guard:
            return bool(self._errands) or self._runs.others_than(run.owner)

    def remove(self, run: Run) -> bool:
        """Take a run out of the queue; False when it does not wait there (any more)."""
        with self._guard:
            is_there = self._runs.remove(run)
            if is_there:
                self._shared.discard(run.id)
                self._positions.pop(run.id, None)
                self._tell_positions()
            return is_there

    def close(self) -> tuple[Run, ...]:
        """Take nothing more and give nothing more; return the runs that were waiting."""
        with self._guard:
            waiting = self._runs.in_order()
            self._closed = True
            self._runs.clear()
            self._errands.clear()
            self._wake(*self._waiters)
            return waiting

    def _wait(self, put: Callable[[Item], None], item: Item) -> bool:
        with self._guard:
            if self._closed:
                return False
            put(item)
            self._tell_positions()
            self._wake_one()
            return True

    def _tell_positions(self) -> None:
        for position, run in enumerate(self._runs.in_order()):
            if run.id not in self._shared and self._positions.get(run.id) != position:
                self._positions[run.id] = position
                run.announce(Queued(position=position))
