"""Snapshot: a read-only view of one page at one moment, which makes the parts of the page."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError, RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, ask_again
from seedgrid.diffusion.probe_results import ProbeReport, recall_report
from seedgrid.engine import Run
from seedgrid.library import Library
from seedgrid.library.visitor_libraries import VisitorLibraries
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures
from seedgrid.web.serializers import stage as stages
from seedgrid.web.serializers.form import defaults_of, fields_of
from seedgrid.web.serializers.pictures import Round, path_to, rounds_of, without_trashed
from seedgrid.web.state.page_state import PageState, PageUpdate

logger = logging.getLogger(__name__)


class LockBadge:
    """What the page says about the lock, and when the probe runs. Safe from any thread."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._guard = threading.Lock()
        self._probing: Future[ProbeReport | None] | None = None

    def sentence_on(self, entry: Entry) -> stages.Json:
        """Return the sentence on what was tested of the lock for this picture on this machine."""
        if entry.recipe.is_portable:  # A portable picture does not depend on its batch.
            return {"key": "lock_portable", "data": {}}
        if entry.recipe.upscaler is not None:
            return {"key": "lock_alone", "data": {}}
        report = recall_report(entry.recipe, entry.passport)
        if report is None:
            key = "lock_untested_mps" if entry.passport.device == "mps" else "lock_untested"
            return {"key": key, "data": {"asked": entry.recipe.lock_width}}
        if report.holds:
            key = "lock_tested" if report.asked_width > 1 else "lock_repeats"
        else:
            key = "lock_fails" if report.tested_width else "lock_never"
        data = {
            "width": report.tested_width,
            "asked": report.asked_width,
            "steps": report.num_inference_steps,
            "date": report.tested_at[:10],
        }
        return {"key": key, "data": data}

    def probe_if_untested(self, run: Run) -> None:
        """Probe the settings of a finished run, unless they were probed before."""
        entry = next(iter(run.finished.values()), None)
        if run.state != "done" or entry is None:
            return
        recipe = entry.recipe
        needs_none = recipe.is_portable or recipe.upscaler is not None
        if needs_none or recall_report(recipe, entry.passport) is not None:
            return
        # One probe at a time; an engine that is closing refuses it with an error.
        with self._guard, suppress(SeedGridError):
            if self._probing is None or self._probing.done():
                self._probing = self._studio.verifier.probe(recipe, run.placement)
                self._probing.add_done_callback(_log_failure)


def _log_failure(probing: Future[ProbeReport | None]) -> None:
    error = None if probing.cancelled() else probing.exception()
    if error is not None and not isinstance(error, RunCancelled):
        logger.warning("the lock could not be probed: %s", error)


@dataclass(frozen=True)
class OneLibrary:
    """The studio's own library for everybody."""

    studio: Studio

    def of(self, visitor: str, address: str = "") -> Library:  # noqa: ARG002 (everybody's)
        """Return the library of a visitor at an address."""
        return self.studio.library


class Snapshots:
    """Makes snapshots. Safe to use from any thread."""

    def __init__(self, studio: Studio, libraries: OneLibrary | VisitorLibraries) -> None:
        self._studio = studio
        self._libraries = libraries
        self.lock = LockBadge(studio)

    def of(self, state: PageState) -> Snapshot:
        """Return the snapshot of a page by its state."""
        library = self._libraries.of(state.visitor, state.address)
        return Snapshot(state, self._studio, library, self.lock)


class Snapshot:
    """A page at one moment, for one thread; `run` is its last run, if the engine still has it."""

    def __init__(self, state: PageState, studio: Studio, library: Library, lock: LockBadge) -> None:
        self.state = state
        self.library = library
        self._studio = studio
        self._lock = lock
        self._entries: tuple[Entry, ...] | None = None
        run = studio.engine.run(state.run) if state.run else None
        self.run = run if run is not None and run.owner == state.visitor else None
        # Read before the library is, which then has all pictures of a run that is done.
        self._was_done = self.run is not None and self.run.state == "done"

    def moved(self, **changes: str | None) -> Snapshot:
        """Return the page with other ids, and with the run that paints its round, if any."""
        if "run" not in changes and (run := self.run_of(changes.get("round"))) is not None:
            changes["run"] = run.id
        moved = Snapshot(self.state.move(**changes), self._studio, self.library, self._lock)
        if moved.state.work == self.state.work:
            moved._entries = self._entries
        if moved.run is self.run:
            moved._was_done = self._was_done
        return moved

    def moved_to(self, entry: Entry) -> Snapshot:
        """Return the page at a picture's round, with the picture picked."""
        lineage = entry.lineage
        return self.moved(work=lineage.work_id, round=lineage.round_id, picked=entry.id)

    def run_of(self, round_id: str | None) -> Run | None:
        """Return the run of a round: the last one of this page, or another active one."""
        active = self._studio.engine.active_runs(self.state.visitor) if round_id else ()
        last = () if self.run is None else (self.run,)
        return next((run for run in (*last, *active) if run.lineage.round_id == round_id), None)

    def after(self, run: Run) -> Snapshot:
        """Return the page at the round that a run has begun, with its parent in the card."""
        lineage = run.lineage
        moved = self.moved(
            work=lineage.work_id, round=lineage.round_id, picked=lineage.parent_id, run=run.id
        )
        earlier = () if lineage.parent_id is None else moved.entries
        by_id = {entry.id: entry for entry in (*run.finished.values(), *earlier)}
        moved._entries = tuple(by_id.values())
        return moved

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The pictures of this work."""
        if self._entries is None:
            self._entries = self.library.work(self.state.work) if self.state.work else ()
        return self._entries

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of this work."""
        return rounds_of(self.entries)

    @property
    def round(self) -> Round | None:
        """The finished pictures of the round on the stage."""
        return next((each for each in self.rounds if each.id == self.state.round), None)

    @property
    def parent_of_stage(self) -> str | None:
        """The parent of the round on the stage, if it has one."""
        if self.run_on_stage is not None:
            return self.run_on_stage.lineage.parent_id
        path = path_to(self.rounds, self.state.round or "")
        return path[-1].parent_id if path else None

    def picked(self) -> Entry:
        """Return the picked picture; raise `picture_unknown` if none is picked or it is gone."""
        of_work = next((each for each in self.entries if each.id == self.state.picked), None)
        return of_work or self.library.get(self.state.picked or "")

    def find(self, picture_id: str | None) -> Entry | None:
        """Return a picture, or None if there is none. Does not read the whole work."""
        of_work = next((entry for entry in self._entries or () if entry.id == picture_id), None)
        with suppress(InputError):
            return of_work or (self.library.get(picture_id) if picture_id else None)
        return None

    def show(self, *, is_asked: bool = False) -> PageUpdate:
        """Return all parts of the page; no fields if `is_asked`, after a click that began a run."""
        state, run, awaits_updates = self.state, self.run, self._awaits_updates
        steps: dict[int, stages.Json] = {}
        for event in run.next_events(0)[0] if run and awaits_updates else ():
            stages.note_step(steps, event)
        return PageUpdate(
            state=state,
            place=self._place(is_asked=is_asked),
            stage=self.stage(steps) | ({"follow": state.to_browser()} if awaits_updates else {}),
            status=self._status(),
            rail=self.rail(),
            picked=self.card(self.find(state.picked)),
            queue=self.queue(),
        )

    def queue(self) -> list[stages.Json]:
        """The visitor's runs that go on or wait, except the one on the stage."""
        return [
            {
                "run": run.id,
                "words": run.jobs[0].recipe.words,
                "done": len(run.finished),
                "total": len(run.jobs),
            }
            for run in self._studio.engine.active_runs(self.state.visitor)
            if not is_on_stage(run, self.state)
        ]

    def stage(self, steps: Mapping[int, stages.Json]) -> stages.Json:
        """The round on the stage, being painted or finished."""
        state, run = self.state, self.run_on_stage
        if run is not None and not self._was_done:  # After a run, marks are read from the library.
            return stages.stage_of_run(state.epoch, run, steps, picked=state.picked)
        busy = self.run is not None and not self.run.has_ended
        if self.round is None:
            studio = None if busy or state.work else self._studio
            return stages.stage_before_any(state.epoch, studio, busy=busy)
        entries = self.round.entries
        return stages.stage_of_round(state.epoch, entries, picked=state.picked, busy=busy)

    def rail(self) -> stages.Json:
        """The rail of this work, with the round that is being painted."""
        run, work = self.run, self.state.work
        is_forming = run is not None and not run.has_ended and run.lineage.work_id == work
        rounds = without_trashed(self.rounds, self.state.round)
        return {
            "epoch": self.state.epoch,
            "rounds": pictures.rail(rounds, run if is_forming else None),
            "current": self.state.round,
            "has_parent": self.parent_of_stage is not None,
        }

    def card(self, entry: Entry | None) -> stages.Json:
        """The card of a picture, or the empty card."""
        if entry is None:
            return {"id": None}
        parent = self.find(entry.lineage.parent_id)
        hint = None if entry.lineage.round_id == self.state.round else "card_parent"
        model = self._card_of(entry.recipe)
        models = self._studio.model_manager.alike(model, entry.recipe) if model else ()
        card = pictures.card(entry, parent, model, models)
        return card | {"hint": hint, "lock": self._lock.sentence_on(entry)}

    def _place(self, *, is_asked: bool) -> stages.Json:
        """The ids of what the page shows, and what can be done with the round on the stage."""
        on_stage = {entry.id for entry in self.round.entries} if self.round else set()
        picked_on_stage = self.state.picked if self.state.picked in on_stage else None
        card = self._card_of(self._cells[0].recipe if self._cells else None)
        return self.state.to_browser() | {
            "fields": None if is_asked else self._fields(),
            "address": picked_on_stage or self.state.round,
            "asked": is_asked,
            "offers": list(card.offers if card else ()),
            "enlarges": card is None or card.enlarges,
            "upscalers": list(self._studio.model_manager.upscalers(card)),
        }

    @property
    def _cells(self) -> Sequence[pictures.Made]:
        """The round on the stage: the jobs of its run, or its pictures."""
        if (run := self.run_on_stage) is not None:
            return run.round_jobs
        return self.round.entries if self.round else ()

    def _card_of(self, recipe: Recipe | None) -> ModelCard | None:
        """The card of a recipe's model, or of the studio's; None where it is not installed."""
        try:
            return self._studio.card(ask_again(recipe).model if recipe else None)
        except SeedGridError:
            return None

    def _fields(self) -> stages.Json | None:
        """The fields with which this work was begun, and the variations of the stage's round."""
        cells = self._cells
        if not cells:
            return None
        parent = self.find(cells[0].lineage.parent_id)
        path = path_to(self.rounds, parent.lineage.round_id) if parent else ()
        first_recipes = [each.recipe for each in (path[0].entries if path else cells)]
        suffixes = dict.fromkeys(
            change
            for each in cells
            if parent and (change := each.lineage.change) and each.recipe.words.endswith(change)
        )
        defaults: Request | None = None
        with suppress(SeedGridError):  # The model is not installed.
            defaults = defaults_of(self._studio, ask_again(first_recipes[0]).model)
        return fields_of(first_recipes, tuple(suffixes), defaults)

    @property
    def run_on_stage(self) -> Run | None:
        """The page's last run, if it makes the round on the stage; else None."""
        run = self.run
        return run if run is not None and is_on_stage(run, self.state) else None

    @property
    def _awaits_updates(self) -> bool:
        """Whether updates follow: from the run, or on the loading of the model or its failure."""
        if self.run is not None:
            return not self.run.has_ended
        return self._studio.engine.warmth.state in ("loading", "failed")

    def _status(self) -> stages.Json:
        """What the page's run does, or how the stage's run ended; empty if there is neither."""
        run, epoch = self.run if self._awaits_updates else self.run_on_stage, self.state.epoch
        if run is None or run.last_event is None:
            return stages.say(epoch, None)
        return stages.status_of(epoch, run.last_event, run)


def is_on_stage(run: Run, state: PageState) -> bool:
    """Tell whether a run makes the round on the stage."""
    return run.lineage.round_id == state.round
