"""The library's events, and dropped files.

A part of wiring.py; nothing here is public either.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import gradio as gr

from seedgrid.core.errors import SeedGridError
from seedgrid.core.request import Request
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.selected import Outcome, Selected
from seedgrid.web.components.layout import View
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.serializers.place import write_fields
from seedgrid.web.server.file_work import FileWork
from seedgrid.web.server.uploads import taken_in
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.wiring import (
    PRIVATE,
    Updates,
    address_of,
    or_skip,
    said,
    show_page,
    updates,
    when_answered,
)

_FOUND_JS: Final = "() => SeedGrid.libraryAnswered?.()"
_NOT_FOUND_JS: Final = "() => SeedGrid.libraryRefused?.()"
_EMPTIED_JS: Final = "() => { SeedGrid.libraryAnswered?.(); SeedGrid.askLibrary?.(); }"
_DROP_JS: Final = "(state, files) => SeedGrid.turn(state, {}, files)"
_CHECK_JS: Final = "(status) => SeedGrid.checkLibrary?.(status)"
_UNCHANGED_JS: Final = "() => SeedGrid.checkLibrary?.({ kind: 'error' })"


def wire_library(
    view: View, actions: LibraryActions, selected: Selected, file_work: FileWork
) -> None:
    """Connect the library page, its selection, and the place where files are dropped."""
    _wire_selected(view, selected)
    _wire_pictures(view, actions)
    _wire_drop(view, actions, file_work)


def _wire_pictures(view: View, actions: LibraryActions) -> None:
    def on_search(kept: object, event: gr.EventData) -> Updates:
        try:
            answer = actions.on_search(said(event, "asked"), kept)
        except SeedGridError as error:
            return _problem(error, kept), gr.skip()
        return gr.skip(), or_skip(answer)

    def on_open(kept: object, event: gr.EventData) -> Updates:
        return updates(actions.on_open(said(event, "id"), kept))

    def on_example(kept: object, event: gr.EventData) -> Updates:
        return updates(actions.on_example(said(event, "example"), kept))

    def on_empty(kept: object) -> object:
        return _problem(actions.on_empty_trash(kept), kept)

    def on_note(kept: object, event: gr.EventData) -> object:
        return _problem(actions.on_note(said(event, "id"), said(event, "note"), kept), kept)

    found = view.library.search(on_search, view.state, [view.status, view.library], **PRIVATE)
    when_answered(found, js=_FOUND_JS, refused_js=_NOT_FOUND_JS)
    show_page(view, view.library.open, on_open)
    show_page(view, view.stage.example, on_example)
    emptied = view.library.empty(on_empty, view.state, view.status, **PRIVATE)
    when_answered(emptied, js=_EMPTIED_JS)

    def on_folder(kept: object, event: gr.EventData, request: gr.Request) -> object:
        host = request.client.host if request.client else ""
        return or_skip(actions.on_folder(said(event, "folder"), kept, host))

    view.status.folder(on_folder, view.state, view.status, **PRIVATE)
    view.card.picked.note(on_note, view.state, view.status, **PRIVATE)


def _wire_selected(view: View, selected: Selected) -> None:
    def on_trash(kept: object, event: gr.EventData) -> Updates:
        return _outcome(selected.on_trash(said(event, "asked"), kept))

    def on_mark(kept: object, event: gr.EventData) -> Updates:
        return _outcome(selected.on_mark(said(event, "asked"), kept))

    parts = [view.status, view.library]
    for event, answer in ((view.library.trash, on_trash), (view.library.mark, on_mark)):
        done = event(answer, view.state, parts, **PRIVATE)
        done.then(None, view.status, js=_CHECK_JS, api_visibility="private")
        done.failure(None, js=_UNCHANGED_JS, api_visibility="private")


def _wire_drop(view: View, actions: LibraryActions, file_work: FileWork) -> None:
    async def on_drop(kept: object, files: list[str] | None, request: gr.Request) -> Updates:
        named, most = files or [], file_work.bounds.dropped
        try:
            address = address_of(request)
            update, filled = await file_work.do(
                address, lambda: actions.on_drop(named, kept, most, address)
            )
        except SeedGridError as error:
            for file in named:
                taken_in(Path(file))
            epoch = read_page_state(kept).move().epoch
            return *updates(PageUpdate(status=stage.complain(epoch, error))), None
        status = update.status if filled.status is None else filled.status
        begun = {"start": filled.start} if filled.start else None
        fields = begun if filled.request is None else _beside_the_model(filled.request)
        return *updates(replace(update, status=status, fields=fields)), None

    show_page(view, view.drop.upload, on_drop, view.drop, also=[view.drop], js=_DROP_JS)


def _beside_the_model(request: Request) -> dict[str, str | bool]:
    """Return the fields for another tool's request: it names no model of ours, so that stays."""
    return {name: value for name, value in write_fields(request).items() if name != "model"}


def _outcome(outcome: Outcome) -> Updates:
    return or_skip(outcome.status), or_skip(outcome.answer)


def _problem(error: SeedGridError | None, kept: object) -> object:
    return gr.skip() if error is None else stage.complain(read_page_state(kept).move().epoch, error)
