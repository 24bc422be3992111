"""Actions that stream their progress: of a run, of loading a model, of verify.

Waiting for events holds no thread. If the browser disconnects, a run goes on but verify stops.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from anyio import to_thread

from seedgrid.core.errors import LibraryError, SeedGridError
from seedgrid.core.events import Event, Finished, Queued, Step, Terminal
from seedgrid.core.picture import Entry
from seedgrid.engine import Run
from seedgrid.library import Library
from seedgrid.studio import Studio, check_starts
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.comparison import difference_picture, figures_of
from seedgrid.verify.judging import Verdict
from seedgrid.web.serializers import stage
from seedgrid.web.server.waiting import FileWork, StepWatch, followed, steps_of
from seedgrid.web.state.page_state import Id, PageState, PageUpdate, State
from seedgrid.web.state.snapshot import Snapshot, Snapshots, is_on_stage

_POLL_S: Final = 0.2  # Between two looks at whether a model is loaded
_IDLE_S: Final = 5.0  # After so long without events an empty update is sent
_PREVIEW_S: Final = 0.1  # The least time between previews: drawing them takes processor time


class Streams:
    """The actions that stream updates. Safe on any event loop."""

    def __init__(self, studio: Studio, snapshots: Snapshots, file_work: FileWork) -> None:
        self._studio = studio
        self._snapshots = snapshots
        self._file_work = file_work
        self._verifying: set[tuple[str, StepWatch]] = set()  # Visitors and their verifications

    async def follow(self, state: State) -> AsyncGenerator[PageUpdate, None]:
        """Yield the progress of this browser's run until it ends, or of loading a model."""
        try:
            snapshot = await to_thread.run_sync(self._snapshots.of, state)
            run = snapshot.run
            if run is not None and run.has_ended and not is_on_stage(run, state):
                return
            updates = self._follow_run(state, run) if run else self._follow_preloading(state.epoch)
            async with aclosing(updates):
                async for update in updates:
                    yield update
        except SeedGridError as error:
            yield PageUpdate(status=stage.complain(state.epoch, error))

    async def _follow_run(self, state: PageState, run: Run) -> AsyncGenerator[PageUpdate, None]:
        listener, is_queued = _Listener(self._snapshots, state, run), False
        engine = self._studio.engine

        def is_loading() -> bool:
            return is_queued and engine.warmth.state == "loading"

        async with aclosing(followed(run, lambda: _POLL_S if is_loading() else _IDLE_S)) as news:
            async for events in news:
                if not events:
                    status = stage.say(state.epoch, "status_loading", model=engine.warmth.model)
                    yield PageUpdate(status=status if is_loading() else None)
                    continue
                is_queued = isinstance(events[-1], Queued)
                yield await to_thread.run_sync(listener.update_after, events)
                # No pause after the last step: pictures may follow at once.
                if all(isinstance(each, Step) and each.number < each.total for each in events):
                    await asyncio.sleep(_PREVIEW_S)
        await to_thread.run_sync(self._snapshots.lock.probe_if_untested, run)

    async def _follow_preloading(self, epoch: int) -> AsyncGenerator[PageUpdate, None]:
        warmth = self._studio.engine.warmth
        is_loading = warmth.state == "loading"
        if is_loading:
            yield PageUpdate(status=stage.say(epoch, "status_warming", model=warmth.model))
        while (warmth := self._studio.engine.warmth).state == "loading":
            await asyncio.sleep(_POLL_S)
            yield PageUpdate()
        if warmth.error is not None:
            yield PageUpdate(status=stage.complain(epoch, warmth.error))
        elif is_loading:
            yield PageUpdate(status=stage.say(epoch, "status_ready"))

    async def on_verify(self, picture_id: Id, state: State) -> AsyncGenerator[PageUpdate, None]:
        """Paint a picture again from its recipe: yield the progress, then the verdict."""
        watch, base = StepWatch(), {"id": str(picture_id)}
        try:
            entry, claim = await self._file_work.do(
                state.address, lambda: _claim(self._snapshots.of(state).library, str(picture_id))
            )
            future = self._studio.verifier.verify(
                [claim], watch, owner=state.visitor, address=state.address
            )
            self._verifying.add((state.visitor, watch))
            async with aclosing(steps_of(future, watch)) as steps:
                async for number, total in steps:
                    progress = {"working": True, "number": number, "total": total}
                    yield PageUpdate(verdict=base | progress)
            (verdict,) = future.result()
            shown = await self._file_work.run(lambda: _verdict_json(claim, verdict))
            if verdict.confirms and not entry.checked:
                library = self._snapshots.of(state).library
                await to_thread.run_sync(library.mark_verified, entry.id)
            yield PageUpdate(verdict=base | shown)
        except SeedGridError as error:
            yield PageUpdate(verdict=base | {"error": stage.complain(state.epoch, error)})
        finally:
            self._verifying.discard((state.visitor, watch))

    def on_stop(self, state: State) -> PageUpdate:
        """Stop this browser's run and the visitor's verifications, which ends their streams."""
        run = self._studio.engine.run(state.run) if state.run else None
        if run is not None and run.owner == state.visitor:
            run.cancel()
        for owner, watch in tuple(self._verifying):
            if owner == state.visitor:
                watch.stop()
        return PageUpdate()


@dataclass
class _Listener:
    """What one browser has seen of a run."""

    snapshots: Snapshots
    state: PageState
    run: Run
    steps: dict[int, stage.Json] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    rail: stage.Json | None = None

    def update_after(self, events: Sequence[Event]) -> PageUpdate:
        """Return the update after events; if the library fails, its error and no rail."""
        for event in events:
            stage.note_step(self.steps, event)
        epoch = self.state.epoch
        try:
            if self.snapshot is None or _changes_rail(self.run, events):
                self.snapshot = self.snapshots.of(self.state)
                self.rail = self.snapshot.rail()
            status = stage.status_of(epoch, events[-1], self.run)
            shown = self.snapshot.stage(self.steps)
            return PageUpdate(stage=shown, status=status, rail=self.rail)
        except SeedGridError as error:
            self.snapshot = None
            shown = stage.stage_of_run(epoch, self.run, self.steps, picked=self.state.picked)
            status = stage.complain(epoch, error)
            is_shown = is_on_stage(self.run, self.state)
            return PageUpdate(stage=shown if is_shown else None, status=status)


def _changes_rail(run: Run, events: Sequence[Event]) -> bool:
    """Tell whether events change the rail; the last picture is shown with the run's end."""
    if any(isinstance(event, Terminal) for event in events):
        return True
    has_finished = any(isinstance(event, Finished) for event in events)
    return has_finished and len(run.finished) < len(run.jobs)


def _claim(library: Library, picture_id: str) -> tuple[Entry, Claim]:
    entry = library.get(picture_id)
    if entry.lost:
        raise LibraryError("picture_lost", value=entry.id)
    claim = read_claim(entry.path)
    check_starts([claim.recipe], library)
    return entry, claim


def _verdict_json(claim: Claim, verdict: Verdict) -> stage.Json:
    difference, figures = None, figures_of(verdict.comparison)
    if figures["max_abs_diff"] and claim.pixels is not None and verdict.pixels is not None:
        difference = stage.preview_uri(difference_picture(claim.pixels, verdict.pixels))
    return {
        "verdict": verdict.verdict,
        **figures,
        "reasons": [
            {
                "key": f"reason_{reason.code}",
                "data": {name: str(value) for name, value in reason.data.items()},
                "is_difference": reason.is_difference,
            }
            for reason in verdict.reasons
        ],
        "difference": difference,
    }
