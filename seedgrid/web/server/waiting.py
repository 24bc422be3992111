"""Waits for runs and tasks of the engine without holding a thread.

run = await begun(lambda: studio.start_grid(request))
async for events in followed(run):
    print(events)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from anyio import to_thread

from seedgrid.core.events import Event
from seedgrid.diffusion.backend import PreviewMaker, Unwatched
from seedgrid.engine import Run

_LOOK_S: Final = 0.2

Result = TypeVar("Result")


async def begun(start: Callable[[], Run]) -> Run:
    """Start a run on another thread; it is cancelled if this call is."""
    starting = asyncio.ensure_future(to_thread.run_sync(start))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else done.result().cancel()
        )
        raise


async def followed(run: Run) -> AsyncGenerator[Sequence[Event], None]:
    """Yield the events of a run until it ends; closing the generator cancels it."""
    since, has_ended = 0, False
    try:
        with changes_of(run) as changed:
            while not has_ended:
                await changed.wait()
                changed.clear()
                has_ended = run.has_ended
                events, since = run.next_events(since)
                yield events
    finally:
        if not run.has_ended:
            run.cancel()


@contextlib.contextmanager
def changes_of(run: Run) -> Iterator[asyncio.Event]:
    """Return an asyncio event that is set now and at each event of a run."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(changed.set)

    run.when_changed(tell)
    try:
        yield changed
    finally:
        run.no_longer(tell)


class StepWatch(Unwatched):
    """Receives the steps of a verification, and can cancel it."""

    def __init__(self) -> None:
        self.stands_at = (0, 0)
        self._on_stop: Callable[[], object] = lambda: None

    def when_stopped(self, on_stop: Callable[[], object]) -> None:
        """Set what `stop` calls, for a task that has not started."""
        self._on_stop = on_stop

    def step(self, number: int, total: int, previews: PreviewMaker) -> None:  # noqa: ARG002 (none wanted)
        """Note the step that is done."""
        self.stands_at = (number, total)

    def stop(self) -> None:
        """Cancel it within a step."""
        self.cancelled = True
        self._on_stop()


async def steps_of(
    future: Future[Result], watch: StepWatch
) -> AsyncGenerator[tuple[int, int], None]:
    """Yield the progress of a task as (step, steps) until it is done.

    It is cancelled if the generator is closed before.
    """
    watch.when_stopped(future.cancel)
    told: tuple[int, int] | None = None
    waited = asyncio.wrap_future(future)
    # The caller reads the error from `future`; asyncio would log that `waited` was not read.
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        while not waited.done():
            if told != watch.stands_at:
                told = watch.stands_at
                yield told
            await asyncio.wait({waited}, timeout=_LOOK_S)
    finally:
        watch.stop()
