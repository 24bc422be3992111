"""EventLog: what happened to a run so far, in order, without what a later event has replaced.

Previews are large: of some cells only the newest is kept, of what waits only the last position,
and of what is loaded only how far it is. Guarded by its run.
"""

from bisect import bisect_left

from seedgrid.core.events import Event, Loading, Noise, Queued, Started, Step, Terminal


class EventLog:
    """Events by number: rising, with gaps."""

    def __init__(self) -> None:
        self.next_number = 0
        self._lasting: list[tuple[int, Event]] = []
        self._fleeting: list[tuple[int, Event]] = []  # a few, the oldest first

    def note(self, event: Event) -> None:
        """Add an event, and forget what it replaces."""
        self._fleeting = [each for each in self._fleeting if not _replaces(event, each[1])]
        log = self._fleeting if _is_fleeting(event) else self._lasting
        log.append((self.next_number, event))
        self.next_number += 1

    @property
    def events(self) -> tuple[Event, ...]:
        """All that there are, the oldest first."""
        return self.since(0)

    @property
    def last(self) -> Event:
        """The newest one that no other replaces; there is one."""
        return self._lasting[-1][1]

    def since(self, number: int) -> tuple[Event, ...]:
        """Return those from a number on, the oldest first."""
        lasting = self._lasting[bisect_left(self._lasting, number, key=_number) :]
        fleeting = [each for each in self._fleeting if each[0] >= number]
        return tuple(event for _, event in sorted([*lasting, *fleeting], key=_number))


def _number(numbered: tuple[int, Event]) -> int:
    return numbered[0]


def _is_fleeting(event: Event) -> bool:
    is_part = isinstance(event, Loading) and event.total > 0
    return is_part or isinstance(event, Queued | Noise | Step)


def _replaces(new: Event, old: Event) -> bool:
    """Tell whether nobody needs an event any more after another one."""
    if isinstance(old, Queued):
        return isinstance(new, Queued)
    if isinstance(old, Loading):
        return isinstance(new, Loading | Started | Terminal)
    if not isinstance(old, Noise | Step):
        return False
    if isinstance(new, Noise | Step):
        return new.cells == old.cells
    if isinstance(new, Started):
        is_done = isinstance(old, Step) and old.number == old.total
        return is_done or not set(new.cells).isdisjoint(old.cells)
    return isinstance(new, Terminal)
