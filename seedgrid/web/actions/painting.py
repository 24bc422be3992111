"""What happens on each click, key and load: values in, values out. Knows no component.

A handler has the studio start a run, or moves to another place in the tree, and shows the page;
following.py then tells how the run goes. Runs belong to the engine: a closed tab loses nothing.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from seedgrid.core.errors import PictureError, SeedGridError
from seedgrid.core.events import Loading, Noise, Started
from seedgrid.core.picture import Entry
from seedgrid.core.request import Request
from seedgrid.engine import Run
from seedgrid.formats.links import read_link
from seedgrid.studio import RunOptions
from seedgrid.web.actions.arrivals import find_place, pick_of, read_arrival
from seedgrid.web.actions.following import Following
from seedgrid.web.actions.form import (
    FormPayload,
    RoundPayload,
    read_placement,
    read_prompts,
    read_request,
    read_what_can_be,
)
from seedgrid.web.actions.hindered import says_what_hinders
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.serializers.place import write_fields
from seedgrid.web.state.model_options import Offer, offer
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.state.snapshot import Snapshot

_AT_ONCE_S: Final = 0.1
"""How long a click waits to hear whether the library knows the pictures; a grid takes longer."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_NOISE_S: Final = 0.02
"""How much longer it waits for the noise, which comes first of all, to show it with the answer."""


class Handlers(Following):
    """The page's answers. Safe from any thread: all state is in the page state and the library."""

    @says_what_hinders
    def on_load(self, kept: object, said: object = None, address: str = "") -> PageUpdate:
        """Open the page at its address, or where this browser left it."""
        arrival = read_arrival(said)
        here = self._snapshots.of(read_page_state(kept).move(), address)
        found = find_place(here, arrival.place) if arrival.place else None
        if found is not None:
            return found.show()
        if arrival.link:
            return self._open_link(here, arrival.link)
        is_unknown = arrival.place is not None
        if is_unknown or arrival.start or not (here.state.work and (here.rounds or here.run)):
            here = here.moved(work=None, round=None, picked=None, run=None)
        shown = here.show()
        return _say(shown, "place_unknown") if is_unknown else shown

    def _open_link(self, here: Snapshot, link: str) -> PageUpdate:
        """Fill in what a link asks for: a click must say that it is wanted."""
        empty = here.moved(work=None, round=None, picked=None, run=None)
        try:
            request = read_link(link)
        except SeedGridError as error:
            return replace(empty.show(), status=stage.complain(empty.state.epoch, error))
        if request is None:
            return empty.show()
        return replace(_say(empty.show(), "link_ready"), fields=write_fields(request))

    @says_what_hinders
    def on_generate(self, asked: FormPayload, kept: object, address: str = "") -> PageUpdate:
        """Start a new work: one prompt or several, each on every seed."""
        here = self._look(kept, address)

        def start() -> Run:
            request = read_request(asked)
            _check_start(request, here)
            prompts = read_prompts(asked, request)
            options = self._options(here, asked, address)
            return self._studio.start_grid(request, prompts, turbo=asked.turbo, **options)

        return self._start(here, start)

    @says_what_hinders
    def on_refine(self, varied: RoundPayload, kept: object, address: str = "") -> PageUpdate:
        """Start a round on the picked picture's seed: its prompt with each suffix."""
        start = partial(self._studio.start_refine, suffixes=varied.vary, hold=varied.hold)
        return self._start_from_pick(varied, kept, address, start)

    @says_what_hinders
    def on_variations(
        self, weight: float, varied: RoundPayload, kept: object, address: str = ""
    ) -> PageUpdate:
        """Start a round around the picked picture's noise: its words stay as they are."""
        start = partial(self._studio.start_variations, weight=weight)
        return self._start_from_pick(varied, kept, address, start)

    @says_what_hinders
    def on_final(
        self, scale: int, varied: RoundPayload, kept: object, address: str = ""
    ) -> PageUpdate:
        """Start the large finals of the picked picture; a network is named, never a path."""
        named = varied.upscaler
        network = self._studio.model_manager.find_upscaler(named).id if named else None
        start = partial(self._studio.start_final, scale=scale, upscaler=network)
        return self._start_from_pick(varied, kept, address, start)

    @says_what_hinders
    def on_again(self, kept: object, address: str = "") -> PageUpdate:
        """Make the round on the stage once more, though the library remembers its pictures."""
        here = self._look(kept, address)

        def start() -> Run | None:
            if here.round is None:
                return None
            parent = here.find(here.round.parent_id)
            options = self._options(here, RoundPayload(), address)
            return self._studio.start_again(here.round.entries, parent, **options)

        return self._start(here, start)

    def on_stop(self, kept: object) -> None:
        """Ask this browser's run to stop; whoever follows it sees it end, and cannot end it."""
        state = read_page_state(kept)
        run = self._studio.run(state.run) if state.run else None
        if run is not None and run.owner == state.visitor:
            run.cancel()

    def on_pick(self, picture_id: object, kept: object) -> PageUpdate:
        """Put a picture into the card; without one, the parent of the round if it has any."""

        def find(here: Snapshot) -> Entry | None:
            return here.find(str(picture_id) if picture_id is not None else here.parent_of_stage)

        return self._show_card(kept, find)

    @says_what_hinders
    def on_go(self, round_id: object, kept: object) -> PageUpdate:
        """Go to a round of this work."""
        here = self._look(kept)
        wanted = next((each for each in here.rounds if each.id == round_id), None)
        if wanted is None and here.run is not None:
            lineage = here.run.lineage
            if lineage.round_id != round_id:
                return PageUpdate()
            return here.moved(round=lineage.round_id, picked=lineage.parent_id).show()
        if wanted is None:
            return PageUpdate()
        return here.moved(round=wanted.id, picked=pick_of(wanted, here.rounds)).show()

    @says_what_hinders
    def on_back(self, kept: object) -> PageUpdate:
        """Go to the round before, with the picture picked that was gone on from."""
        here = self._look(kept)
        parent = here.find(here.parent_of_stage)
        if parent is None:
            return PageUpdate()
        return here.moved(round=parent.lineage.round_id, picked=parent.id).show()

    def on_favourite(self, picture_id: object, favourite: object, kept: object) -> PageUpdate:
        """Mark a picture as a favourite, or not."""

        def mark(here: Snapshot) -> Entry:
            return here.library.set_favourite(str(picture_id), bool(favourite))

        return self._show_card(kept, mark)

    def advise(self, asked: FormPayload, varied: RoundPayload, language: str) -> PageUpdate:
        """Say at the fields what is to know of them before anything is painted."""
        request = read_what_can_be(asked)
        try:
            told = self._studio.advise(request, suffixes=varied.vary, language=language)
        except SeedGridError:  # Generate says what is wrong with the model.
            told = ()
        return PageUpdate(advice=[{"field": a.field} | stage.notice(a.notice) for a in told])

    def offer(self, model: str | None, *, turbo: bool = False) -> Offer:
        """Say what the settings offer with a model."""
        return offer(self._studio, model, turbo=turbo)

    def _show_card(self, kept: object, find: Callable[[Snapshot], Entry | None]) -> PageUpdate:
        """Put a picture into the card, or say what hinders, which news of a run may cover."""
        state = read_page_state(kept)
        try:
            here = self._snapshots.of(state)
            return PageUpdate(picked=here.card(find(here)))
        except SeedGridError as error:
            return PageUpdate(status=stage.complain(state.epoch, error))

    def _look(self, kept: object, address: str = "") -> Snapshot:
        return self._snapshots.of(read_page_state(kept), address)

    def _start_from_pick(
        self,
        varied: RoundPayload,
        kept: object,
        address: str,
        start: Callable[..., Run],
    ) -> PageUpdate:
        """Start a round that goes on from the picked picture, if there is one."""
        here = self._look(kept, address)

        def start_round() -> Run | None:
            picked, options = here.picked(), self._options(here, varied, address)
            return start(picked, **options) if picked else None

        return self._start(here, start_round)

    def _start(self, here: Snapshot, start: Callable[[], Run | None]) -> PageUpdate:
        run = start()
        return self._show_run(here, run) if run else PageUpdate()

    def _options(
        self, here: Snapshot, said: FormPayload | RoundPayload, address: str
    ) -> RunOptions:
        return RunOptions(
            owner=here.state.visitor,
            address=address,
            library=here.library,
            placement=replace(self._studio.placement, **read_placement(said)),
        )

    def _show_run(self, before: Snapshot, run: Run) -> PageUpdate:
        """Show the round that has just begun, finished where the library knew its pictures."""
        run.wait_for(Loading, Started, timeout_s=_AT_ONCE_S)
        if run.state == "running":
            run.wait_for(Loading, Noise, timeout_s=_NOISE_S)
        if run.has_ended:
            self._snapshots.lock.consider(run)
        return before.after(run).show(is_asked=True)


def _say(shown: PageUpdate, key: str) -> PageUpdate:
    assert shown.state is not None
    return replace(shown, status=stage.say(shown.state.epoch, key, kind="note"))


def _check_start(request: Request, here: Snapshot) -> None:
    """Refuse a start that this visitor's library does not hold: its digest is no key.

    Raises:
        PictureError: `start_missing`.
    """
    start = request.start or ""
    if _DIGEST.fullmatch(start) and not (here.library.starts / f"{start}.png").is_file():
        raise PictureError("start_missing", value=start[:12])
