"""Run: jobs that were submitted together, their events so far, and the way to cancel them.

Any number of watchers, on any threads, may follow a run at their own pace.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from seedgrid.core.errors import Notice, RunCancelled, SeedGridError
from seedgrid.core.events import (
    Cancelled,
    Done,
    Eased,
    Event,
    Failed,
    Finished,
    Loading,
    Missed,
    Noise,
    Queued,
    Started,
    Step,
    Terminal,
)
from seedgrid.core.picture import Entry, Lineage, Picture, new_id
from seedgrid.core.plan import Job
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Placement

_RECHECK_S: Final = 0.5  # How often a wait without a limit wakes, so that Ctrl+C is handled

State = Literal["queued", "running", "done", "cancelled", "failed"]

_STATES: Final[dict[type[Event], State]] = {  # The state after an event; other events change none
    Queued: "queued",
    Loading: "running",
    Started: "running",
    Done: "done",
    Cancelled: "cancelled",
    Failed: "failed",
}


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who sends a request."""

    owner: str  # The id of who takes turns with others: a browser session, for example
    address: str = ""  # The network address that the server saw; empty for one's own machine


class LibraryProtocol(Protocol):
    """What the engine needs of a library; called from several threads. See `library.Library`."""

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Raise LibraryError if there is no room for pictures of these recipes."""

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Save a few pictures, all or none; when this returns, they survive a power cut."""

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Save copies of pictures with other lineages, all or none."""

    def find_painted(self, recipe_ids: Sequence[str], passport_digest: str) -> Mapping[str, Entry]:
        """Return pictures of these recipes that were computed under this passport, by recipe id."""


class Run:
    """Some jobs that were submitted together, in the order of their cells; see `Engine.submit`.

    `expected` has by cell the digest of the pixels to compare with; it is empty for no comparison.
    Pictures are painted in the caller's `context`, where ZeroGPU reads whose quota is used.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        asker: Asker,
        library: LibraryProtocol,
        placement: Placement,
        fresh: bool,
        expected: Sequence[str] = (),
        notices: Sequence[Notice],
        is_live: bool = False,
        on_cancel: Callable[[Run], None],
    ) -> None:
        self.id = new_id()
        self.asker = asker
        self.owner = asker.owner
        self.jobs = tuple(jobs)
        self.library = library
        self.placement = placement
        self.fresh = fresh
        self.expected = tuple(expected)
        self.notices = tuple(notices)
        self.is_live = is_live
        self.context = copy_context()
        self._on_cancel = on_cancel
        self.cancelled = False  # Whether it was asked to stop; it may not have stopped yet
        self._changed = threading.Condition()
        self._log: list[tuple[int, Event]] = []  # With rising numbers; replaced events are removed
        self._next_number = 0
        self._listeners: list[Callable[[], None]] = []
        self.state: State = "queued"

    def __repr__(self) -> str:
        return f"Run({self.id[:8]}, {len(self.jobs)} jobs, {self.state})"

    @property
    def lineage(self) -> Lineage:
        """The lineage of the first job; all jobs of a round have the same work and round."""
        return self.jobs[0].lineage

    @property
    def round_cells(self) -> tuple[int, ...]:
        """The cells of the first job's round: all cells, unless the run repaints a whole work."""
        round_id = self.lineage.round_id
        return tuple(c for c, job in enumerate(self.jobs) if job.lineage.round_id == round_id)

    @property
    def round_jobs(self) -> tuple[Job, ...]:
        """The jobs of the first job's round."""
        return tuple(self.jobs[cell] for cell in self.round_cells)

    @property
    def has_ended(self) -> bool:
        """Whether the last event was announced."""
        return self.state not in ("queued", "running")

    @property
    def finished(self) -> Mapping[int, Entry]:
        """The pictures that are finished so far, by cell; those of a live run are not saved."""
        events = self._events()
        return {event.cell: event.entry for event in events if isinstance(event, Finished)}

    @property
    def is_active(self) -> bool:
        """Whether the run waits or goes on, and was not cancelled."""
        return not (self.has_ended or self.cancelled)

    @property
    def unsaved_recipes(self) -> tuple[Recipe, ...]:
        """The recipes of the pictures that are not finished yet."""
        finished = self.finished
        return tuple(job.recipe for cell, job in enumerate(self.jobs) if cell not in finished)

    @property
    def missed(self) -> Mapping[int, SeedGridError]:
        """The errors of pictures that could not be painted, by cell."""
        events = self._events()
        return {event.cell: event.error for event in events if isinstance(event, Missed)}

    @property
    def differing(self) -> tuple[int, ...]:
        """The finished cells whose pixels differ from the expected ones."""
        finished = self.finished
        pairs = enumerate(self.expected)
        return tuple(c for c, sha in pairs if c in finished and finished[c].pixels_sha256 != sha)

    @property
    def num_remembered(self) -> int:
        """How many of the finished pictures were not painted: the library had them."""
        events = self._events()
        return sum(isinstance(event, Finished) and event.remembered for event in events)

    @property
    def last_event(self) -> Event | None:
        """The last event so far; None before the first."""
        with self._changed:
            return self._log[-1][1] if self._log else None

    def wait_for(self, *kinds: type[Event], timeout_s: float) -> None:
        """Wait, at most `timeout_s`, for an event of one of these kinds or the end of the run."""

        def has_come() -> bool:
            return self.has_ended or any(isinstance(event, kinds) for _, event in self._log)

        with self._changed:
            self._changed.wait_for(has_come, timeout_s)

    def cancel(self) -> None:
        """Ask the run to stop within one step; it may be waiting, cancelled or ended already."""
        self.cancelled = True
        self._on_cancel(self)

    def events(self, timeout_s: float | None = None) -> Iterator[Event]:
        """Follow the run from its beginning; raise TimeoutError after `timeout_s` without an event.

        A `Noise`, `Step` or `Queued` that a later event has replaced may be left out, nothing else.
        """
        since = 0
        while True:
            events, since = self.next_events(since, timeout_s)
            if not events:
                raise TimeoutError(f"nothing happened in {timeout_s} s: {self}")
            yield from events
            if isinstance(events[-1], Terminal):
                return

    def next_events(
        self, since: int, timeout_s: float | None = 0.0
    ) -> tuple[tuple[Event, ...], int]:
        """Return the events from number `since` on, and the number for the next call; begin with 0.

        Wait until there is such an event. Return none after `timeout_s` seconds (None: no limit),
        or if the run has ended without another.
        """
        with self._changed:
            self._wait(lambda: self._next_number > since or self.has_ended, timeout_s)
            new = tuple(event for number, event in self._log if number >= since)
            return new, self._next_number

    def result(self, timeout_s: float | None = None) -> tuple[Entry, ...]:
        """Wait for the pictures by cell; raise the run's error, `RunCancelled` or TimeoutError."""
        with self._changed:
            if not self._wait(lambda: self.has_ended, timeout_s):
                raise TimeoutError(f"not done after {timeout_s} s: {self}")
        if isinstance(self.last_event, Failed):
            raise self.last_event.error
        if isinstance(self.last_event, Cancelled):
            raise RunCancelled("run_cancelled")
        return tuple(entry for _, entry in sorted(self.finished.items()))

    def _wait(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait for a condition, in short waits: Python may not handle Ctrl+C in an endless one."""
        while timeout_s is None:
            if self._changed.wait_for(condition, _RECHECK_S):
                return True
        return self._changed.wait_for(condition, timeout_s)

    def pictures_or_raise(self) -> tuple[Entry, ...]:
        """Return an ended run's pictures; raise as `result` if it has none or ended early."""
        finished = self.finished
        if not finished or len(finished) + len(self.missed) < len(self.jobs):
            return self.result()
        return tuple(entry for _, entry in sorted(finished.items()))

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call a listener now and after each event, on the announcing thread; it must not block."""
        with self._changed:
            self._listeners.append(listener)
        listener()

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Stop calling a listener."""
        with self._changed, contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def announce(self, *events: Event) -> None:
        """Append events and wake all watchers. For the engine only; RuntimeError after the end."""
        with self._changed:
            for event in events:
                if not (self.has_ended and isinstance(event, Queued)):  # It was stopped meanwhile.
                    self._append(event)
            self._changed.notify_all()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def conclude(self, event: Event) -> None:
        """Announce the last event, unless the run has ended already. For the engine only."""
        with self._changed:
            if self.has_ended:
                return
            self._append(event)
        self.announce()

    def _append(self, event: Event) -> None:
        if self.has_ended:
            raise RuntimeError(f"{event} after the end of {self}")
        self._log = [each for each in self._log if not _is_replaced(each[1], event)]
        self._log.append((self._next_number, event))
        self._next_number += 1
        self.state = _STATES.get(type(event), self.state)
        if isinstance(event, Eased):
            self.notices = (*self.notices, event.notice)

    def _events(self) -> tuple[Event, ...]:
        with self._changed:
            return tuple(event for _, event in self._log)


def _is_replaced(old: Event, new: Event) -> bool:
    """Tell whether a new event replaces an old one, whose previews take much memory."""
    match old:
        case Queued():
            return isinstance(new, Queued)
        case Noise() | Step():
            if isinstance(new, Started):
                is_done = isinstance(old, Step) and old.number == old.total
                return is_done or not set(new.cells).isdisjoint(old.cells)
            is_newer = isinstance(new, Noise | Step) and new.cells == old.cells
            return is_newer or isinstance(new, Terminal)
    return False
