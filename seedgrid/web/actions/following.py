"""How a run goes, told as it happens: until it ends, or until the model is loaded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from seedgrid.core.events import Event, Finished, Step, Terminal
from seedgrid.engine import Run
from seedgrid.studio import Studio
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import Progress
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.state.snapshot import Snapshot, Snapshots, is_on_stage

_POLL_S: Final = 0.2
_IDLE_S: Final = 5.0
_LOOK_S: Final = 0.1
"""Previews come no faster than one can look: a browser draws them on the processors that paint."""


class Following:
    """Tells a page what happens without a click. Safe from any thread."""

    def __init__(self, studio: Studio, snapshots: Snapshots) -> None:
        self._studio = studio
        self._snapshots = snapshots

    def follow(self, kept: object) -> Iterator[Progress]:
        """Tell how this browser's run goes, until it ends; without one, how the model loads.

        Yields:
            What is new, or nothing at all when nothing happened for some seconds.
        """
        state = read_page_state(kept)
        here = self._snapshots.of(state)
        run = here.run
        if run is None:
            yield from self._follow_warming(here)
            return
        if run.has_ended and not is_on_stage(run, state):
            return
        steps: dict[int, stage.Json] = {}
        since, has_ended, rail = 0, False, here.rail()
        while not has_ended:
            has_ended = run.has_ended
            events, since = run.next_events(since, _IDLE_S)
            for event in events:
                stage.note_step(steps, event)
            if not events:
                if not has_ended:
                    yield Progress()
                continue
            if _changes_rail(run, events):
                here = self._snapshots.of(state)  # a look into the library: not at every step
                rail = here.rail()
            status = stage.status_of(state.epoch, events[-1], run)
            yield Progress(stage=here.stage(steps), status=status, rail=rail)
            if all(isinstance(event, Step) for event in events):
                run.wait_for_pictures(_LOOK_S)
        self._snapshots.lock.consider(run)

    def _follow_warming(self, here: Snapshot) -> Iterator[Progress]:
        epoch, shown, rail = here.state.epoch, here.stage({}), here.rail()
        has_waited = False
        while (warmth := self._studio.warmth).state == "loading":
            if not has_waited:
                status = stage.say(epoch, "status_warming", model=warmth.model)
                yield Progress(stage=shown, status=status, rail=rail)
            else:
                yield Progress()
            has_waited = True
            time.sleep(_POLL_S)
        if warmth.error is not None:
            yield Progress(stage=shown, status=stage.complain(epoch, warmth.error), rail=rail)
        elif has_waited:
            yield Progress(stage=shown, status=stage.say(epoch, "status_ready"), rail=rail)

    async def portable_news(self, model: str | None) -> AsyncIterator[tuple[str, dict[str, str]]]:
        """Say what portable pictures cost on this machine, once a trial has found out.

        Yields:
            A word of the page and what stands in its braces.

        Raises:
            ModelError: As `offer`.
        """
        future = self._studio.try_portable(model)
        yield "portable_trying", {}
        trial = await asyncio.wrap_future(future)
        times = {"times": f"{trial.times:.1f}"}
        yield ("portable_wrong", {}) if trial.wrong else ("portable_cost", times)


def _changes_rail(run: Run, events: Sequence[Event]) -> bool:
    """Whether the rail shows something new; the last pictures come with the end of the run."""
    if any(isinstance(event, Terminal) for event in events):
        return True
    has_finished = any(isinstance(event, Finished) for event in events)
    return has_finished and len(run.finished) < len(run.jobs)
