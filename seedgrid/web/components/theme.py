"""The look of Gradio's own components: our palette in light and dark, our font, no shadows.

The palette's other half, for what our scripts draw, is in assets/page.css under the same names.
"""

from typing import Final

import gradio as gr

_FONTS = (
    "Inter Variable",
    "Inter",
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Roboto",
    "sans-serif",
)
_MONO = ("ui-monospace", "SF Mono", "Cascadia Mono", "Menlo", "Consolas", "monospace")
# Our colour for each of Gradio's variables, the same in light and dark: it changes by itself.
_COLOURS: Final = {
    "body_background_fill": "ground",
    "body_text_color": "ink",
    "body_text_color_subdued": "quiet",
    "background_fill_primary": "panel",
    "background_fill_secondary": "ground",
    "block_background_fill": "panel",
    "block_border_color": "line",
    "block_label_text_color": "quiet",
    "block_title_text_color": "quiet",
    "border_color_primary": "line",
    "border_color_accent": "accent",
    "color_accent_soft": "panel",
    "input_background_fill": "field",
    "input_border_color": "edge",
    "input_border_color_focus": "ring",
    "checkbox_border_color": "edge",
    "input_placeholder_color": "faint",
    "button_primary_background_fill": "accent",
    "button_primary_background_fill_hover": "accent-hover",
    "button_primary_text_color": "on-accent",
    "button_primary_border_color": "accent",
    "button_primary_border_color_hover": "accent-hover",
    "button_secondary_background_fill": "field",
    "button_secondary_background_fill_hover": "hover",
    "button_secondary_text_color": "ink",
    "button_secondary_border_color": "line",
    "button_secondary_border_color_hover": "faint",
    "button_cancel_background_fill": "field",
    "button_cancel_background_fill_hover": "hover",
    "button_cancel_text_color": "ink",
    "button_cancel_border_color": "line",
    "button_cancel_border_color_hover": "faint",
}


def make_theme() -> gr.themes.Base:
    """Return the theme; plain font names, so that nothing is fetched from elsewhere."""
    theme = gr.themes.Base(
        font=list(_FONTS), font_mono=list(_MONO), radius_size=gr.themes.sizes.radius_lg
    )
    values = {name: f"var(--sg-{colour})" for name, colour in _COLOURS.items()}
    dark = {f"{name}_dark": value for name, value in values.items()}
    sizes = {"input_shadow": "none", "input_shadow_focus": "none", "block_shadow": "none"}
    return theme.set(**values, **dark, **sizes, input_border_width="1px", block_border_width="1px")
