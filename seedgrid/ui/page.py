"""build_app: the page for a studio. It runs nothing and loads nothing by being built.

demo = build_app(Studio())
launch(demo, studio)
"""

from __future__ import annotations

import gradio as gr

from seedgrid.studio import Studio
from seedgrid.ui.handlers import Handlers
from seedgrid.ui.texts import labels
from seedgrid.ui.view import build_view
from seedgrid.ui.wiring import wire

_CACHE_S = (3600, 86400)
_MAX_WAITING = 100


def build_app(studio: Studio, *, i18n: gr.I18n | None = None) -> gr.Blocks:
    """Build the page.

    Args:
        studio: Model, engine and library behind it.
        i18n: What translates its labels; the same must go to `launch`.
    """
    with gr.Blocks(
        title="SeedGrid", analytics_enabled=False, delete_cache=_CACHE_S, fill_width=True
    ) as demo:
        view = build_view(i18n or make_i18n())
        wire(view, Handlers(studio), demo)
    demo.queue(max_size=_MAX_WAITING, default_concurrency_limit=None)
    return demo


def make_i18n() -> gr.I18n:
    """Return the translations of the labels."""
    return gr.I18n(**labels())
