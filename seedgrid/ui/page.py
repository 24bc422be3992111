"""build_app: the page for a studio. It runs nothing and loads nothing by being built.

demo = build_app(Studio())
launch(demo, studio)
"""

from __future__ import annotations

import gradio as gr

from seedgrid.studio import Studio
from seedgrid.ui.api import publish
from seedgrid.ui.check import Checks
from seedgrid.ui.handlers import Handlers
from seedgrid.ui.keep import Keep
from seedgrid.ui.present import Presenter
from seedgrid.ui.shelves import OneShelf, Shelves
from seedgrid.ui.texts import labels
from seedgrid.ui.view import build_view
from seedgrid.ui.wiring import wire
from seedgrid.ui.wiring_keep import wire_keep

_CACHE_S = (3600, 86400)
_MAX_WAITING = 100


def build_app(
    studio: Studio, *, shelves: Shelves | None = None, language: str | None = None
) -> gr.Blocks:
    """Build the page.

    Args:
        studio: Model, engine and library behind it.
        shelves: Whose pictures are whose; the studio's library for everybody by default.
        language: The page's language; None leaves it to the browser.
    """
    shelves = shelves or OneShelf(studio)
    with gr.Blocks(
        title="SeedGrid", analytics_enabled=False, delete_cache=_CACHE_S, fill_width=True
    ) as demo:
        view = build_view(make_i18n())
        presenter = Presenter(studio, shelves)
        handlers = Handlers(studio, shelves, presenter)
        offers = wire(view, handlers, Checks(studio, shelves), demo, language=language)
        wire_keep(view, handlers, Keep(studio, shelves, presenter), offers)
        publish(studio)
    demo.queue(max_size=_MAX_WAITING, default_concurrency_limit=None)
    return demo


def make_i18n() -> gr.I18n:
    """Return the translations of the labels."""
    return gr.I18n(**labels())
