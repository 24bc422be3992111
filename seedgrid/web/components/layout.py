"""The page's components and where they stand. Knows no engine, no library and no events.

`build_view` must be called inside `gr.Blocks`; the ids are those that users' scripts click.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import gradio as gr

from seedgrid.core.fields import field
from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES
from seedgrid.web.components.files import paths_only
from seedgrid.web.components.settings import build_settings
from seedgrid.web.serializers.pictures import no_picture
from seedgrid.web.serializers.rail import EMPTY_RAIL
from seedgrid.web.serializers.stage import NO_ITEMS, stage_of_noise
from seedgrid.web.state.page_state import NEW_VISIT

GUIDE_SEEDS: Final = str(field("seeds").default)

# The scripts are files under assets/; these lines only hand them the component. Each custom event
# must be named in quotes here, or Gradio does not know it.
_PAYLOAD_JS: Final = (
    "SeedGrid.payload({props, watch, arrive: (said) => trigger('arrive', {said}),"
    " choose: (data) => trigger('choose', data), advise: (data) => trigger('advise', data)})"
)
_STAGE_JS: Final = (
    "SeedGrid.stage({element, props, watch, pick: (data) => trigger('pick', data),"
    " example: (data) => trigger('example', data)})"
)
_RAIL_JS: Final = "SeedGrid.rail({element, props, watch, go: (data) => trigger('go', data)})"
_PICKED_JS: Final = (
    "SeedGrid.picked({element, props, watch, favourite: (data) => trigger('favourite', data),"
    " note: (data) => trigger('note', data)})"
)
_LIBRARY_JS: Final = (
    "SeedGrid.library({element, props, watch, search: (asked) => trigger('search', {asked}),"
    " open: (data) => trigger('open', data), trash: (asked) => trigger('trash', {asked}),"
    " mark: (asked) => trigger('mark', {asked}),"
    " empty: (data) => trigger('empty', data)})"
)
_STATUS_JS: Final = (
    "SeedGrid.status({element, props, watch, folder: (data) => trigger('folder', data)})"
)
_VERDICT_JS: Final = "SeedGrid.verdict({element, props, watch})"
_FOURS_JS: Final = "SeedGrid.fours({element})"
_STARTING_JS: Final = "SeedGrid.starting({element})"
_EXPORT_JS: Final = "SeedGrid.exports({element})"
_SHAPES_JS: Final = "SeedGrid.shapes({element, props, watch})"
_HINTS_JS: Final = "SeedGrid.hints({element, props, watch})"
_BRAND_HTML: Final = (
    '<h1><a class="sg-brand" href="./"><span class="sg-mark" aria-hidden="true">'
    "<i></i><i></i><i></i><i></i></span>SeedGrid</a></h1>"
)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What is asked for, and the words the model knows."""

    prompt: gr.Textbox
    seeds: gr.Textbox
    generate: gr.Button
    stop: gr.Button
    hints: gr.HTML


@dataclass(frozen=True, kw_only=True)
class Card:
    """The picked picture and what can be done with it, as far as Python hears of it."""

    picked: gr.HTML
    vary: tuple[gr.Textbox, ...]
    refine: gr.Button
    subtle: gr.Button
    strong: gr.Button
    double: gr.Button
    fourfold: gr.Button
    verify: gr.Button
    verdict: gr.HTML


@dataclass(frozen=True, kw_only=True)
class View:
    """All components that events read or write.

    Attributes:
        state: Where this browser is.
        payload: What goes from the fields to Python and from there to the stage, as one text.
    """

    state: gr.BrowserState
    payload: gr.HTML
    bar: Bar
    back: gr.Button
    rail: gr.HTML
    stage: gr.HTML
    status: gr.HTML
    again: gr.Button
    card: Card
    settings: dict[str, gr.Component]
    shapes: gr.HTML
    drop: gr.File
    library: gr.HTML


def build_view(i18n: gr.I18n, suffixes: Sequence[str] = GUIDE_SUFFIXES) -> View:
    """Lay out the page."""
    # Fixed on purpose: with random ones every page would be forgotten when the app starts again.
    state = gr.BrowserState(NEW_VISIT, storage_key="seedgrid-place", secret="seedgrid")  # noqa: S106
    payload = _script("", "sg-payload", _PAYLOAD_JS)
    shapes = _script([], "sg-shapes", _SHAPES_JS, render=False)
    with gr.Column(elem_id="sg-page"):
        with gr.Row(elem_id="sg-top"):
            gr.HTML(_BRAND_HTML, elem_id="sg-brand", js_on_load=None, apply_default_css=False)
            bar = _build_bar(i18n)
            _quiet_button(i18n("library_open"), "sg-library-open")
            _quiet_button("?", "sg-keys")
        with gr.Row(elem_id="sg-main"):
            with gr.Column(elem_id="sg-rail"):
                back = _quiet_button(i18n("back"), "sg-back")
                rail = _script(EMPTY_RAIL, "sg-lineage", _RAIL_JS)
            with gr.Column(elem_id="sg-centre"):
                stage = _script(stage_of_noise(), "sg-stage", _STAGE_JS)
                with gr.Row(elem_id="sg-below"):
                    status = _script({"epoch": 0, "key": None}, "sg-status", _STATUS_JS)
                    again = _quiet_button(i18n("again"), "sg-again")
                    _quiet_button(i18n("next_seeds"), "sg-next")
                    _quiet_button(i18n("new_seeds"), "sg-roll")
            with gr.Column(elem_id="sg-panel"):
                card = _build_card(i18n, suffixes)
                settings = build_settings(i18n, shapes)
        with gr.Column(elem_id="sg-keep"):
            drop = _build_drop(i18n)
            library = _script(NO_ITEMS, "sg-library", _LIBRARY_JS)
    return View(
        state=state,
        payload=payload,
        bar=bar,
        back=back,
        rail=rail,
        stage=stage,
        status=status,
        again=again,
        card=card,
        settings=settings,
        shapes=shapes,
        drop=drop,
        library=library,
    )


def _build_bar(i18n: gr.I18n) -> Bar:
    with gr.Row(elem_id="sg-bar"):
        _script({}, "sg-starting", _STARTING_JS)
        prompt = gr.Textbox(
            GUIDE_PROMPT,
            label=i18n("prompt_label"),
            placeholder=i18n("prompt_placeholder"),
            elem_id="sg-prompt",
            interactive=True,
            lines=1,
            max_lines=4,
            container=False,
            scale=6,
        )
        hints = _script({}, "sg-hints", _HINTS_JS)  # after the prompt, for Tab
        seeds = gr.Textbox(
            GUIDE_SEEDS,
            label=i18n("seeds_label"),
            placeholder=i18n("seeds_placeholder"),
            elem_id="sg-seeds",
            interactive=True,
            max_lines=1,
            container=False,
            scale=1,
        )
        generate = gr.Button(i18n("generate"), elem_id="sg-generate", variant="primary", scale=0)
        stop = gr.Button(i18n("stop"), elem_id="sg-stop", variant="stop", scale=0)
    return Bar(prompt=prompt, seeds=seeds, generate=generate, stop=stop, hints=hints)


def _build_card(i18n: gr.I18n, suffixes: Sequence[str]) -> Card:
    with gr.Column(elem_id="sg-card"):
        picked = _script(no_picture(), "sg-picked", _PICKED_JS)
        vary = _build_variations(i18n, suffixes)
        _script({}, "sg-fours", _FOURS_JS)
        refine = gr.Button(i18n("refine"), elem_id="sg-refine", variant="primary")
        with gr.Row(elem_id="sg-around"):
            subtle = _quiet_button(i18n("subtle"), "sg-subtle")
            strong = _quiet_button(i18n("strong"), "sg-strong")
            double = _quiet_button(i18n("final_double"), "sg-final")
            fourfold = _quiet_button(i18n("final_fourfold"), "sg-final-4")
        with gr.Row(elem_id="sg-tools"):
            _quiet_button(i18n("zoom"), "sg-zoom")
            _quiet_button(i18n("save"), "sg-save")
            _quiet_button(i18n("compare"), "sg-compare")
            verify = _quiet_button(i18n("verify"), "sg-verify")
            _quiet_button(i18n("copy_link"), "sg-link")
            _quiet_button(i18n("begin"), "sg-begin")
        verdict = _script({}, "sg-verdict", _VERDICT_JS)
        _script({}, "sg-export", _EXPORT_JS)
    return Card(
        picked=picked,
        vary=vary,
        refine=refine,
        subtle=subtle,
        strong=strong,
        double=double,
        fourfold=fourfold,
        verify=verify,
        verdict=verdict,
    )


def _build_drop(i18n: gr.I18n) -> gr.File:
    return paths_only(
        gr.File(
            label=i18n("drop_label"),
            elem_id="sg-drop",
            file_count="multiple",
            file_types=[".png", ".jpg", ".jpeg", ".webp", ".zip"],
            type="filepath",
            height=54,
        )
    )


def _build_variations(i18n: gr.I18n, suffixes: Sequence[str]) -> tuple[gr.Textbox, ...]:
    with gr.Column(elem_id="sg-variations"):
        return tuple(
            gr.Textbox(
                suffix,
                label=i18n("vary_label"),
                placeholder=i18n("vary_placeholder"),
                elem_id=f"sg-vary-{number}",
                interactive=True,
                max_lines=1,
                container=False,
            )
            for number, suffix in enumerate(suffixes, start=1)
        )


def _quiet_button(label: object, elem_id: str) -> gr.Button:
    return gr.Button(label, elem_id=elem_id, size="sm", variant="secondary", min_width=60)


def _script(value: object, elem_id: str, script: str, *, render: bool = True) -> gr.HTML:
    """Place a component that our own script draws; its template is empty on purpose.

    Gradio evaluates a template as JavaScript, and user text in it with it.
    """
    return gr.HTML(
        value,
        html_template="",
        js_on_load=script,
        elem_id=elem_id,
        apply_default_css=False,
        render=render,
    )
