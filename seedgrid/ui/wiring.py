"""Which event of which component calls which handler: the only place with `.click` and `.load`.

Everything here is private; the public functions are in api.py. A place is shown by an event of
its own, and its run followed by the next: a streamed output is patched in the browser, where a
part that is skipped later would lose its value, and one that is repeated would undo a click.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import gradio as gr

from seedgrid.ui.ask import Asked
from seedgrid.ui.handlers import Handlers, Shown
from seedgrid.ui.view import View

Updates = tuple[Any, ...]

_PRIVATE: Final[dict[str, Any]] = {
    "api_visibility": "private",
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "multiple",
}
# The pick is the browser's: what is ringed when the button is pressed is what is refined.
_WITH_PICK_JS: Final = "(place, ...rest) => [SeedGrid.withPick(place), ...rest]"


def wire(view: View, handlers: Handlers, demo: gr.Blocks) -> None:
    """Connect the components with the handlers."""
    shown = [view.place, view.stage, view.status, view.rail, view.picked]

    def on_load(kept: object) -> Updates:
        return _updates(handlers.on_load(kept))

    def on_generate(kept: object, *texts: Any) -> Updates:
        names = [field.name for field in fields(Asked)]
        values = {name: text or "" for name, text in zip(names, texts, strict=True)}
        return _updates(handlers.on_generate(Asked(**values), kept))

    def on_refine(kept: object, *suffixes: str) -> Updates:
        return _updates(handlers.on_refine(suffixes, kept))

    def on_go(kept: object, event: gr.EventData) -> Updates:
        return _updates(handlers.on_go(event._data.get("round"), kept))

    def on_back(kept: object) -> Updates:
        return _updates(handlers.on_back(kept))

    def follow(kept: object) -> Iterator[Updates]:
        for progress in handlers.follow(kept):
            yield progress.stage, progress.status, progress.rail

    def show(event: Any, handler: Any, inputs: list[Any], **options: Any) -> None:
        """Show the place that a handler answers with, then follow its run."""
        event(handler, inputs, shown, **_PRIVATE, **options).then(
            follow, view.place, [view.stage, view.status, view.rail], **_PRIVATE
        )

    def on(*triggers: Any) -> Any:
        return lambda handler, inputs, outputs, **options: gr.on(
            list(triggers), handler, inputs, outputs, **options
        )

    asked = [view.place, *_asked(view)]
    show(demo.load, on_load, [view.place])
    show(on(view.generate.click, view.prompt.submit, view.seeds.submit), on_generate, asked)
    show(view.refine.click, on_refine, [view.place, *view.vary], js=_WITH_PICK_JS)
    show(view.back.click, on_back, [view.place])
    show(view.rail.go, on_go, [view.place])
    _wire_small(view, handlers)


def _wire_small(view: View, handlers: Handlers) -> None:
    """Connect what starts nothing and goes nowhere."""

    def on_stop(kept: object) -> None:
        handlers.on_stop(kept)

    def on_pick(kept: object, event: gr.EventData) -> Updates:
        return _card(handlers.on_pick(event._data.get("id"), kept))

    def on_favourite(kept: object, event: gr.EventData) -> Updates:
        data = event._data
        return _card(handlers.on_favourite(data.get("id"), data.get("favourite"), kept))

    card = [view.status, view.picked]
    view.stop.click(on_stop, view.place, None, **_PRIVATE)
    view.stage.pick(on_pick, view.place, card, **_PRIVATE)
    view.picked.favourite(on_favourite, view.place, card, **_PRIVATE)


def _updates(shown: Shown) -> Updates:
    place = None if shown.place is None else shown.place.to_browser()
    parts = (place, shown.stage, shown.status, shown.rail, shown.picked)
    return tuple(_or_skip(part) for part in parts)


def _card(shown: Shown) -> Updates:
    return _or_skip(shown.status), _or_skip(shown.picked)


def _or_skip(value: object) -> Any:
    return gr.skip() if value is None else value


def _asked(view: View) -> list[Any]:
    """The components behind the fields of `Asked`, in their order."""
    by_name = {"prompt": view.prompt, "seeds": view.seeds} | vars(view.settings)
    return [by_name[field.name] for field in fields(Asked)]
