"""FairQueue: the work that waits for a painter. `admit` decides whether a request may join it.

Owners take turns; each waiting run announces its position. Tasks (verifying, loading ahead) take
turns of their own, between batches; live runs come last.
"""

import contextlib
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from seedgrid.core.errors import InputError, RunError, as_ours, is_memory_error
from seedgrid.core.events import Queued
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Backend
from seedgrid.engine.batches import LIVE, Batches
from seedgrid.engine.run import Asker

_CHECK_S: Final = 0.5  # How often a waiting worker checks whether it should end


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Limits for a public page; times are estimates of `core/speeds.py`. None means no limit."""

    queue_s: float | None = None  # Time of all requests that wait or go on
    run_s: float | None = None  # Time of one request
    runs_per_address: int | None = None  # Requests of one address that wait or go on


UNBOUNDED: Final = Bounds()


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A function that a painter's thread calls with its backend, between two batches."""

    function: Callable[[Backend], Any]
    asker: Asker
    recipes: tuple[Recipe, ...] = ()  # What the function will paint, to estimate its time
    future: Future[Any] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)  # The caller's context variables

    @property
    def turn_key(self) -> tuple[str, str]:
        """Work with equal keys shares a turn, in which it keeps its order."""
        return "task", self.asker.owner

    @property
    def is_active(self) -> bool:
        """Whether the task has an owner, and waits or goes on."""
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
            with contextlib.suppress(InvalidStateError):  # The painter was given up.
                self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Let the future raise an error, unless it is done already."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)


Work = Batches | Task


class FairQueue:
    """The waiting work, grouped by `turn_key`, the next turn first. Safe to use from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turns: OrderedDict[tuple[str, str], deque[Work]] = OrderedDict()
        self._positions: dict[str, int] = {}  # By run id
        self.is_closed = False

    def put(self, work: Work, *, is_begun: bool = False) -> bool:
        """Add work at the end of its turn, or begun work at the front; return False if closed.

        With `is_begun` its turn then moves behind the others. Work that waits is not added again.
        """
        with self._changed:
            if self.is_closed:
                return False
            turn = self._turns.setdefault(work.turn_key, deque())
            if work not in turn:
                turn.insert(0 if is_begun else len(turn), work)
                self._announce_positions()
                self._changed.notify()
            if is_begun:
                self._turns.move_to_end(work.turn_key)
            return True

    def take(self, fits: Callable[[Work], bool], should_end: Callable[[], bool]) -> Work | None:
        """Wait for the next work that fits and remove it; None if closed or `should_end`."""
        with self._changed:
            while not (self.is_closed or should_end()):
                turns = sorted(self._turns.values(), key=lambda works: works[0].turn_key[0] == LIVE)
                work = next((each for works in turns for each in works if fits(each)), None)
                if work is not None:
                    self._turns.move_to_end(work.turn_key)
                    self._drop(work)
                    return work
                self._changed.wait(_CHECK_S)
            return None

    def remove(self, work: Work) -> bool:
        """Remove waiting work; return False if it does not wait."""
        with self._changed:
            is_waiting = work in self._turns.get(work.turn_key, ())
            if is_waiting:
                self._drop(work)
            return is_waiting

    def close(self) -> None:
        """Refuse new work, drop all that waits, and wake the waiting painters."""
        with self._changed:
            self.is_closed = True
            self._turns.clear()
            self._changed.notify_all()

    def _drop(self, work: Work) -> None:
        waiting = self._turns[work.turn_key]
        waiting.remove(work)
        if not waiting:
            del self._turns[work.turn_key]
        if isinstance(work, Batches):
            self._positions.pop(work.run.id, None)
        self._announce_positions()

    def _announce_positions(self) -> None:
        """Announce waiting runs' positions; runs that are being painted come last, without one."""
        interleaved = zip_longest(*self._turns.values())
        runs = [work for each in interleaved for work in each if isinstance(work, Batches)]
        runs.sort(key=lambda batches: (batches.is_being_painted, batches.run.is_live))
        for position, batches in enumerate(runs):
            if not batches.is_being_painted and self._positions.get(batches.run.id) != position:
                self._positions[batches.run.id] = position
                batches.run.announce(Queued(position=position))


@dataclass(frozen=True, kw_only=True)
class Load:
    """The work that waits or goes on."""

    num_waiting: int  # Runs and tasks that wait or go on
    left_s: float  # Their remaining time, as estimated
    is_lost: bool  # The only painter hung or died: the process should be restarted


def admit(
    asker: Asker,
    active: Sequence[tuple[Asker, float]],
    *,
    new_s: float,
    runs_per_owner: int,
    bounds: Bounds,
) -> None:
    """Raise an error if a request of `new_s` seconds exceeds a limit.

    `active` are the other requests with their remaining seconds. `run_long` does not depend on
    them; `too_many_runs`, `too_many_here` and `queue_full` do, so the request may succeed later.
    """
    longest_s = min(bounds.run_s or math.inf, bounds.queue_s or math.inf)
    if new_s > longest_s:
        value, limit = str(_whole_seconds(new_s)), str(_whole_seconds(longest_s))
        raise InputError("run_long", field="seeds", value=value, limit=limit)
    if sum(other.owner == asker.owner for other, _ in active) >= runs_per_owner:
        raise RunError("too_many_runs", limit=runs_per_owner)
    same_address_s = [left_s for other, left_s in active if other.address == asker.address]
    if bounds.runs_per_address is not None and len(same_address_s) >= bounds.runs_per_address:
        wait_s = _whole_seconds(min(same_address_s))
        raise RunError("too_many_here", limit=bounds.runs_per_address, seconds=wait_s)
    queue_s = sum(left_s for _, left_s in active)
    if bounds.queue_s is not None and queue_s + new_s > bounds.queue_s:
        wait_s = _whole_seconds(queue_s + new_s - bounds.queue_s)
        raise RunError("queue_full", value=_whole_seconds(queue_s), seconds=wait_s)


def _whole_seconds(seconds: float) -> int:
    return max(1, math.ceil(seconds))
