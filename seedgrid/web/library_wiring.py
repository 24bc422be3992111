"""The library's events, and what fills in the fields: dropped files and the page's own address.

The other half of wiring.py; nothing here is public either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import gradio as gr

from seedgrid.core.errors import SeedGridError
from seedgrid.core.fields import ON_PAGE
from seedgrid.web.actions.form import write_fields
from seedgrid.web.actions.library import Filled, LibraryActions
from seedgrid.web.components.layout import View
from seedgrid.web.serializers import stage
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.wiring import PRIVATE, Updates, fields_by_name, or_skip, show_page, updates

_FILLED: Final = tuple(row for row in ON_PAGE if row.in_link)
"""What a dropped file or a link fills in."""
_ASK_AGAIN_JS: Final = "() => SeedGrid.askLibrary()"
_CHECK_JS: Final = "(status) => SeedGrid.checkLibrary(status)"


def wire_library(view: View, actions: LibraryActions, offers: gr.events.Dependency) -> None:
    """Connect the library page.

    Args:
        view: The components.
        actions: What answers in the library.
        offers: After it the settings hold what the model starts with.
    """
    _wire_pictures(view, actions)
    _wire_filling(view, actions, offers)


def _wire_pictures(view: View, actions: LibraryActions) -> None:
    def on_search(kept: object, event: gr.EventData) -> object:
        return or_skip(actions.on_search(event._data, kept))

    def on_open(kept: object, event: gr.EventData) -> Updates:
        return updates(actions.on_open(event._data.get("id"), kept))

    def on_trash(kept: object, event: gr.EventData) -> object:
        return _problem(actions.on_trash(event._data, kept), kept)

    def on_empty(kept: object) -> object:
        return _problem(actions.on_empty_trash(kept), kept)

    def on_note(kept: object, event: gr.EventData) -> object:
        data = event._data
        return _problem(actions.on_note(data.get("id"), data.get("note"), kept), kept)

    view.library.search(on_search, view.state, view.library, **PRIVATE)
    show_page(view, view.library.open, on_open)
    thrown = view.library.trash(on_trash, view.state, view.status, **PRIVATE)
    thrown.then(None, view.status, js=_CHECK_JS, api_visibility="private")
    emptied = view.library.empty(on_empty, view.state, view.status, **PRIVATE)
    emptied.then(None, js=_ASK_AGAIN_JS, api_visibility="private")
    view.card.picked.note(on_note, view.state, view.status, **PRIVATE)


def _wire_filling(view: View, actions: LibraryActions, offers: gr.events.Dependency) -> None:
    filled = [fields_by_name(view)[row.name] for row in _FILLED]

    def on_drop(kept: object, files: list[str] | None) -> Updates:
        update, fill = actions.on_drop(files or [], kept)
        status = fill.status if fill.status is not None else update.status
        return *updates(replace(update, status=status)), *_fill(fill), None

    def on_link(kept: object, request: gr.Request) -> Updates:
        fill = actions.on_link(str(request.query_params), kept)
        return *_fill(fill), or_skip(fill.status)

    also = [*filled, view.drop]
    show_page(view, view.drop.upload, on_drop, view.drop, also=also)
    offers.then(on_link, view.state, [*filled, view.status], **PRIVATE)


def _problem(error: SeedGridError | None, kept: object) -> object:
    return gr.skip() if error is None else stage.complain(read_page_state(kept).move().epoch, error)


def _fill(filled: Filled) -> Updates:
    """Values for the fields of `_FILLED`; a choice that nobody made stays as it is."""
    if filled.request is None:
        return tuple(gr.skip() for _ in _FILLED)
    values = write_fields(filled.request)
    return tuple(
        gr.skip() if row.widget == "choice" and not values[row.name] else values[row.name]
        for row in _FILLED
    )
