"""What happens on each click, key and load: values in, values out. Knows no component.

A handler starts a run or moves to another place in the tree, and shows the place; `follow` then
tells how the run goes. Runs belong to the engine: a tab that is closed loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from seedgrid.core import request as requests
from seedgrid.core.errors import SeedGridError
from seedgrid.core.events import Event, Finished, Loading, Noise, Started, Step, Terminal
from seedgrid.core.plan import plan_grid, plan_refine
from seedgrid.core.seeds import draw_seed
from seedgrid.engine import Job, Run
from seedgrid.studio import Studio
from seedgrid.web.actions.form import Asked, read_prompts, read_request
from seedgrid.web.serializers import stage as show
from seedgrid.web.serializers.answers import Progress, Shown
from seedgrid.web.state.model_options import Offer, offer
from seedgrid.web.state.page_state import Place, read_place
from seedgrid.web.state.snapshot import Presenter, is_on_stage
from seedgrid.web.state.tree import Round
from seedgrid.web.state.visitor_libraries import Shelves

_POLL_S: Final = 0.2
_IDLE_S: Final = 5.0
_LOOK_S: Final = 0.1
"""Previews come no faster than one can look: a browser draws them on the processors that paint."""
_AT_ONCE_S: Final = 0.1
"""How long a click waits to hear whether the library knows the pictures; a grid takes longer."""
_NOISE_S: Final = 0.02
"""How much longer it waits for the noise, which comes first of all, to show it with the answer."""
_NUM_NEIGHBOURS: Final = 4


class Handlers:
    """The page's answers. Safe from any thread: all state is in the place and the library."""

    def __init__(self, studio: Studio, shelves: Shelves, page: Presenter) -> None:
        self._studio = studio
        self._shelves = shelves
        self._page = page

    def on_load(self, kept: object) -> Shown:
        """Open the page where this browser left it."""
        place = read_place(kept).move()
        if place.work is None or not (self._page.rounds(place) or self._page.run(place)):
            place = place.move(work=None, round=None, picked=None, run=None)
        return self._page.show_place(place)

    def on_generate(self, asked: Asked, kept: object) -> Shown:
        """Start a new work: one prompt or several, each on every seed."""
        place = read_place(kept)
        try:
            request = read_request(asked)
            prompts = read_prompts(asked, request)
            recipes = self._studio.resolve(request, prompts, turbo=asked.turbo, device=asked.device)
            return self._start(plan_grid(recipes), place, picked=None, device=asked.device)
        except SeedGridError as error:
            return self._refuse(place, error)

    def on_refine(self, suffixes: Sequence[str], device: str, kept: object) -> Shown:
        """Start a round on the picked picture's seed: its prompt with each suffix."""
        place = read_place(kept)
        if place.picked is None:
            return Shown()
        try:
            parent = self._shelves.of(place.visitor).get(place.picked)
            recipes = requests.refine(parent.recipe, suffixes)
            jobs = plan_refine(parent, recipes)
            return self._start(jobs, place, picked=parent.id, device=device)
        except SeedGridError as error:
            return self._refuse(place, error)

    def on_neighbours(self, weight: float, device: str, kept: object) -> Shown:
        """Start a round around the picked picture's noise: its words stay as they are."""
        place = read_place(kept)
        if place.picked is None:
            return Shown()
        try:
            parent = self._shelves.of(place.visitor).get(place.picked)
            seeds = [draw_seed() for _ in range(_NUM_NEIGHBOURS)]
            jobs = plan_refine(parent, requests.neighbours(parent.recipe, seeds, weight=weight))
            return self._start(jobs, place, picked=parent.id, device=device)
        except SeedGridError as error:
            return self._refuse(place, error)

    def on_again(self, kept: object) -> Shown:
        """Make the round on the stage once more, though the library remembers its pictures."""
        place = read_place(kept)
        here = self._page.round_of_place(place)
        if here is None:
            return Shown()
        recipes = [entry.recipe for entry in here.entries]
        parent = self._page.find(here.parent_id, place)
        try:
            jobs = plan_refine(parent, recipes) if parent else plan_grid(recipes)
            return self._start(jobs, place, picked=here.parent_id, device="", fresh=True)
        except SeedGridError as error:
            return self._refuse(place, error)

    def on_stop(self, kept: object) -> None:
        """Ask this browser's run to stop; whoever follows it sees it end."""
        run = self._page.run(read_place(kept))
        if run is not None:
            run.cancel()

    def on_pick(self, picture_id: object, kept: object) -> Shown:
        """Put a picture into the card; without one, the parent of the round if it has any."""
        place = read_place(kept)
        wanted = str(picture_id) if picture_id is not None else self._page.parent_of_stage(place)
        return Shown(picked=self._page.card(wanted, place))

    def on_go(self, round_id: object, kept: object) -> Shown:
        """Go to a round of this work."""
        place = read_place(kept)
        rounds = self._page.rounds(place)
        wanted = next((each for each in rounds if each.id == round_id), None)
        run = self._page.run(place)
        if wanted is None and run is not None and run.jobs[0].lineage.round_id == round_id:
            lineage = run.jobs[0].lineage
            return self._page.show_place(
                place.move(round=lineage.round_id, picked=lineage.parent_id)
            )
        if wanted is None:
            return Shown()
        picked = _gone_on_from(wanted, rounds) or wanted.parent_id
        return self._page.show_place(place.move(round=wanted.id, picked=picked))

    def on_back(self, kept: object) -> Shown:
        """Go to the round before, with the picture picked that was gone on from."""
        place = read_place(kept)
        parent_id = self._page.parent_of_stage(place)
        parent = self._page.find(parent_id, place)
        if parent is None:
            return Shown()
        return self._page.show_place(place.move(round=parent.lineage.round_id, picked=parent.id))

    def on_favourite(self, picture_id: object, favourite: object, kept: object) -> Shown:
        """Mark a picture as a favourite, or not."""
        place = read_place(kept)
        try:
            self._shelves.of(place.visitor).set_favourite(str(picture_id), bool(favourite))
        except SeedGridError as error:
            return Shown(status=show.complain(place.epoch, error))
        return Shown(picked=self._page.card(str(picture_id), place))

    def offer(self, model: str | None, *, turbo: bool = False) -> Offer:
        """Say what the settings offer with a model.

        Raises:
            ModelError: The model is not there, is damaged, or is not safe to load.
        """
        return offer(self._studio, model, turbo=turbo)

    def follow(self, kept: object) -> Iterator[Progress]:
        """Tell how this browser's run goes, until it ends; without one, how the model loads.

        Yields:
            What is new, or nothing at all when nothing happened for some seconds.
        """
        place = read_place(kept)
        run = self._page.run(place)
        if run is None:
            yield from self._follow_warming(place)
            return
        if run.has_ended and not is_on_stage(run, place):
            return
        steps: dict[int, show.Json] = {}
        since, has_ended, rail = 0, False, self._page.rail(place)
        while not has_ended:
            has_ended = run.has_ended
            events, since = run.next_events(since, _IDLE_S)
            for event in events:
                show.note_step(steps, event)
            if not events:
                if not has_ended:
                    yield Progress()
                continue
            if _changes_rail(run, events):
                rail = self._page.rail(place)  # a look into the library: not at every step
            status = show.status_of(place.epoch, events[-1], num_remembered=run.num_remembered)
            yield Progress(stage=self._page.stage(place, run, steps), status=status, rail=rail)
            if all(isinstance(event, Step) for event in events):
                run.wait_for_pictures(_LOOK_S)
        self._page.lock.consider(run)

    def _follow_warming(self, place: Place) -> Iterator[Progress]:
        stage, rail = self._page.stage(place, None, {}), self._page.rail(place)
        engine = self._studio.engine
        has_waited = False
        while engine.warmth.state == "loading":
            if not has_waited:
                status = show.say(place.epoch, "status_warming", model=engine.warmth.model)
                yield Progress(stage=stage, status=status, rail=rail)
            else:
                yield Progress()
            has_waited = True
            time.sleep(_POLL_S)
        if engine.warmth.error is not None:
            status = show.complain(place.epoch, engine.warmth.error)
            yield Progress(stage=stage, status=status, rail=rail)
        elif has_waited:
            yield Progress(stage=stage, status=show.say(place.epoch, "status_ready"), rail=rail)

    def _start(
        self,
        jobs: Sequence[Job],
        place: Place,
        *,
        picked: str | None,
        device: str,
        fresh: bool = False,
    ) -> Shown:
        engine = self._studio.engine
        placement = replace(engine.placement, device=device or engine.placement.device)
        self._page.lock.make_way()
        run = engine.submit(
            jobs,
            owner=place.visitor,
            placement=placement,
            library=self._shelves.of(place.visitor),
            fresh=fresh,
        )
        run.wait_for(Loading, Started, timeout_s=_AT_ONCE_S)
        if run.state == "running":
            run.wait_for(Loading, Noise, timeout_s=_NOISE_S)
        if run.has_ended:
            self._page.lock.consider(run)
        lineage = jobs[0].lineage
        return self._page.show_place(
            place.move(work=lineage.work_id, round=lineage.round_id, picked=picked, run=run.id)
        )

    def _refuse(self, place: Place, error: SeedGridError) -> Shown:
        """Say what cannot be; nothing else changes, and no older news may cover it."""
        return Shown(status=show.complain(place.move().epoch, error))


def _gone_on_from(here: Round, rounds: Sequence[Round]) -> str | None:
    """The picture of a round that was last gone on from."""
    parents = [each.parent_id for each in rounds if each.parent_round_id == here.id]
    return parents[-1] if parents else None


def _changes_rail(run: Run, events: Sequence[Event]) -> bool:
    """Whether the rail shows something new; the last pictures come with the end of the run."""
    if any(isinstance(event, Terminal) for event in events):
        return True
    has_finished = any(isinstance(event, Finished) for event in events)
    return has_finished and len(run.finished) < len(run.jobs)
