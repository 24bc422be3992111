"""The settings, folded away below the card, and in them those that an artist does without.

What is left open is as the model's card says.

One component for each field of the table (core/fields.py). Knows no engine and no events; what can
be chosen comes in when the page is open (state/model_options.py).
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import gradio as gr

from seedgrid.core.field import Field
from seedgrid.core.fields import ON_PAGE

_TEXT: Final[dict[str, dict[str, Any]]] = {
    "words": {"max_lines": 4},
    "lines": {"lines": 2, "max_lines": 8},
    "text": {"max_lines": 1},
    "number": {"max_lines": 1, "min_width": 80},
}


def build_settings(i18n: gr.I18n, shapes: gr.HTML | None = None) -> dict[str, gr.Component]:
    """Lay out the settings, inside `gr.Blocks`.

    Their values are read in the browser at the click (wiring.py), so Gradio must be told that one
    may write into them.
    """
    folded = [row for row in ON_PAGE if row.widget != "bar"]
    with gr.Accordion(i18n("settings"), open=False, elem_id="sg-settings"):
        if shapes is not None:
            shapes.render()
        settings = _rows(i18n, [row for row in folded if not row.is_expert])
        gr.Button(i18n("models_open"), elem_id="sg-models", size="sm", variant="secondary")
        gr.Button(i18n("expert"), elem_id="sg-expert-open", size="sm", variant="secondary")
        with gr.Column(elem_id="sg-expert"):
            settings |= _rows(i18n, [row for row in folded if row.is_expert])
    return settings


def _rows(i18n: gr.I18n, rows: Sequence[Field]) -> dict[str, gr.Component]:
    settings: dict[str, gr.Component] = {}
    for beside, found in groupby(rows, key=lambda row: row.row or row.name):
        group = list(found)
        if group[0].row == beside:
            with gr.Row():
                settings |= {row.name: _component(i18n, row) for row in group}
        else:
            settings |= {row.name: _component(i18n, row) for row in group}
    return settings


def _component(i18n: gr.I18n, row: Field) -> gr.Component:
    shared = {
        "label": i18n(f"{row.name}_label"),
        "elem_id": f"sg-{row.id}",
        "interactive": True,
        "info": i18n(f"{row.name}_about"),
    }
    if row.widget == "switch":
        return gr.Checkbox(value=False, min_width=120, elem_classes="sg-switch", **shared)
    if row.widget == "choice":
        # What is not on the list gets our own message at the field.
        return gr.Dropdown([], allow_custom_value=True, min_width=120, **shared)
    # What an open number gets is its placeholder, once the model is known.
    hint = None if row.widget == "number" else i18n(f"{row.name}_placeholder")
    return gr.Textbox("", placeholder=hint, **_TEXT[str(row.widget)], **shared)
