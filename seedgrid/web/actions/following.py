"""Stream a run's progress to the page. A listener holds no thread; the run goes on if it leaves."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Final

from anyio import to_thread
from fastapi import Body

from seedgrid.core.errors import SeedGridError
from seedgrid.core.events import Event, Finished, Queued, Step, Terminal
from seedgrid.engine import Run, Warmth
from seedgrid.studio import Studio
from seedgrid.web.serializers import stage
from seedgrid.web.server.waiting import changes_of
from seedgrid.web.server.who import Kept
from seedgrid.web.state.page_state import PageState, PageUpdate, read_page_state
from seedgrid.web.state.snapshot import Snapshot, Snapshots, is_on_stage

_POLL_S: Final = 0.2
_IDLE_S: Final = 5.0
_LOOK_S: Final = 0.1
"""At least so long between previews: a browser draws them on the processors that paint."""


class Following:
    """Streams updates of runs. Safe on any event loop."""

    def __init__(self, studio: Studio, snapshots: Snapshots) -> None:
        self._studio = studio
        self._snapshots = snapshots

    async def follow(self, kept: Kept) -> AsyncGenerator[PageUpdate, None]:
        """Yield the progress of this browser's run until it ends, or of loading a model."""
        state = read_page_state(kept)
        try:
            snapshot = await to_thread.run_sync(self._snapshots.of, state)
            run = snapshot.run
            if run is not None and run.has_ended and not is_on_stage(run, state):
                return
            news = self._follow_run(snapshot, run) if run else self._follow_warming(snapshot)
            async with contextlib.aclosing(news):
                async for each in news:
                    yield each
        except SeedGridError as error:
            yield PageUpdate(status=stage.complain(state.epoch, error))

    async def _follow_run(self, snapshot: Snapshot, run: Run) -> AsyncGenerator[PageUpdate, None]:
        listener = _Listener(self._snapshots, snapshot.state, run)
        has_ended = False
        with changes_of(run) as changed:
            while not has_ended:
                try:
                    waits_s = _POLL_S if listener.waits_for(self._studio) else _IDLE_S
                    await asyncio.wait_for(changed.wait(), waits_s)
                except TimeoutError:
                    yield listener.beside(self._studio.engine.warmth)
                    continue
                changed.clear()
                has_ended = run.has_ended
                events = listener.new_events()
                if not events:
                    continue
                yield await to_thread.run_sync(listener.after, events)
                if all(isinstance(event, Step) for event in events):
                    await _look(run, changed)
        await to_thread.run_sync(self._snapshots.lock.consider, run)

    async def _follow_warming(self, snapshot: Snapshot) -> AsyncGenerator[PageUpdate, None]:
        epoch = snapshot.state.epoch
        shown, rail = await to_thread.run_sync(lambda: (snapshot.stage({}), snapshot.rail()))
        has_waited = False
        while (warmth := self._studio.engine.warmth).state == "loading":
            if not has_waited:
                status = stage.say(epoch, "status_warming", model=warmth.model)
                yield PageUpdate(stage=shown, status=status, rail=rail)
            else:
                yield PageUpdate()
            has_waited = True
            await asyncio.sleep(_POLL_S)
        if warmth.error is not None:
            yield PageUpdate(stage=shown, status=stage.complain(epoch, warmth.error), rail=rail)
        elif has_waited:
            yield PageUpdate(stage=shown, status=stage.say(epoch, "status_ready"), rail=rail)

    async def portable_news(
        self, model: Annotated[str | None, Body(embed=True, max_length=2000)] = None
    ) -> AsyncGenerator[PageUpdate, None]:
        """Yield the cost of portable pictures on this machine, measured by a trial."""
        try:
            future = self._studio.verifier.try_portable(model)
            yield PageUpdate(portable={"key": "portable_trying", "data": {}})
            trial = await asyncio.shield(asyncio.wrap_future(future))  # Others may wait for it.
        except SeedGridError:  # Generate says what is wrong with the model.
            return
        key, data = "portable_cost", {"times": f"{trial.times:.1f}"}
        yield PageUpdate(portable={"key": "portable_wrong" if trial.wrong else key, "data": data})


class _Listener:
    """What one browser has seen of a run."""

    def __init__(self, snapshots: Snapshots, state: PageState, run: Run) -> None:
        self._snapshots = snapshots
        self._state = state
        self._run = run
        self._steps: dict[int, stage.Json] = {}
        self._since = 0
        self._snapshot: Snapshot | None = None
        self._rail: stage.Json | None = None
        self._is_queued = False

    def new_events(self) -> tuple[Event, ...]:
        events, self._since = self._run.next_events(self._since)
        if events:
            self._is_queued = isinstance(events[-1], Queued)
        return events

    def waits_for(self, studio: Studio) -> bool:
        """Tell whether the run waits while a model is loaded ahead of need."""
        return self._is_queued and studio.engine.warmth.state == "loading"

    def beside(self, warmth: Warmth) -> PageUpdate:
        if not self._is_queued or warmth.state != "loading":
            return PageUpdate()
        return PageUpdate(status=stage.say(self._state.epoch, "status_loading", model=warmth.model))

    def after(self, events: Sequence[Event]) -> PageUpdate:
        """Return the update after events; where the library fails, from the run alone."""
        for event in events:
            stage.note_step(self._steps, event)
        try:
            return self._looked_up(events)
        except SeedGridError as error:
            self._snapshot, epoch = None, self._state.epoch
            shown = stage.stage_of_run(epoch, self._run, self._steps, picked=self._state.picked)
            is_shown = is_on_stage(self._run, self._state)
            status = stage.complain(epoch, error)
            return PageUpdate(stage=shown if is_shown else None, status=status)

    def _looked_up(self, events: Sequence[Event]) -> PageUpdate:
        if self._snapshot is None or _changes_rail(self._run, events):
            self._snapshot = self._snapshots.of(self._state)
            self._rail = self._snapshot.rail()
        status = stage.status_of(self._state.epoch, events[-1], self._run)
        return PageUpdate(stage=self._snapshot.stage(self._steps), status=status, rail=self._rail)


async def _look(run: Run, changed: asyncio.Event) -> None:
    """Wait a moment, but not past another finished picture or the end."""
    num_finished = len(run.finished)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_S):
            while not run.has_ended and len(run.finished) == num_finished:
                await changed.wait()
                changed.clear()
    changed.set()  # There may be events that were not sent yet.


def _changes_rail(run: Run, events: Sequence[Event]) -> bool:
    """Whether the rail changes; the last pictures come with the end of the run."""
    if any(isinstance(event, Terminal) for event in events):
        return True
    has_finished = any(isinstance(event, Finished) for event in events)
    return has_finished and len(run.finished) < len(run.jobs)
