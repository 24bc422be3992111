"""File tasks: reading, packing and drawing files, beside the engine's queue.

A few threads of their own do them, so that clicks never wait for a thread. The number of tasks is
limited for each address and for all together.

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
"""Pictures can be large: only two tasks hold one at the same time."""
WINDOW_S: Final = 600.0
_LONG_S: Final = 0.2
"""After a task of this length, free memory is given back to the system."""
STALLED_S: Final = 60.0
"""A client that reads nothing for so long is disconnected."""

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class FileWorkBounds:
    """Limits of visitors; None is no limit, as at home.

    Attributes:
        address: Tasks of one address at the same time; `together`: of all.
        window_s: Processor seconds of one address in ten minutes.
        download_bytes: Size of the pictures of one download.
        dropped: Pictures that are imported at once.
    """

    address: int | None = None
    together: int | None = None
    window_s: float | None = None
    download_bytes: float | None = None
    dropped: int | None = None


class FileWork:
    """Runs file tasks; for one event loop."""

    def __init__(self, bounds: FileWorkBounds = FileWorkBounds()) -> None:
        self.bounds = bounds
        self._in_work: Counter[str] = Counter()
        self._done: deque[tuple[float, str, float]] = deque()  # end time, address, seconds

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(NUM_THREADS)

    async def do(self, address: str, task: Callable[[], Result]) -> Result:
        """Run a task within the limits of an address."""
        with self.place(address):
            return await self.run(task, address)

    async def run(self, task: Callable[[], Result], address: str = "") -> Result:
        """Run a task on one of the threads, and count its time for the address."""
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
        finally:  # Failed tasks count too. Noted on the event loop, where it is read.
            if address:
                self._done.append((time.monotonic(), address, taken_s))

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Count a task of an address while it lasts.

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
            self._in_work += Counter()  # Drops addresses without tasks.


class Holding(Response):
    """An answer that keeps resources until it was sent or the client is gone."""

    def __init__(self, answer: Response, kept: ExitStack) -> None:
        self.status_code, self.background = answer.status_code, None
        self.raw_headers = answer.raw_headers
        self._answer = answer
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a client that reads nothing for a minute is disconnected."""

        async def send_soon(message: Message) -> None:
            with anyio.fail_after(STALLED_S):
                await send(message)

        with self._kept:
            await self._answer(scope, receive, send_soon)
