"""The actions of clicks, keys, loads and typing: each returns what changes on the page.

They start a run or choose the round on the stage; streams.py follows the run. A live run paints the
prompt while the person types: it saves nothing, and ends within a step when its stream is closed.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from fastapi import Body

from seedgrid.core.errors import InputError, SeedGridError
from seedgrid.core.events import Finished, Loading, Missed, Noise, Queued
from seedgrid.core.picture import PictureId
from seedgrid.engine import Run
from seedgrid.formats.links import MAX_CHARACTERS, read_link
from seedgrid.models.shelf import UPSCALERS
from seedgrid.studio import RunOptions
from seedgrid.web.actions.streams import Streams
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.form import (
    FormPayload,
    RoundPayload,
    offered,
    read_placement,
    read_prompts,
    read_region,
    read_request,
    read_valid,
    write_fields,
)
from seedgrid.web.server.waiting import begun, followed
from seedgrid.web.state.page_state import (
    NOBODY,
    Asks,
    Id,
    PageState,
    PageUpdate,
    State,
    reports_errors,
)
from seedgrid.web.state.snapshot import Snapshot

Number = Annotated[int, Body(ge=0)]  # Counts the live requests of a page; each answer repeats it

NUM_LIVE: Final = 4  # How many pictures Live paints at most
_AT_ONCE_S: Final = 0.1  # How long a click waits if the library has all pictures
_NOISE_S: Final = 0.03  # How long it waits otherwise, to show the noise with the answer
# Errors after which the page tries again; `run_cancelled`: the visitor's other page began a run
_PAUSING: Final = ("too_many_runs", "too_many_here", "queue_full", "run_cancelled")


@reports_errors
class PaintingActions(Streams):
    """The page's actions. Safe from any thread: all state is in the page state and the library."""

    def on_load(
        self,
        state: State,
        place: Annotated[PictureId | None, Body()] = None,
        link: Annotated[str, Body(max_length=MAX_CHARACTERS)] = "",
        start: Annotated[bool, Body()] = False,
        offer: Annotated[bool, Body()] = False,
        who: Asks = NOBODY,
    ) -> PageUpdate:
        """Show the page that its address names, or the page as this browser left it.

        `place` is a round or a picture, `link` the query of a link; `start` asks for the page
        without a work, `offer` for the options of the settings.
        """
        snapshot = self._snapshots.of(state.move())
        shown = self._page_at(snapshot, place, link, is_start=start)
        options = self.on_offer(who=who).offer if offer else None
        return replace(shown, offer=options, keyed=not who.has_cookie)

    def _page_at(
        self, snapshot: Snapshot, place: str | None, link: str, *, is_start: bool
    ) -> PageUpdate:
        at_place = _find_place(snapshot, place) if place else None
        if at_place is not None:
            return at_place.show()
        empty = snapshot.moved(work=None, round=None, picked=None, run=None)
        if link:
            return _open_link(empty, link)
        if place:
            status = stage.say(empty.state.epoch, "place_unknown", kind="note")
            return replace(empty.show(), status=status)
        shows_work = snapshot.state.work and (snapshot.rounds or snapshot.run)
        return (snapshot if shows_work and not is_start else empty).show()

    def on_generate(self, fields: FormPayload, state: State) -> PageUpdate:
        """Start a new work: one prompt or several, each on every seed."""
        snapshot = self._snapshots.of(state)
        return self._show_run(snapshot, self._start_grid(snapshot, fields))

    def on_live_generate(
        self, fields: FormPayload, number: Number, state: State
    ) -> AsyncGenerator[PageUpdate, None]:
        """Paint what Generate would, without saving it."""
        start = partial(self._start_grid, fields=fields, live=True)
        return self._paint_live(number, state, start)

    def _start_grid(self, snapshot: Snapshot, fields: FormPayload, *, live: bool = False) -> Run:
        request = read_request(fields)
        prompts = read_prompts(fields, request, self._studio.with_lists)
        num_pictures = len(prompts) * len(request.seeds)
        if live and num_pictures > NUM_LIVE:
            raise InputError("live_many", field="seeds", value=num_pictures, limit=NUM_LIVE)
        options = self._options(snapshot, fields, live=live)
        return self._studio.start_grid(request, prompts, **options)

    def on_refine(self, around: RoundPayload, state: State) -> PageUpdate:
        """Start a round of variations of the picked picture, and of those in `also`."""
        snapshot = self._snapshots.of(state)
        return self._show_run(snapshot, self._refine(snapshot, around))

    def on_live_refine(
        self, around: RoundPayload, number: Number, state: State
    ) -> AsyncGenerator[PageUpdate, None]:
        """Paint what Refine would, without saving it."""
        return self._paint_live(number, state, partial(self._refine, around=around, live=True))

    def _refine(self, snapshot: Snapshot, around: RoundPayload, *, live: bool = False) -> Run:
        picked, options = snapshot.picked(), self._options(snapshot, around, live=live)
        also = [snapshot.library.get(picture_id) for picture_id in around.also]
        region = read_region(around)
        return self._studio.start_refine(
            picked, around.vary, also=also, hold=around.hold, **region, **options
        )

    def on_variations(self, weight: float, around: RoundPayload, state: State) -> PageUpdate:
        """Start a round with noise near the picked picture's, and the same prompt."""
        start = partial(self._studio.start_variations, weight=weight)
        return self._start_from_pick(around, state, start)

    def on_final(self, scale: int, around: RoundPayload, state: State) -> PageUpdate:
        """Start the large finals of the picked picture; an upscaler is given by name, not path."""
        network = UPSCALERS.find(around.upscaler).id if around.upscaler else None
        start = partial(self._studio.start_final, scale=scale, upscaler=network)
        return self._start_from_pick(around, state, start)

    def on_again(self, state: State) -> PageUpdate:
        """Paint the round on the stage again, and compare the pixels."""
        snapshot = self._snapshots.of(state)
        if snapshot.round is None:
            return PageUpdate()
        options = self._options(snapshot, RoundPayload())
        run = self._studio.start_again(snapshot.round.entries, **options)
        return self._show_run(snapshot, run)

    def on_queue(
        self, state: State, stopped: Annotated[str, Body(embed=True, max_length=64)] = ""
    ) -> PageUpdate:
        """Return the visitor's other runs, after stopping the one that `stopped` names, if any."""
        snapshot = self._snapshots.of(state)
        for run in self._studio.engine.active_runs(snapshot.state.visitor):
            if run.id == stopped:
                run.cancel()
        return PageUpdate(queue=snapshot.queue())

    def on_pick(self, picture_id: Id, state: State) -> PageUpdate:
        """Put a picture into the card; without an id, the parent of the round, if it has one."""
        snapshot = self._snapshots.of(state)
        picked = snapshot.find(picture_id or snapshot.parent_of_stage)
        return PageUpdate(picked=snapshot.card(picked))

    def on_go(self, round_id: Id, state: State) -> PageUpdate:
        """Show a round on the stage."""
        snapshot = self._snapshots.of(state)
        at_round = _find_place(snapshot, round_id) if round_id else None
        return at_round.show() if at_round else PageUpdate()

    def on_back(self, state: State) -> PageUpdate:
        """Show the round of the parent, with the parent picked."""
        snapshot = self._snapshots.of(state)
        parent = snapshot.find(snapshot.parent_of_stage)
        if parent is None:
            return PageUpdate()
        return snapshot.moved_to(parent).show()

    def on_favourite(
        self, picture_id: Id, favourite: Annotated[bool, Body()], state: State
    ) -> PageUpdate:
        """Mark or unmark a favourite."""
        snapshot = self._snapshots.of(state)
        marked = snapshot.library.set_favourite(picture_id or "", favourite)
        return PageUpdate(picked=snapshot.card(marked))

    def advise(self, fields: FormPayload, around: RoundPayload, who: Asks = NOBODY) -> PageUpdate:
        """Return notices at the fields, and how long four such pictures take, for Live."""
        request = read_valid(fields)
        four = replace(request, prompt="a picture", seeds=(0,))  # Words do not change the time.
        try:
            advice = self._studio.advise(request, suffixes=around.vary, language=who.language)
            took_s = self._studio.live_seconds(four, NUM_LIVE)
        except SeedGridError:  # Generate says what is wrong with the model.
            advice, took_s = (), None
        notices = [{"field": a.field} | stage.notice(a.notice) for a in advice]
        return PageUpdate(advice=notices, live={"took_s": took_s})

    def on_offer(
        self,
        model: Annotated[str | None, Body(embed=True, max_length=2000)] = None,
        who: Asks = NOBODY,
    ) -> PageUpdate:
        """Return the options of the settings with a model."""
        return PageUpdate(offer=offered(self._studio, model, who.language))

    def _start_from_pick(
        self, around: RoundPayload, state: PageState, start: Callable[..., Run]
    ) -> PageUpdate:
        snapshot = self._snapshots.of(state)
        run = start(snapshot.picked(), **self._options(snapshot, around))
        return self._show_run(snapshot, run)

    def _options(
        self, snapshot: Snapshot, fields: FormPayload | RoundPayload, *, live: bool = False
    ) -> RunOptions:
        return RunOptions(
            owner=snapshot.state.visitor,
            address=snapshot.state.address,
            library=snapshot.library,
            placement=replace(self._studio.placement, **read_placement(fields)),
            live=live,
        )

    def _show_run(self, before: Snapshot, run: Run) -> PageUpdate:
        """Show a run's round; wait a moment for pictures that the library has."""
        run.wait_for(Queued, timeout_s=_AT_ONCE_S)  # Known pictures end a run without a queue.
        if not run.has_ended:
            run.wait_for(Loading, Noise, timeout_s=_NOISE_S)
        if run.has_ended:
            self._snapshots.lock.probe_if_untested(run)
        return before.after(run).show(is_asked=True)

    async def _paint_live(
        self, number: int, state: PageState, start: Callable[[Snapshot], Run]
    ) -> AsyncGenerator[PageUpdate, None]:
        """Yield a live run's pictures and its end; or at once that Live pauses for others."""
        state = state.move()
        answer: stage.Json = {"number": number, "key": "live_paused_queue", "data": {}}
        if self._studio.engine.is_busy_for_others(state.visitor):
            yield PageUpdate(live=answer)
            return
        try:
            run = await begun(lambda: start(self._snapshots.of(state)))
            async with aclosing(followed(run)) as updates:
                async for events in updates:
                    if any(isinstance(event, Finished | Missed) for event in events):
                        shown = stage.stage_of_live(state.epoch, run)
                        yield PageUpdate(stage=shown, live={"number": number})
            run.pictures_or_raise()  # Raises if it was cancelled or failed.
            answer["key"] = "live_shown"
        except SeedGridError as error:
            if error.code not in _PAUSING:
                sentence = stage.complain(0, error)  # Shown at no field: a word may be half typed.
                answer |= {"key": sentence["key"], "data": sentence["data"]}
        yield PageUpdate(live=answer)


def _open_link(empty: Snapshot, link: str) -> PageUpdate:
    """Fill in the fields from a link; nothing is painted before a click."""
    shown, epoch = empty.show(), empty.state.epoch
    try:
        request = read_link(link)
    except SeedGridError as error:
        return replace(shown, status=stage.complain(epoch, error))
    if request is None:
        return shown
    status = stage.say(epoch, "link_ready", kind="note")
    return replace(shown, status=status, fields=write_fields(request))


def _find_place(snapshot: Snapshot, place: str) -> Snapshot | None:
    """Return the page at a picture or a round, by its id; None if there is neither."""
    entry = snapshot.find(place)
    if entry is not None:
        return snapshot.moved_to(entry)
    if place == snapshot.state.round and (snapshot.round or snapshot.run_on_stage):
        return snapshot
    run = snapshot.run_of(place)
    if run is not None:
        lineage = run.lineage
        return snapshot.moved(work=lineage.work_id, round=place, picked=lineage.parent_id)
    entries = snapshot.library.round(place)
    if not entries:
        return None
    at_round = snapshot.moved(work=entries[0].lineage.work_id, round=place, picked=None)
    shown = at_round.round
    if shown is None:
        return at_round
    # The round's picture that was refined last is picked; where none was, the round's parent.
    refined = [each.parent_id for each in at_round.rounds if each.parent_round_id == shown.id]
    return at_round.moved(picked=refined[-1] if refined else shown.parent_id)
