"""Which event of which component calls which handler: the only place with `.click` and `.load`.

Everything here is private; the public functions are in api.py. An event shows a page; how its run
goes then comes by a stream of our own (stream.py). Short answers do not wait in Gradio's queue:
what takes long is the engine's, and has a fair queue there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, get_args

import gradio as gr

from seedgrid.core.errors import SeedGridError
from seedgrid.core.recipe import DType
from seedgrid.core.request import STRONG, SUBTLE
from seedgrid.web.actions.checks import Checks
from seedgrid.web.actions.form import AUTO, Asked, read_asked, read_varied
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.components.layout import View
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.server.waiting import network_of
from seedgrid.web.state.model_options import Offer
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.texts import choose_language, say

Updates = tuple[object, ...]
Trigger = Callable[..., Any]

PRIVATE: Final[dict[str, Any]] = {
    "api_visibility": "private",
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "multiple",
    "queue": False,
}
_QUEUED: Final = PRIVATE | {"queue": True}
"""For answers that come in pieces."""

_LEVELS: Final = ("strict", "seeded", "off")
# The pick is the browser's: what is ringed when the button is pressed is what is refined.
_PICK_JS: Final = "(state) => [SeedGrid.withPick(state)]"


def wire(
    view: View, handlers: Handlers, checks: Checks, demo: gr.Blocks, *, language: str | None
) -> gr.events.Dependency:
    """Connect the components with the handlers.

    Args:
        view: The components.
        handlers: What answers on stage, rail and card.
        checks: What answers the Verify button.
        demo: The page, for its load event.
        language: The page's language; None leaves it to the browser.

    Returns:
        The event after which the settings hold what the model starts with.
    """
    _wire_rounds(view, handlers, demo)
    _wire_card(view, handlers, checks)
    return _wire_settings(view, handlers, demo, language)


def _wire_rounds(view: View, handlers: Handlers, demo: gr.Blocks) -> None:
    """Connect what starts a run or goes to another place."""

    def on_load(kept: object) -> Updates:
        return updates(handlers.on_load(kept))

    def on_generate(kept: object, payload: object, request: gr.Request) -> Updates:
        return updates(handlers.on_generate(read_asked(payload), kept, address_of(request)))

    def on_refine(kept: object, payload: object, request: gr.Request) -> Updates:
        varied = read_varied(payload)
        address = address_of(request)
        return updates(handlers.on_refine(varied.vary, varied.device, kept, address))

    def on_subtle(kept: object, payload: object, request: gr.Request) -> Updates:
        device, address = read_varied(payload).device, address_of(request)
        return updates(handlers.on_variations(SUBTLE, device, kept, address))

    def on_strong(kept: object, payload: object, request: gr.Request) -> Updates:
        device, address = read_varied(payload).device, address_of(request)
        return updates(handlers.on_variations(STRONG, device, kept, address))

    def on_back(kept: object) -> Updates:
        return updates(handlers.on_back(kept))

    def on_again(kept: object, request: gr.Request) -> Updates:
        return updates(handlers.on_again(kept, address_of(request)))

    def on_go(kept: object, event: gr.EventData) -> Updates:
        return updates(handlers.on_go(event._data.get("round"), kept))

    show = partial(show_page, view)
    device = {"device": view.settings.device}
    generate = partial(
        gr.on,
        [view.bar.generate.click, view.bar.prompt.submit, view.bar.seeds.submit],
        js=_fields_js(_asked(view)),
    )
    refine = partial(view.card.refine.click, js=_fields_js(device | {"vary": view.card.vary}))
    show(demo.load, on_load)
    show(generate, on_generate, view.payload)
    show(refine, on_refine, view.payload)
    for button, handler in ((view.card.subtle, on_subtle), (view.card.strong, on_strong)):
        show(partial(button.click, js=_fields_js(device)), handler, view.payload)
    show(view.back.click, on_back)
    show(view.rail.go, on_go)
    show(view.again.click, on_again)


def show_page(
    view: View,
    trigger: Trigger,
    handler: Callable[..., Updates],
    *inputs: object,
    also: Sequence[object] = (),
) -> None:
    """Show the page that a handler answers with; the stage then follows its run.

    Args:
        view: The components.
        trigger: The event.
        handler: Answers with values for page state and payload, and for `also`.
        *inputs: What it is told beside the page state.
        also: More components that it fills.
    """
    shown = [view.state, view.payload, *also]
    trigger(handler, [view.state, *inputs], shown, **PRIVATE)


def _wire_card(view: View, handlers: Handlers, checks: Checks) -> None:
    """Connect what starts no round and goes nowhere."""

    def on_stop(kept: object) -> None:
        handlers.on_stop(kept)
        checks.stop(read_page_state(kept).visitor)

    def on_pick(kept: object, event: gr.EventData) -> Updates:
        return _card(handlers.on_pick(event._data.get("id"), kept))

    def on_favourite(kept: object, event: gr.EventData) -> Updates:
        data = event._data
        return _card(handlers.on_favourite(data.get("id"), data.get("favourite"), kept))

    async def on_verify(kept: object, request: gr.Request) -> AsyncIterator[object]:
        picked, address = read_page_state(kept).picked, address_of(request)
        async for news in checks.on_verify(picked, kept, address):
            yield news

    card = [view.status, view.card.picked]
    view.card.verify.click(on_verify, view.state, view.card.verdict, js=_PICK_JS, **_QUEUED)
    view.bar.stop.click(on_stop, view.state, None, **PRIVATE)
    view.stage.pick(on_pick, view.state, card, **PRIVATE)
    view.card.picked.favourite(on_favourite, view.state, card, **PRIVATE)


def _wire_settings(
    view: View, handlers: Handlers, demo: gr.Blocks, language: str | None
) -> gr.events.Dependency:
    """Connect what a model offers: at the start, when another is chosen, and with Turbo."""

    def words_of(request: gr.Request) -> str:
        wishes = (language, request.query_params.get("__lang"))
        return choose_language(*wishes, request.headers.get("accept-language"))

    def on_model(kept: object, model: str | None, turbo: bool, request: gr.Request) -> Updates:
        try:
            offer = handlers.offer(model, turbo=turbo)
        except SeedGridError as error:
            status = stage.complain(read_page_state(kept).move().epoch, error)
            return status, *[gr.skip() for _ in offered[1:]]
        return gr.skip(), *_answers(offer, words_of(request)), *_offer(offer, words_of(request))

    def on_turbo(
        model: str | None, turbo: bool, scheduler: str, dtype: str, request: gr.Request
    ) -> Updates:
        try:
            offer = handlers.offer(model, turbo=turbo)
        except SeedGridError:  # Generate says what is wrong with the model.
            return tuple(gr.skip() for _ in answered)
        return _answers(offer, words_of(request), scheduler=scheduler, dtype=dtype)

    settings = view.settings
    answered = [settings.steps, settings.scheduler, settings.dtype]
    offered = [
        view.status,
        *answered,
        view.bar.hints,
        settings.guidance,
        settings.size,
        settings.determinism,
        settings.model,
        settings.device,
    ]
    asked = [view.state, settings.model, settings.turbo]
    settings.turbo.input(on_turbo, [*asked[1:], *answered[1:]], answered, **PRIVATE)
    settings.model.input(on_model, asked, offered, **PRIVATE)
    return demo.load(on_model, asked, offered, **PRIVATE)


def _answers(offer: Offer, language: str, *, scheduler: str = AUTO, dtype: str = AUTO) -> Updates:
    """Values for steps, scheduler and number format: what an open one gets is its hint."""
    auto = say("choice_auto", language)
    schedulers = [(f"{auto} ({offer.answers.scheduler})", AUTO), *offer.card.schedulers]
    formats = [(f"{auto} ({offer.answers.dtype})", AUTO), *get_args(DType)]
    return (
        gr.update(placeholder=str(offer.answers.num_inference_steps)),
        gr.update(choices=schedulers, value=scheduler),
        gr.update(choices=formats, value=dtype),
    )


def _offer(offer: Offer, language: str) -> Updates:
    """Values for hints and the other settings."""
    card = offer.card
    levels = [(say(f"determinism_{level}", language), level) for level in _LEVELS]
    auto = say("choice_auto", language)
    devices = [(auto, name) if name == AUTO else (name, name) for name in offer.devices]
    return (
        {kind: list(words) for kind, words in card.hints.items()},
        gr.update(placeholder=f"{card.guidance_scale:g}"),
        gr.update(placeholder=f"{card.width}x{card.height}"),
        gr.update(choices=levels, value=_LEVELS[0]),
        gr.update(choices=list(offer.models), value=offer.card.ref.id),
        gr.update(choices=devices, value=offer.devices[0]),
    )


def updates(update: PageUpdate) -> Updates:
    """Values for the page state, and for the payload with all that is shown there.

    One payload, and as a text: Gradio copies every leaf of every value several times, which took
    longer than a known grid takes to be found.
    """
    parts = {name: value for name, value in vars(update).items() if value is not None}
    state = parts.pop("state", None)
    payload = json.dumps(parts, ensure_ascii=False) if parts else None
    return or_skip(None if state is None else state.to_browser()), or_skip(payload)


def _card(update: PageUpdate) -> Updates:
    return or_skip(update.status), or_skip(update.picked)


def address_of(request: gr.Request) -> str:
    """Where from somebody asks; behind a proxy what the proxy says, where it is trusted."""
    return network_of(request.client.host if request.client else None)


def or_skip(value: object) -> object:
    """Leave a component as it is when there is nothing to say."""
    return gr.skip() if value is None else value


def _fields_js(components: Mapping[str, gr.Component | Sequence[gr.Component]]) -> str:
    """A script that sends what the fields show at the click, as a payload.

    Gradio's own copy of a value may lag behind a quick hand by a tick.
    """
    ids = {
        name: [each.elem_id for each in found] if isinstance(found, Sequence) else found.elem_id
        for name, found in components.items()
    }
    return f"(state) => [SeedGrid.withPick(state), SeedGrid.seen({json.dumps(ids)})]"


def _asked(view: View) -> dict[str, gr.Component]:
    """The components behind the fields of `Asked`."""
    return {field.name: fields_by_name(view)[field.name] for field in fields(Asked)}


def fields_by_name(view: View) -> dict[str, gr.Component]:
    """Return the components behind the fields of `Asked`, by name."""
    return {"prompt": view.bar.prompt, "seeds": view.bar.seeds} | vars(view.settings)
