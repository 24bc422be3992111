"""The settings, folded away below the card: what is left open there is as the model's card says.

Knows no engine and no events; what can be chosen comes in when the page is open (offer.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is folded away: empty means "as the model's card says"."""

    negative: gr.Textbox
    steps: gr.Textbox
    guidance: gr.Textbox
    size: gr.Textbox
    scheduler: gr.Dropdown
    model: gr.Dropdown
    device: gr.Dropdown
    determinism: gr.Dropdown
    dtype: gr.Dropdown
    mix: gr.Textbox
    turbo: gr.Checkbox
    more_prompts: gr.Textbox


def build_settings(i18n: gr.I18n) -> Settings:
    """Lay out the settings, inside `gr.Blocks`.

    Their values are read in the browser at the click (wiring.py), so Gradio must be told that one
    may write into them.

    Args:
        i18n: Translates the labels in the browser.
    """
    with gr.Accordion(i18n("settings"), open=False, elem_id="sg-settings"):
        negative = _words(i18n, "negative", max_lines=4)
        more_prompts = _words(i18n, "more_prompts", lines=2, max_lines=8)
        mix = _words(i18n, "mix", max_lines=1)
        with gr.Row():
            steps = _field(i18n, "steps")
            guidance = _field(i18n, "guidance")
            size = _field(i18n, "size")
        with gr.Row():
            scheduler = _choice(i18n, "scheduler")
            determinism = _choice(i18n, "determinism")
        model = _choice(i18n, "model")
        with gr.Row():
            device = _choice(i18n, "device")
            dtype = _choice(i18n, "dtype")
        turbo = _switch(i18n, "turbo")
    return Settings(
        negative=negative,
        steps=steps,
        guidance=guidance,
        size=size,
        scheduler=scheduler,
        model=model,
        device=device,
        determinism=determinism,
        dtype=dtype,
        mix=mix,
        turbo=turbo,
        more_prompts=more_prompts,
    )


def _words(i18n: gr.I18n, name: str, *, lines: int = 1, max_lines: int) -> gr.Textbox:
    return gr.Textbox(
        "",
        label=i18n(f"{name}_label"),
        placeholder=i18n(f"{name}_placeholder"),
        elem_id=f"sg-{name.replace('_', '-')}",
        lines=lines,
        max_lines=max_lines,
        interactive=True,
    )


def _field(i18n: gr.I18n, name: str) -> gr.Textbox:
    return gr.Textbox(
        "",
        label=i18n(f"{name}_label"),
        elem_id=f"sg-{name}",
        max_lines=1,
        min_width=80,
        interactive=True,
    )


def _switch(i18n: gr.I18n, name: str) -> gr.Checkbox:
    return gr.Checkbox(
        value=False,
        label=i18n(f"{name}_label"),
        info=i18n(f"{name}_info"),
        elem_id=f"sg-{name}",
        min_width=120,
        interactive=True,
    )


def _choice(i18n: gr.I18n, name: str) -> gr.Dropdown:
    return gr.Dropdown(
        [],
        label=i18n(f"{name}_label"),
        elem_id=f"sg-{name}",
        allow_custom_value=True,  # what is not on the list gets our own message at the field
        min_width=120,
        interactive=True,
    )
