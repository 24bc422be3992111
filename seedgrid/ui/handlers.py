"""What happens on each click, key and load: values in, values out. Knows no component.

A handler starts a run or moves to another place in the tree, and shows the place; `follow` then
tells how the run goes. Runs belong to the engine: a tab that is closed loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from seedgrid import request as requests
from seedgrid.engine import Job, Run
from seedgrid.errors import InputError, SeedGridError
from seedgrid.events import Event, Finished, Step
from seedgrid.library.entry import Entry
from seedgrid.plan import plan_grid, plan_refine
from seedgrid.seeds import draw_seed
from seedgrid.studio import Studio
from seedgrid.ui import show
from seedgrid.ui.ask import Asked, read_prompts, read_request
from seedgrid.ui.lock import LockBadge
from seedgrid.ui.offer import Offer, offer
from seedgrid.ui.place import Place, read_place
from seedgrid.ui.shelves import Shelves
from seedgrid.ui.shown import Progress, Shown
from seedgrid.ui.tree import Round, path_to, rounds_of

_POLL_S: Final = 0.2
_NUM_NEIGHBOURS: Final = 4


class Handlers:
    """The page's answers. Safe from any thread: all state is in the place and the library."""

    def __init__(self, studio: Studio, shelves: Shelves) -> None:
        self._studio = studio
        self._shelves = shelves
        self._lock = LockBadge(studio)

    def on_load(self, kept: object) -> Shown:
        """Open the page where this browser left it."""
        place = read_place(kept).move()
        if place.work is None or not (self._rounds(place) or self._run(place)):
            place = place.move(work=None, round=None, picked=None, run=None)
        return self.show_place(place)

    def on_generate(self, asked: Asked, kept: object) -> Shown:
        """Start a new work: one prompt or several, each on every seed."""
        place = read_place(kept)
        try:
            request = read_request(asked)
            card = self._studio.card(request.model)
            prompts = read_prompts(asked)
            recipes = [
                recipe
                for prompt in prompts
                for recipe in requests.resolve(replace(request, prompt=prompt), card)
            ]
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
        here = self._round(place)
        if here is None:
            return Shown()
        recipes = [entry.recipe for entry in here.entries]
        parent = self._find(here.parent_id, place)
        try:
            jobs = plan_refine(parent, recipes) if parent else plan_grid(recipes)
            return self._start(jobs, place, picked=here.parent_id, device="", fresh=True)
        except SeedGridError as error:
            return self._refuse(place, error)

    def on_stop(self, kept: object) -> None:
        """Ask this browser's run to stop; whoever follows it sees it end."""
        run = self._run(read_place(kept))
        if run is not None:
            run.cancel()

    def on_pick(self, picture_id: object, kept: object) -> Shown:
        """Put a picture into the card; without one, the parent of the round if it has any."""
        place = read_place(kept)
        wanted = str(picture_id) if picture_id is not None else self._parent_of_stage(place)
        return Shown(picked=self._card(wanted, place))

    def on_go(self, round_id: object, kept: object) -> Shown:
        """Go to a round of this work."""
        place = read_place(kept)
        rounds = self._rounds(place)
        wanted = next((each for each in rounds if each.id == round_id), None)
        if wanted is None:
            return Shown()
        picked = _gone_on_from(wanted, rounds) or wanted.parent_id
        return self.show_place(place.move(round=wanted.id, picked=picked))

    def on_back(self, kept: object) -> Shown:
        """Go to the round before, with the picture picked that was gone on from."""
        place = read_place(kept)
        parent_id = self._parent_of_stage(place)
        parent = self._find(parent_id, place)
        if parent is None:
            return Shown()
        return self.show_place(place.move(round=parent.lineage.round_id, picked=parent.id))

    def on_favourite(self, picture_id: object, favourite: object, kept: object) -> Shown:
        """Mark a picture as a favourite, or not."""
        place = read_place(kept)
        try:
            self._shelves.of(place.visitor).set_favourite(str(picture_id), bool(favourite))
        except SeedGridError as error:
            return Shown(status=show.complain(place.epoch, error))
        return Shown(picked=self._card(str(picture_id), place))

    def offer(self, model: str | None) -> Offer:
        """Say what the settings offer with a model.

        Raises:
            ModelError: The model is not there, is damaged, or is not safe to load.
        """
        return offer(self._studio, model)

    def follow(self, kept: object) -> Iterator[Progress]:
        """Tell how this browser's run goes, until it ends; without one, how the model loads."""
        place = read_place(kept)
        run = self._run(place)
        if run is None:
            yield from self._follow_warming(place)
            return
        if run.has_ended and not _is_on_stage(run, place):
            return
        steps: dict[int, show.Json] = {}
        remembered: set[int] = set()
        since, has_ended = 0, False
        while not has_ended:
            has_ended = run.has_ended
            events, since = run.next_events(since, _POLL_S)
            for event in events:
                _remember_step(steps, event)
                if isinstance(event, Finished) and event.remembered:
                    remembered.add(event.cell)
            if events:
                status = show.status_of(place.epoch, events[-1], num_remembered=len(remembered))
                stage = self._stage(place, run, steps)
                yield Progress(stage=stage, status=status, rail=self._rail(place))
        self._lock.consider(run)

    def _follow_warming(self, place: Place) -> Iterator[Progress]:
        stage, rail = self._stage(place, None, {}), self._rail(place)
        engine = self._studio.engine
        has_waited = False
        while engine.warmth.state == "loading":
            if not has_waited:
                status = show.say(place.epoch, "status_warming", model=engine.warmth.model)
                yield Progress(stage=stage, status=status, rail=rail)
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
        self._lock.make_way()
        run = engine.submit(
            jobs,
            owner=place.visitor,
            placement=placement,
            library=self._shelves.of(place.visitor),
            fresh=fresh,
        )
        lineage = jobs[0].lineage
        return self.show_place(
            place.move(work=lineage.work_id, round=lineage.round_id, picked=picked, run=run.id)
        )

    def show_place(self, place: Place) -> Shown:
        """Show a place: its round on the stage, its work on the rail, its pick in the card."""
        run = self._run(place)
        is_over = run is None or run.has_ended
        return Shown(
            place=place,
            stage=self._stage(place, run, {}),
            status=show.say(place.epoch, None) if is_over else None,
            rail=self._rail(place),
            picked=self._card(place.picked, place),
        )

    def _refuse(self, place: Place, error: SeedGridError) -> Shown:
        """Say what cannot be; nothing else changes, and no older news may cover it."""
        return Shown(status=show.complain(place.move().epoch, error))

    def _stage(self, place: Place, run: Run | None, steps: dict[int, show.Json]) -> show.Json:
        """The round of this place, forming or finished."""
        if run is not None and _is_on_stage(run, place):
            return show.stage_of_run(place.epoch, run, steps, picked=place.picked)
        here = self._round(place)
        busy = run is not None and not run.has_ended
        if here is None:
            return show.stage_of_noise(place.epoch, busy=busy)
        return show.stage_of_round(place.epoch, here.entries, picked=place.picked, busy=busy)

    def _rail(self, place: Place) -> show.Json:
        has_parent = self._parent_of_stage(place) is not None
        rounds = self._rounds(place)
        return show.rail(place.epoch, rounds, current=place.round, has_parent=has_parent)

    def _card(self, picture_id: str | None, place: Place) -> show.Json:
        entry = self._find(picture_id, place)
        if entry is None:
            return show.no_picture()
        parent = self._find(entry.lineage.parent_id, place)
        hint = None if entry.lineage.round_id == place.round else "card_parent"
        return show.card(entry, parent, hint=hint, lock=self._lock.of(entry))

    def _parent_of_stage(self, place: Place) -> str | None:
        run = self._run(place)
        if run is not None and _is_on_stage(run, place):
            return run.jobs[0].lineage.parent_id
        path = path_to(self._rounds(place), place.round or "")
        return path[-1].parent_id if path else None

    def _find(self, picture_id: str | None, place: Place) -> Entry | None:
        """A picture, unless it was deleted for good or never was."""
        if picture_id is None:
            return None
        try:
            return self._shelves.of(place.visitor).get(picture_id)
        except InputError:
            return None

    def _round(self, place: Place) -> Round | None:
        return next((each for each in self._rounds(place) if each.id == place.round), None)

    def _rounds(self, place: Place) -> tuple[Round, ...]:
        return rounds_of(self._shelves.of(place.visitor).work(place.work)) if place.work else ()

    def _run(self, place: Place) -> Run | None:
        return self._studio.engine.run(place.run) if place.run else None


def _is_on_stage(run: Run, place: Place) -> bool:
    return run.jobs[0].lineage.round_id == place.round


def _gone_on_from(here: Round, rounds: Sequence[Round]) -> str | None:
    """The picture of a round that was last gone on from."""
    parents = [each.parent_id for each in rounds if each.parent_round_id == here.id]
    return parents[-1] if parents else None


def _remember_step(steps: dict[int, show.Json], event: Event) -> None:
    if not isinstance(event, Step):
        return
    for index, cell in enumerate(event.cells):
        steps[cell] = {"step": event.number, "total": event.total}
        if event.previews:
            steps[cell]["preview"] = show.preview_uri(event.previews[index])
