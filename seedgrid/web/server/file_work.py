"""Work with files that the engine does not admit.

Painting waits in the engine's queue. What is read, packed or drawn beside it is done here, by few
threads, so that none is missing where clicks are answered; waiting for one holds none. From
one address, and from all together, only so much is let in. Knows no component.

    claim = await file_work.do(address, lambda: read_claim(path))
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import anyio
from anyio import to_thread
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from seedgrid.core.errors import RunError
from seedgrid.core.process import trim_heap

NUM_THREADS: Final = 2
"""A picture may be large: two of them are in memory together."""
WINDOW_S: Final = 600.0
_LONG_S: Final = 0.2
"""Work of so long had a large picture in memory."""
STALLED_S: Final = 60.0
"""Who takes nothing of an answer for so long does not want it."""

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class FileWorkBounds:
    """What strangers may have in work; None bounds nothing, as on one's own machine.

    Attributes:
        address: How many pieces of work from one address at once; `together`, from all.
        window_s: How many seconds of it one address may have in ten minutes.
        download_bytes: How large the pictures of one download may be.
        dropped: How many pictures are taken in at once.
    """

    address: int | None = None
    together: int | None = None
    window_s: float | None = None
    download_bytes: float | None = None
    dropped: int | None = None


class FileWork:
    """Used on one event loop, as the page's server is."""

    def __init__(self, bounds: FileWorkBounds = FileWorkBounds()) -> None:
        self.bounds = bounds
        self._in_work: Counter[str] = Counter()
        self._done: deque[tuple[float, str, float]] = deque()  # when, for whom, for how long

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(NUM_THREADS)

    async def do(self, address: str, task: Callable[[], Result]) -> Result:
        """Do a piece of work for somebody."""
        with self.place(address):
            return await self.run(task, address)

    async def run(self, task: Callable[[], Result], address: str = "") -> Result:
        """Do something on one of the threads for somebody who has a place; it is counted."""
        taken_s = 0.0

        def timed() -> Result:
            nonlocal taken_s
            start_s = time.thread_time()
            try:
                return task()
            finally:
                taken_s = time.thread_time() - start_s
                if taken_s > _LONG_S:
                    trim_heap()

        try:
            return await to_thread.run_sync(timed, limiter=self._threads)
        finally:  # What is refused in the end costs as much. Noted on the loop, where it is read.
            if address:
                self._done.append((time.monotonic(), address, taken_s))

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Count a piece of work while it lasts.

        Raises:
            RunError: `files_spent`, `files_busy_here` or `files_busy`.
        """
        bounds, end_s = self.bounds, time.monotonic() - WINDOW_S
        while self._done and self._done[0][0] < end_s:
            self._done.popleft()
        spent_s = sum(seconds for _, who, seconds in self._done if who == address)
        if bounds.window_s is not None and spent_s >= bounds.window_s:
            raise RunError("files_spent", value=round(spent_s), minutes=round(WINDOW_S / 60))
        if bounds.address is not None and self._in_work[address] >= bounds.address:
            raise RunError("files_busy_here", limit=bounds.address)
        if bounds.together is not None and self._in_work.total() >= bounds.together:
            raise RunError("files_busy", limit=bounds.together)
        self._in_work[address] += 1
        try:
            yield
        finally:
            self._in_work[address] -= 1
            self._in_work += Counter()  # Forgets whom nothing is done for.


class Holding(Response):
    """An answer that keeps something, a place or a folder, until it was sent or nobody takes it."""

    def __init__(self, answer: Response, kept: ExitStack) -> None:
        self.status_code, self.background = answer.status_code, None
        self.raw_headers = answer.raw_headers
        self._answer = answer
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; who takes nothing for a minute gets no more."""

        async def send_soon(message: Message) -> None:
            with anyio.fail_after(STALLED_S):
                await send(message)

        with self._kept:
            await self._answer(scope, receive, send_soon)
