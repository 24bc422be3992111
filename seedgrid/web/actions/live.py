"""Live: the current prompt is painted while the person types.

The run is live (`Engine.submit`) and saves nothing; a later click finds its pictures in the
engine's memory. Closing the stream stops the run within a step.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

from fastapi import Body

from seedgrid.core.errors import InputError, RunCancelled, SeedGridError
from seedgrid.core.events import Finished, Missed, Terminal
from seedgrid.engine import Run
from seedgrid.studio import Studio
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.server.waiting import begun, followed
from seedgrid.web.server.who import Address, Kept
from seedgrid.web.state.page_state import PageUpdate, read_page_state
from seedgrid.web.state.snapshot import Snapshot, Snapshots

Number = Annotated[int, Body(ge=0)]  # Counts the live requests of a page; each answer repeats it
_BUSY: frozenset[str] = frozenset({"too_many_runs", "too_many_here", "queue_full"})


class Live:
    """Answers live requests. Safe on any event loop."""

    def __init__(self, studio: Studio, snapshots: Snapshots, handlers: Handlers) -> None:
        self._studio = studio
        self._snapshots = snapshots
        self._handlers = handlers

    def on_generate(
        self, fields: FormPayload, number: Number, kept: Kept, address: Address = ""
    ) -> AsyncGenerator[PageUpdate, None]:
        """Paint what Generate would."""

        def start(snapshot: Snapshot) -> Run:
            return self._handlers.start_grid(snapshot, fields, address, live=True)

        return self._paint(number, kept, address, start)

    def on_refine(
        self, around: RoundPayload, number: Number, kept: Kept, address: Address = ""
    ) -> AsyncGenerator[PageUpdate, None]:
        """Paint what Refine would."""

        def start(snapshot: Snapshot) -> Run:
            run = self._handlers.start_refine(snapshot, around, address, live=True)
            if run is None:
                raise InputError("picture_unknown", field="picture", value="")
            return run

        return self._paint(number, kept, address, start)

    async def _paint(
        self, number: int, kept: object, address: str, start: Callable[[Snapshot], Run]
    ) -> AsyncGenerator[PageUpdate, None]:
        state = read_page_state(kept).move()
        if self._studio.is_busy_for_others(state.visitor):
            yield _answer(number, "live_paused_queue")
            return
        try:
            run = await begun(lambda: start(self._snapshots.of(state, address)))
        except SeedGridError as error:
            is_busy = error.code in _BUSY
            yield _answer(number, "live_paused_queue") if is_busy else _refused(number, error)
            return
        async with aclosing(followed(run)) as news:  # Each picture as it is finished.
            async for events in news:
                if any(isinstance(event, Finished | Missed) for event in events):
                    shown = stage.stage_of_live(state.epoch, run)
                    yield PageUpdate(stage=shown, live={"number": number})
                if events and isinstance(events[-1], Terminal):
                    yield _ended(number, run)


def _ended(number: int, run: Run) -> PageUpdate:
    try:
        run.given()
    except RunCancelled:  # A newer live request of this visitor replaced it.
        return _answer(number, "live_paused_queue")
    except SeedGridError as error:
        return _refused(number, error)
    return _answer(number, "live_shown")


def _refused(number: int, error: SeedGridError) -> PageUpdate:
    """Answer with an error, at no field: a word may be half typed."""
    sentence = stage.complain(0, error)
    return _answer(number, sentence["key"], sentence["data"])


def _answer(number: int, key: str, data: stage.Json | None = None) -> PageUpdate:
    return PageUpdate(live={"number": number, "key": key, "data": data or {}})
