"""Which event of which component calls which handler; settings and library have files beside.

Everything here is private; the public functions are in api.py. An event shows a page; how its run
goes then comes by a stream of our own (stream.py). Short answers do not wait in Gradio's queue:
what takes long is the engine's, and has a fair queue there.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import gradio as gr

from seedgrid.core.fields import ON_PAGE
from seedgrid.core.request import STRONG, SUBTLE
from seedgrid.web.actions.checks import Checks
from seedgrid.web.actions.form import RoundPayload, read_form, read_round
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.components.layout import View
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.server.waiting import network_of
from seedgrid.web.state.page_state import read_page_state

Updates = tuple[object, ...]
Trigger = Callable[..., Any]

PRIVATE: Final[dict[str, Any]] = {
    "api_visibility": "private",
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "multiple",
    "queue": False,
}
QUEUED: Final = PRIVATE | {"queue": True}
"""For answers that come in pieces."""

# A browser's questions in turns: each begins where the answer before it led (assets/turns.js).
_TURN_JS: Final = "(state) => SeedGrid.turn(state)"
_ARRIVING_JS: Final = "(state) => SeedGrid.turn(...SeedGrid.arriving(state))"
_ANSWERED_JS: Final = "() => SeedGrid.answered()"
# The pick is the browser's: what is ringed when the button is pressed is what is refined.
_PICK_JS: Final = "(state) => [SeedGrid.withPick(state)]"


def wire(view: View, handlers: Handlers, checks: Checks, demo: gr.Blocks) -> None:
    """Connect stage, rail and card with what answers there; `demo` is the page that loads."""
    _wire_rounds(view, handlers, demo)
    _wire_card(view, handlers, checks)


def _wire_rounds(view: View, handlers: Handlers, demo: gr.Blocks) -> None:
    """Connect what starts a run or goes to another place."""

    def on_load(kept: object, said: object, request: gr.Request) -> Updates:
        return updates(handlers.on_load(kept, said, address_of(request)))

    def on_arrive(kept: object, event: gr.EventData, request: gr.Request) -> Updates:
        return updates(handlers.on_load(kept, said(event, "said"), address_of(request)))

    def on_generate(kept: object, payload: object, request: gr.Request) -> Updates:
        return updates(handlers.on_generate(read_form(payload), kept, address_of(request)))

    def of_pick(start: Callable[[RoundPayload, object, str], PageUpdate]) -> Callable[..., Updates]:
        def on_click(kept: object, payload: object, request: gr.Request) -> Updates:
            return updates(start(read_round(payload), kept, address_of(request)))

        return on_click

    def on_back(kept: object) -> Updates:
        return updates(handlers.on_back(kept))

    def on_again(kept: object, request: gr.Request) -> Updates:
        return updates(handlers.on_again(kept, address_of(request)))

    def on_go(kept: object, event: gr.EventData) -> Updates:
        return updates(handlers.on_go(said(event, "round"), kept))

    show = partial(show_page, view)
    placed = {row.name: view.settings[row.name] for row in ON_PAGE if row.belongs == "placement"}
    sent = [view.bar.generate.click, view.bar.prompt.submit, view.bar.seeds.submit]
    fields_js = _fields_js(fields_by_name(view))
    refine_js = _fields_js(placed | {"vary": view.card.vary})
    show(demo.load, on_load, view.payload, js=_ARRIVING_JS)
    show(view.payload.arrive, on_arrive)
    show(partial(gr.on, sent), on_generate, view.payload, js=fields_js)
    show(view.card.refine.click, of_pick(handlers.on_refine), view.payload, js=refine_js)
    for button, start in (
        (view.card.subtle, partial(handlers.on_variations, SUBTLE)),
        (view.card.strong, partial(handlers.on_variations, STRONG)),
        (view.card.double, partial(handlers.on_final, 2)),
        (view.card.fourfold, partial(handlers.on_final, 4)),
    ):
        js = _fields_js(placed, upscaler="sg-upscaler")
        show(button.click, of_pick(start), view.payload, js=js)
    show(view.back.click, on_back)
    show(view.rail.go, on_go)
    show(view.again.click, on_again)


def show_page(
    view: View,
    trigger: Trigger,
    handler: Callable[..., Updates | Awaitable[Updates]],
    *inputs: object,
    also: Sequence[object] = (),
    js: str = _TURN_JS,
) -> None:
    """Show the page that a handler answers with; the stage then follows its run.

    A browser asks one such question at a time: of two that overlap, the second would begin at a
    place that the first has left, and the answer that comes last would win.

    Args:
        view: The components.
        trigger: The event.
        handler: Answers with values for page state and payload, and for `also`.
        *inputs: What it is told beside the page state.
        also: More components that it fills.
        js: Takes the turn, and says what the handler is told.
    """
    shown = [view.state, view.payload, *also]
    answered = trigger(handler, [view.state, *inputs], shown, js=js, **PRIVATE)
    when_answered(answered, js=_ANSWERED_JS)


def when_answered(asked: Any, js: str, refused_js: str = "") -> None:  # noqa: ANN401 (made by Gradio)
    """Run a script of the page when a question has its answer, and also when it gets none.

    Gradio's `then` follows answers alone: a request that was refused (HTTP 413, 429, 500), or
    whose handler failed, is followed by `failure`.
    """
    asked.then(None, js=js, api_visibility="private")
    asked.failure(None, js=refused_js or js, api_visibility="private")


def _wire_card(view: View, handlers: Handlers, checks: Checks) -> None:
    """Connect what starts no round and goes nowhere."""

    def on_stop(kept: object) -> None:
        handlers.on_stop(kept)
        checks.stop(read_page_state(kept).visitor)

    def on_pick(kept: object, event: gr.EventData) -> Updates:
        return _card(handlers.on_pick(said(event, "id"), kept))

    def on_favourite(kept: object, event: gr.EventData) -> Updates:
        picture_id, favourite = said(event, "id"), said(event, "favourite")
        return _card(handlers.on_favourite(picture_id, favourite, kept))

    async def on_verify(kept: object, request: gr.Request) -> AsyncIterator[object]:
        picked, address = read_page_state(kept).picked, address_of(request)
        async for news in checks.on_verify(picked, kept, address):
            yield news

    card = [view.status, view.card.picked]
    view.card.verify.click(on_verify, view.state, view.card.verdict, js=_PICK_JS, **QUEUED)
    view.bar.stop.click(on_stop, view.state, None, **PRIVATE)
    view.stage.pick(on_pick, view.state, card, **PRIVATE)
    view.card.picked.favourite(on_favourite, view.state, card, **PRIVATE)


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


def said(event: gr.EventData, name: str) -> Any:  # noqa: ANN401 (what a script of the page says)
    """Return what the page's script handed over under a name; None where it said nothing."""
    try:
        return getattr(event, name, None)
    except TypeError:  # What was handed over is no object.
        return None


def or_skip(value: object) -> object:
    """Leave a component as it is when there is nothing to say."""
    return gr.skip() if value is None else value


def _fields_js(
    components: Mapping[str, gr.Component | Sequence[gr.Component]], **hidden: str
) -> str:
    """A script that sends what the fields show at the click, as a payload.

    Gradio's own copy of a value may lag behind a quick hand by a tick.
    """
    ids = {
        name: [each.elem_id for each in found] if isinstance(found, Sequence) else found.elem_id
        for name, found in components.items()
    } | hidden
    return f"(state) => SeedGrid.turn(state, SeedGrid.pick(), SeedGrid.seen({json.dumps(ids)}))"


def fields_by_name(view: View) -> dict[str, gr.Component]:
    """Return the components of the fields, by their names."""
    return {"prompt": view.bar.prompt, "seeds": view.bar.seeds} | view.settings
