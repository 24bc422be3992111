"""The events of the settings: what a model offers, what a choice costs, advice at the fields.

A part of wiring.py; nothing here is public either.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Final

import gradio as gr

from seedgrid.core.errors import SeedGridError
from seedgrid.core.field import Field
from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.web.actions.form import read_form, read_round
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.components.layout import View
from seedgrid.web.serializers import stage
from seedgrid.web.state.model_options import Offer, offered_words, shapes_of
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.texts import choose_language, say, word
from seedgrid.web.wiring import PRIVATE, QUEUED, Updates, said, updates, when_answered

_OFFERED: Final = tuple(row for row in ON_PAGE if row.widget in ("number", "choice"))
"""The settings that depend on the model."""
_OFFERED_JS: Final = "() => SeedGrid.offered()"
_ADVISED_JS: Final = "() => SeedGrid.advised()"


def wire_settings(view: View, handlers: Handlers, demo: gr.Blocks, *, language: str | None) -> None:
    """Connect what a model offers, at the start and with each choice, and what a choice costs."""

    def words_of(request: gr.Request) -> str:
        wishes = (language, request.query_params.get("__lang"))
        return choose_language(*wishes, request.headers.get("accept-language"))

    def offered_for(
        kept: object,
        model: str | None,
        turbo: bool,
        language: str,
        wanted: Mapping[str, object],
        *,
        is_shown: bool = False,
    ) -> Updates:
        try:
            offer = handlers.offer(model, turbo=turbo)
        except SeedGridError as error:
            status = stage.complain(read_page_state(kept).move().epoch, error)
            return status, *[gr.skip() for _ in offered[1:]]
        hints = offered_words(offer.card, language)
        return (
            gr.skip(),
            hints,
            shapes_of(offer.card),
            *_offer(offer, language, wanted, is_shown=is_shown),
        )

    def on_model(
        kept: object, model: str | None, turbo: bool, request: gr.Request, *shown: object
    ) -> Updates:
        chosen = {row.name: value for row, value in zip(lists, shown, strict=True)}
        return offered_for(kept, model, turbo, words_of(request), chosen, is_shown=True)

    def on_choose(kept: object, turbo: bool, event: gr.EventData, request: gr.Request) -> Updates:
        wanted = {row.name: str(said(event, row.name) or "") for row in _OFFERED}
        return offered_for(kept, wanted["model"] or None, turbo, words_of(request), wanted)

    def on_advise(event: gr.EventData, request: gr.Request) -> object:
        asked, varied = read_form(said(event, "fields")), read_round(said(event, "vary"))
        update = handlers.advise(asked, varied, words_of(request))
        return updates(update)[1]

    def on_turbo(model: str | None, turbo: bool, request: gr.Request) -> Updates:
        try:
            offer = handlers.offer(model, turbo=turbo)
        except SeedGridError:  # Generate says what is wrong with the model.
            return tuple(gr.skip() for _ in _OFFERED)
        return _offer(offer, words_of(request), None)

    async def on_portable(
        model: str | None, is_on: bool, request: gr.Request
    ) -> AsyncIterator[object]:
        language = words_of(request)
        with suppress(SeedGridError):  # Generate says what is wrong with the model.
            if is_on:
                async for key, data in handlers.portable_news(model):
                    yield gr.update(info=say(key, language).format(**data))

    lists = [row for row in _OFFERED if row.widget == "choice"]
    settings = [view.settings[row.name] for row in _OFFERED]
    offered = [view.status, view.bar.hints, view.shapes, *settings]
    model, turbo = view.settings["model"], view.settings["turbo"]
    asked = [view.state, model, turbo, *(view.settings[row.name] for row in lists)]
    portable = view.settings["portable"]
    portable.change(on_portable, [model, portable], portable, **QUEUED)
    turbo.input(on_turbo, [model, turbo], settings, **PRIVATE)
    model.input(on_model, asked, offered, **PRIVATE)
    advised = view.payload.advise(on_advise, None, view.payload, **PRIVATE)
    when_answered(advised, js=_ADVISED_JS)
    view.payload.choose(on_choose, [view.state, turbo], offered, **PRIVATE)
    first = demo.load(on_model, asked, offered, **PRIVATE)
    when_answered(first, js=_OFFERED_JS)


def _offer(
    offer: Offer, language: str, wanted: Mapping[str, object] | None, *, is_shown: bool = False
) -> Updates:
    """Values for the settings: what can be chosen, and as a hint what an open one gets.

    Args:
        offer: What the model and this machine offer.
        language: Of the words in the lists.
        wanted: What shall be chosen, where it is offered; None leaves the lists as they are.
        is_shown: Whether the lists show that already. What is offered still is then not written
            again: a hand may have chosen something else meanwhile.
    """
    return tuple(
        _list(row, offer, language, wanted, is_shown=is_shown)
        if row.widget == "choice"
        else gr.update(placeholder=row.text(offer.answers))
        for row in _OFFERED
    )


def _list(
    row: Field,
    offer: Offer,
    language: str,
    wanted: Mapping[str, object] | None,
    *,
    is_shown: bool,
) -> object:
    choices = [
        (word(f"{row.name}_choice_{name}", language) or name, name)
        for name in offer.choices[row.name]
    ]
    if row.has_auto:
        auto = say("choice_auto", language)
        choices = [(f"{auto} ({row.text(offer.answers)})", AUTO), *choices]
    if wanted is None:
        return gr.update(choices=choices)
    is_there = wanted.get(row.name) in [name for _, name in choices]
    if is_there and is_shown:
        return gr.update(choices=choices)
    usual = offer.chosen.get(row.name, choices[0][1])
    return gr.update(choices=choices, value=wanted[row.name] if is_there else usual)
