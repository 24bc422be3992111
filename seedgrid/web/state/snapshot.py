"""Presenter: a place, as the parts of the page that show it. Reads only, changes nothing.

shown = Presenter(studio, shelves).show_place(place)
"""

from __future__ import annotations

from seedgrid.core.entry import Entry
from seedgrid.core.errors import InputError
from seedgrid.engine import Run
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures
from seedgrid.web.serializers import stage as show
from seedgrid.web.serializers.answers import Shown
from seedgrid.web.state.lock_badge import LockBadge
from seedgrid.web.state.page_state import Place
from seedgrid.web.state.tree import Round, living, path_to, rounds_of
from seedgrid.web.state.visitor_libraries import Shelves


class Presenter:
    """Shows places. Safe to use from any thread.

    Attributes:
        lock: What is known of the lock.
    """

    def __init__(self, studio: Studio, shelves: Shelves) -> None:
        self._studio = studio
        self._shelves = shelves
        self.lock = LockBadge(studio)

    def show_place(self, place: Place) -> Shown:
        """Show a place: its round on the stage, its work on the rail, its pick in the card."""
        run = self.run(place)
        is_going = self._is_going(run)
        stage = self.stage(place, run, _steps_so_far(run) if is_going else {})
        return Shown(
            place=place,
            stage=stage | {"follow": place.to_browser()} if is_going else stage,
            status=None if run is not None and is_going else self._status(place, run),
            rail=self.rail(place),
            picked=self.card(place.picked, place),
        )

    def _is_going(self, run: Run | None) -> bool:
        """Whether there will be news: of a run, or of a model that is loaded ahead of the first."""
        if run is not None:
            return not run.has_ended
        return self._studio.engine.warmth.state in ("loading", "failed")

    def _status(self, place: Place, run: Run | None) -> show.Json:
        """How the run ended that made what is on the stage; nothing of another one."""
        end = run.end if run is not None and is_on_stage(run, place) else None
        if run is None or end is None:
            return show.say(place.epoch, None)
        return show.status_of(place.epoch, end, num_remembered=run.num_remembered)

    def stage(self, place: Place, run: Run | None, steps: dict[int, show.Json]) -> show.Json:
        """The round of this place, forming or finished."""
        # What a run finished may have been marked or thrown away since: the library knows.
        if run is not None and is_on_stage(run, place) and run.state != "done":
            return show.stage_of_run(place.epoch, run, steps, picked=place.picked)
        here = self.round_of_place(place)
        busy = run is not None and not run.has_ended
        if here is None:
            return show.stage_of_noise(place.epoch, busy=busy)
        return show.stage_of_round(place.epoch, here.entries, picked=place.picked, busy=busy)

    def rail(self, place: Place) -> show.Json:
        """The work of this place, and what forms in it."""
        has_parent = self.parent_of_stage(place) is not None
        run = self.run(place)
        is_forming = run is not None and not run.has_ended and _work_of(run) == place.work
        return show.rail(
            place.epoch,
            living(self.rounds(place), place.round),
            current=place.round,
            has_parent=has_parent,
            forming=run if is_forming else None,
        )

    def card(self, picture_id: str | None, place: Place) -> show.Json:
        """A picture of this visitor's, or none."""
        entry = self.find(picture_id, place)
        if entry is None:
            return pictures.no_picture()
        parent = self.find(entry.lineage.parent_id, place)
        hint = None if entry.lineage.round_id == place.round else "card_parent"
        return pictures.card(entry, parent, hint=hint, lock=self.lock.of(entry))

    def parent_of_stage(self, place: Place) -> str | None:
        """The picture that the round on the stage was refined from, if it was."""
        run = self.run(place)
        if run is not None and is_on_stage(run, place):
            return run.jobs[0].lineage.parent_id
        path = path_to(self.rounds(place), place.round or "")
        return path[-1].parent_id if path else None

    def find(self, picture_id: str | None, place: Place) -> Entry | None:
        """A picture, unless it was deleted for good or never was."""
        if picture_id is None:
            return None
        try:
            return self._shelves.of(place.visitor).get(picture_id)
        except InputError:
            return None

    def round_of_place(self, place: Place) -> Round | None:
        """The round on the stage, as far as it is finished."""
        return next((each for each in self.rounds(place) if each.id == place.round), None)

    def rounds(self, place: Place) -> tuple[Round, ...]:
        """The rounds of this work."""
        return rounds_of(self._shelves.of(place.visitor).work(place.work)) if place.work else ()

    def run(self, place: Place) -> Run | None:
        """The last run that was started here, if the engine still knows it."""
        return self._studio.engine.run(place.run) if place.run else None


def _steps_so_far(run: Run | None) -> dict[int, show.Json]:
    """What the cells of a run show at this moment."""
    steps: dict[int, show.Json] = {}
    for event in run.next_events(0)[0] if run is not None else ():
        show.note_step(steps, event)
    return steps


def is_on_stage(run: Run, place: Place) -> bool:
    """Tell whether a run makes the round on the stage."""
    return run.jobs[0].lineage.round_id == place.round


def _work_of(run: Run) -> str:
    return run.jobs[0].lineage.work_id
