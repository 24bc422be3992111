"""Find the quickest of several ways to the same bits, on this machine, while they are used.

Which way of a contraction is quickest depends on its shape and on the processor, its caches and
libraries. All of them give every bit alike, so what a trial computes is the result that was wanted:
the first uses of a kind go through its ways, and from then on the quickest is taken. A moment in
which the machine was busy can cost speed, never a bit.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

Way = TypeVar("Way", bound=Hashable)

TRIES: Final = 2
"""Of each way; the quicker one counts, since the first may find caches and threads cold."""

_MAX_KINDS: Final = 4096


class Trials:
    """How long each way took, by kind of contraction.

    Args:
        clock: Seconds from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._took: dict[tuple[Hashable, Hashable], list[float]] = {}

    def choose(self, kind: Hashable, ways: Sequence[Way]) -> Way:
        """Return the first way that was not tried often enough, or else the quickest."""
        if len(ways) == 1:
            return ways[0]
        took = {way: self._took.get((kind, way), []) for way in ways}
        untried = (way for way in ways if len(took[way]) < TRIES)
        return next(untried, min(ways, key=lambda way: min(took[way], default=0.0)))

    @contextmanager
    def timed(self, kind: Hashable, way: Hashable) -> Iterator[None]:
        """Measure what a way does in the block, if it is still on trial."""
        took = self._took.setdefault((kind, way), [])
        start = self._clock()
        yield
        if len(took) < TRIES:
            took.append(self._clock() - start)
        if len(self._took) > _MAX_KINDS:
            self._took.clear()


TRIALS: Final = Trials()
"""Of the whole process."""
