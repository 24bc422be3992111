"""Wait for the engine, or for work with files, without holding a thread."""

import asyncio
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

import anyio
from anyio import to_thread
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.events import Event
from seedgrid.core.process import trim_heap
from seedgrid.diffusion.backend import PreviewMaker, Unwatched
from seedgrid.engine import Run
from seedgrid.storage.files import refusals

_LOOK_S: Final = 0.2  # Between two looks at a verification's progress
NUM_THREADS: Final = 2  # Of a `FileWork`; it has at most so many large pictures in memory
WINDOW_S: Final = 600.0  # The ten minutes of `FileWorkBounds.window_s`
_LONG_S: Final = 0.2  # After longer work, freed memory is given back to the system
_TEMPORARY: Final = Path(tempfile.gettempdir()) / "files"
STALLED_S: Final = 60.0  # A client that reads nothing for longer is disconnected

Result = TypeVar("Result")


async def begun(start: Callable[[], Run]) -> Run:
    """Start a run on another thread; cancelling this task meanwhile cancels the run."""
    starting = asyncio.ensure_future(to_thread.run_sync(start))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else done.result().cancel()
        )
        raise


async def followed(
    run: Run, look_s: Callable[[], float] | None = None
) -> AsyncGenerator[Sequence[Event], None]:
    """Yield the events of a run until it ends; cancel it if the caller stops reading before.

    With `look_s` it is never cancelled, and `look_s()` seconds without events yield an empty tuple.
    """
    loop, changed, since, has_ended = asyncio.get_running_loop(), asyncio.Event(), 0, False

    def wake() -> None:
        with suppress(RuntimeError):  # The loop may be closed.
            loop.call_soon_threadsafe(changed.set)

    run.add_listener(wake)
    try:
        while not has_ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), look_s() if look_s else None)
            changed.clear()
            has_ended = run.has_ended
            events, since = run.next_events(since)
            yield events
    finally:
        run.remove_listener(wake)
        if look_s is None and not run.has_ended:
            run.cancel()


class StepWatch(Unwatched):
    """Follows the steps of a verification, and can stop it."""

    def __init__(self) -> None:
        self.progress = (0, 0)  # step, steps
        self.on_stop: Callable[[], object] = lambda: None  # Cancels work that has not begun yet

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:  # noqa: ARG002 (unused)
        """Store which step is done."""
        self.progress = (number, total)

    def stop(self) -> None:
        """Cancel the verification within a step."""
        self.cancelled = True
        self.on_stop()


async def steps_of(
    future: Future[Result], watch: StepWatch
) -> AsyncGenerator[tuple[int, int], None]:
    """Yield (step, steps) of a task until it is done; cancel it if the caller stops reading before.

    Raises RunCancelled if it was cancelled before it began; `future.result()` raises other errors.
    """
    watch.on_stop = future.cancel
    last: tuple[int, int] | None = None
    waited = asyncio.wrap_future(future)
    # The caller reads the error from `future`; otherwise asyncio would log it.
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        while not waited.done():
            if last != watch.progress:
                last = watch.progress
                yield last
            await asyncio.wait({waited}, timeout=_LOOK_S)
    finally:
        watch.stop()
    if future.cancelled():
        raise RunCancelled("run_cancelled")


@dataclass(frozen=True, kw_only=True)
class FileWorkBounds:
    """Limits of a public page's work with files; None is no limit, as on one's own machine."""

    address: int | None = None  # How many tasks one address may have at a time
    together: int | None = None  # How many tasks all addresses may have at a time
    window_s: float | None = None  # How many seconds of work one address may have in ten minutes
    download_bytes: float | None = None  # The size of the pictures in one download
    dropped: int | None = None  # How many pictures of one drop are imported


class FileWork:
    """Runs work with files on a few threads, within bounds for each address; for one event loop."""

    def __init__(self, bounds: FileWorkBounds = FileWorkBounds()) -> None:
        self.bounds = bounds
        self._in_work: Counter[str] = Counter()
        self._done: deque[tuple[float, str, float]] = deque()  # End, address and seconds of tasks

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(NUM_THREADS)

    async def do(self, address: str, task: Callable[[], Result]) -> Result:
        """Do a task for an address, within the bounds."""
        with self.place(address):
            return await self.run(task, address)

    async def run(self, task: Callable[[], Result], address: str = "") -> Result:
        """Run a task on one of the threads; its processor time counts for the address, if any."""
        used_s = 0.0

        def timed() -> Result:
            nonlocal used_s
            start_s = time.thread_time()
            try:
                with refusals(_TEMPORARY):
                    return task()
            finally:
                used_s = time.thread_time() - start_s
                if used_s > _LONG_S:
                    trim_heap()

        try:
            return await to_thread.run_sync(timed, limiter=self._threads)
        finally:  # A task that fails is counted too.
            if address:
                self._done.append((time.monotonic(), address, used_s))

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Count a task while it lasts; raise `files_spent`, `files_busy_here` or `files_busy`."""
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
            self._in_work += Counter()  # Forgets addresses without tasks.


class Holding(Response):
    """A response that closes `kept` (its place in `FileWork`, its folder) after it is sent."""

    def __init__(self, answer: Response, kept: ExitStack) -> None:
        self.status_code, self.background = answer.status_code, None
        self.raw_headers = answer.raw_headers
        self._answer = answer
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; give up if the client reads nothing for `STALLED_S` seconds."""

        async def send_soon(message: Message) -> None:
            with anyio.fail_after(STALLED_S):
                await send(message)

        with self._kept:
            await self._answer(scope, receive, send_soon)
