"""How often a page event reads the library: each row of the work once, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from following import place_of
from gates import GatedBackend

from seedgrid.core.picture import Entry
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.request import Request
from seedgrid.core.variations import SUBTLE
from seedgrid.library import search
from seedgrid.studio import Studio
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.painting import PaintingActions
from seedgrid.web.serializers.form import RoundPayload
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageUpdate

WORDS = RoundPayload(vary=GUIDE_SUFFIXES)
NUM_ROUNDS = 3
NUM_PICTURES = 4 * NUM_ROUNDS

Event = Callable[[PaintingActions, LibraryActions, dict[str, Any]], PageUpdate | None]

EVENTS: dict[str, Event] = {
    "load": lambda handlers, _, place: handlers.on_load(place),
    "back": lambda handlers, _, place: handlers.on_back(place),
    "go": lambda handlers, _, place: handlers.on_go(place.round, place),
    "open": lambda _, actions, place: actions.on_open(place.picked, place),
    "refine": lambda handlers, _, place: handlers.on_refine(WORDS, place),
    "variations": lambda handlers, _, place: handlers.on_variations(SUBTLE, RoundPayload(), place),
    "again": lambda handlers, _, place: handlers.on_again(place),
}


@pytest.fixture
def backend() -> GatedBackend:
    return GatedBackend()


@pytest.fixture
def last(studio: Studio, backend: GatedBackend) -> Iterator[Entry]:
    """A picture of the last round of a work of three rounds; no other is finished beside a test."""
    request = Request(prompt="a fox", width=64, height=64, num_inference_steps=1)
    entries = studio.start_grid(request).result()
    for _ in range(NUM_ROUNDS - 1):
        entries = studio.start_refine(entries[0], GUIDE_SUFFIXES).result()
    backend.may_go.clear()
    yield entries[1]
    backend.may_go.set()


@pytest.fixture
def reads(last: Entry, monkeypatch: pytest.MonkeyPatch) -> list[str]:  # noqa: ARG001 (made before)
    """The ids of the rows that are turned into entries and checked from now on."""
    found: list[str] = []
    real = search.read_entry

    def counted(row: Any, *arguments: Any, **more: Any) -> Entry:
        found.append(row["picture_id"])
        return real(row, *arguments, **more)

    monkeypatch.setattr(search, "read_entry", counted)
    return found


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_reads_the_work_once(
    studio: Studio, last: Entry, reads: list[str], event: str
) -> None:
    """Stage, rail and card are made of one read: it was three, and again one for each picture."""
    services = PageServices(studio)
    update = EVENTS[event](services.handlers, services.library, place_of(last))
    assert update.rail is not None
    # A picture of the library's page is looked up by its id, which alone says what work it is of.
    expected = NUM_PICTURES + (1 if event == "open" else 0)
    assert (len(set(reads)), len(reads)) == (NUM_PICTURES, expected)
