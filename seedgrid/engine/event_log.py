"""EventLog: what happened to a run so far, in order, without what nobody needs any more.

Previews are large and soon replaced: of some cells only the newest is kept, of what waits only the
last position, and of what is loaded only how far it is. Guarded by whoever holds it.
"""

from collections.abc import Callable
from itertools import takewhile

from seedgrid.core.events import (
    Cancelled,
    Done,
    Event,
    Failed,
    Loading,
    Noise,
    Queued,
    Started,
    Step,
)

Cells = tuple[int, ...]


class EventLog:
    """Events by number: rising, with gaps."""

    def __init__(self) -> None:
        self.next_number = 0
        self._events: dict[int, Event] = {}
        self._fleeting: dict[Cells, int] = {}  # the newest preview of these cells; (): Queued
        self._loading: int | None = None

    def note(self, event: Event) -> None:
        """Add an event, and forget what it replaces."""
        self._forget_what_is_replaced_by(event)
        self._events[self.next_number] = event
        self.next_number += 1

    @property
    def events(self) -> tuple[Event, ...]:
        """All that there are, the oldest first."""
        return tuple(self._events.values())

    @property
    def last(self) -> Event:
        """The newest one; there is one."""
        return self._events[self.next_number - 1]

    def since(self, number: int) -> tuple[Event, ...]:
        """Return those from a number on, the oldest first."""
        newest_first = takewhile(lambda at: at >= number, reversed(self._events))
        return tuple(reversed([self._events[at] for at in newest_first]))

    def _forget_what_is_replaced_by(self, event: Event) -> None:
        match event:
            case Queued():
                self._forget(lambda other, _: not other)
                self._fleeting[()] = self.next_number
            case Loading():
                self._forget_loading()
                self._loading = self.next_number if event.total else None
            case Noise(cells=cells) | Step(cells=cells):
                self._forget(lambda other, _: other == cells)
                self._fleeting[cells] = self.next_number
            case Started(cells=cells):
                self._forget_loading()
                self._forget(
                    lambda other, last: _is_last_step(last) or not set(cells).isdisjoint(other)
                )
            case Done() | Cancelled() | Failed():
                self._forget_loading()
                self._forget(lambda other, _: bool(other))

    def _forget_loading(self) -> None:
        if self._loading is not None:
            del self._events[self._loading]
            self._loading = None

    def _forget(self, is_old: Callable[[Cells, Event], bool]) -> None:
        old = [cells for cells, at in self._fleeting.items() if is_old(cells, self._events[at])]
        for cells in old:
            del self._events[self._fleeting.pop(cells)]


def _is_last_step(event: Event) -> bool:
    return isinstance(event, Step) and event.number == event.total
