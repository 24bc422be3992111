"""Fields: each thing that a person can set, once.

The page's form and what fills it in, the options of the command line, links, imports and
`request.resolve` all read this table: a new setting is one row here, and the place that uses it
(docs/contributing.md). Labels, hints and placeholders are words: `fields` in `locales/*.json`.

    field("steps").fills   # ('num_inference_steps',)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, get_args

from seedgrid.core import checks
from seedgrid.core.card import ModelCard
from seedgrid.core.mixes import read_mix, write_decimal, write_mix
from seedgrid.core.recipe import (
    LOCK_WIDTHS,
    MAX_GUIDANCE,
    MAX_SIZE_PX,
    MAX_STEPS,
    MIN_SIZE_PX,
    DType,
)
from seedgrid.core.seeds import format_seeds, parse_seeds

Widget = Literal["bar", "words", "lines", "text", "number", "choice", "switch"]

AUTO: Final = "auto"
"""What a list offers first: as the model's card says."""


def _as_it_is(text: str) -> str:
    return text


def _auto_is_open(text: str) -> str | None:
    return None if text == AUTO else text


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _write_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing that a person can set.

    Attributes:
        name: On the page (`sg-NAME`), on the command line (`--NAME`), in links and in errors.
        belongs: `"recipe"`: it makes the picture what it is. `"placement"`: where it is computed.
            `"run"`: how it is asked for.
        fills: The attributes of `Request`, or of `Placement`, that it sets.
        value_type: What the command line reads; bool is a switch.
        default: On the command line and, of texts, on the page; None leaves it to the model's card.
        low: The least that an imported number may be.
        high: The most.
        read: Makes a value of what was typed.
        write: Makes a text of a value that `read` reads again.
        reads_blank: Whether a blank text has a meaning too; it leaves a setting open otherwise.
        check: Makes of a request's value, which may be open, what a recipe holds.
        choices: What a list offers with a model; None where the machine decides (model, device).
        has_auto: Whether a list begins with "auto", and says what that gives.
        widget: How the page asks for it; None when it does not. `"bar"` is beside Generate.
        row: Settings of one row stand side by side on the page.
        help: What `--help` says; empty when it is no option.
        metavar: What `--help` shows for its value.
        in_link: Whether a link holds it, and a dropped picture or a link fills it in.
        imported: Whether it is a number that other tools' pictures hold (`imported.Found`).
    """

    name: str
    belongs: Literal["recipe", "placement", "run"]
    fills: tuple[str, ...] = ()
    value_type: type[str | int | float | bool] = str
    default: str | bool | None = None
    low: float = 0
    high: float = math.inf
    read: Callable[[str], Any] = _as_it_is
    write: Callable[[Any], str] = str
    reads_blank: bool = False
    check: Callable[[Any, ModelCard], Any] | None = None
    choices: Callable[[ModelCard], Sequence[str]] | None = None
    has_auto: bool = False
    widget: Widget | None = None
    row: str = ""
    help: str = ""
    metavar: str | None = None
    in_link: bool = False
    imported: bool = False

    @property
    def id(self) -> str:
        """Its component's id on the page, without `sg-`; errors name it so."""
        return self.name.replace("_", "-")

    def value(self, text: str) -> Any:  # noqa: ANN401 (each field has its own type)
        """Read what was typed on the page.

        Returns:
            The value; None when it is left open.

        Raises:
            InputError: It cannot be, by this field.
        """
        return self.read(text) if self.reads_blank or text.strip() else None

    def of(self, request: object) -> Any:  # noqa: ANN401 (same)
        """Return its value in a request: several attributes are a tuple, as in a size."""
        values = tuple(getattr(request, name) for name in self.fills)
        return values if len(values) > 1 else values[0]

    def text(self, request: object) -> str:
        """Write its value in a request as it may be typed; empty when it is open."""
        value = self.of(request)
        is_open = None in value if isinstance(value, tuple) else value is None
        return "" if is_open else self.write(value)

    def filled(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 (same)
        """Return the attributes that it sets; none when the value is open."""
        if value is None:
            return {}
        return dict(zip(self.fills, value if len(self.fills) > 1 else (value,), strict=True))


FIELDS: Final = (
    Field(
        name="prompt",
        belongs="recipe",
        fills=("prompt",),
        read=partial(checks.check_prompt, field="prompt"),
        reads_blank=True,
        check=checks.check_words,
        widget="bar",
        in_link=True,
    ),
    Field(
        name="typed",
        belongs="recipe",
        fills=("typed_prompt",),
        read=partial(checks.check_prompt, field="prompt"),
        check=lambda text, _: checks.check_prompt(text, field="prompt"),
        in_link=True,
    ),
    Field(
        name="seeds",
        belongs="recipe",
        fills=("seeds",),
        default="0-3",
        read=parse_seeds,
        write=format_seeds,
        reads_blank=True,
        widget="bar",
        in_link=True,
    ),
    Field(
        name="negative",
        belongs="recipe",
        fills=("negative_prompt",),
        default="",
        read=partial(checks.check_prompt, field="negative"),
        reads_blank=True,
        check=checks.check_negative,
        widget="words",
        help="What the picture should not show.",
        in_link=True,
    ),
    Field(name="more_prompts", belongs="run", widget="lines"),
    Field(
        name="mix",
        belongs="recipe",
        fills=("noise_mix",),
        read=read_mix,
        write=write_mix,
        reads_blank=True,
        check=lambda mix, _: mix,
        widget="text",
        in_link=True,
    ),
    Field(
        name="steps",
        belongs="recipe",
        fills=("num_inference_steps",),
        value_type=int,
        low=1,
        high=MAX_STEPS,
        read=checks.parse_steps,
        check=checks.check_steps,
        widget="number",
        row="numbers",
        help="Steps of the denoiser.",
        imported=True,
        in_link=True,
    ),
    Field(
        name="guidance",
        belongs="recipe",
        fills=("guidance_scale",),
        value_type=float,
        high=MAX_GUIDANCE,
        read=checks.parse_guidance,
        write=write_decimal,
        check=checks.check_guidance,
        widget="number",
        row="numbers",
        help=f"How closely to follow the words; 0 to {MAX_GUIDANCE:g}.",
        imported=True,
        in_link=True,
    ),
    Field(
        name="size",
        belongs="recipe",
        fills=("width", "height"),
        low=MIN_SIZE_PX,
        high=MAX_SIZE_PX,
        read=checks.parse_size,
        write=_write_size,
        check=checks.check_size,
        widget="number",
        row="numbers",
        help="For example 512x768.",
        metavar="WxH",
        in_link=True,
    ),
    Field(
        name="scheduler",
        belongs="recipe",
        fills=("scheduler",),
        read=_auto_is_open,
        check=checks.check_scheduler,
        choices=lambda card: card.schedulers,
        has_auto=True,
        widget="choice",
        row="method",
        help="For example DDIM, or DPM++ 2M Karras.",
        in_link=True,
    ),
    Field(
        name="determinism",
        belongs="recipe",
        fills=("determinism",),
        check=checks.check_determinism,
        choices=lambda _: ("strict", "seeded", "off"),
        widget="choice",
        row="method",
        help="off, seeded or strict.",
        in_link=True,
    ),
    Field(
        name="model",
        belongs="recipe",
        fills=("model",),
        read=str.strip,
        widget="choice",
        help="bundled, a folder, a hub id, or a .safetensors file.",
        in_link=True,
    ),
    Field(
        name="device",
        belongs="placement",
        fills=("device",),
        default=AUTO,
        widget="choice",
        row="machine",
        help="auto, cpu, cuda, cuda:1, mps, xpu.",
    ),
    Field(
        name="dtype",
        belongs="recipe",
        fills=("dtype",),
        read=_auto_is_open,
        check=checks.check_dtype,
        choices=lambda _: get_args(DType),
        has_auto=True,
        widget="choice",
        row="machine",
        help="float32, bfloat16 or float16.",
        in_link=True,
    ),
    Field(
        name="turbo",
        belongs="run",
        value_type=bool,
        default=False,
        widget="switch",
        help="Choose number format, scheduler and steps for speed.",
    ),
    Field(
        name="portable",
        belongs="recipe",
        fills=("portable",),
        value_type=bool,
        default=False,
        write=_yes,
        help="The same picture, to the last bit, on every machine (slower).",
        in_link=True,
    ),
    Field(
        name="width",
        belongs="recipe",
        fills=("lock_width",),
        value_type=int,
        low=1,
        high=max(LOCK_WIDTHS),
        check=checks.check_lock_width,
        help="Lock width, the cells of a batch: 1, 2, 4, 8 or 16.",
        in_link=True,
    ),
)
"""In the order of the page."""

ON_PAGE: Final = tuple(row for row in FIELDS if row.widget)
OPTIONS: Final = tuple(row for row in FIELDS if row.help)
IN_LINKS: Final = tuple(row for row in FIELDS if row.in_link)


def field(name: str) -> Field:
    """Return the field of a name."""
    return next(row for row in FIELDS if row.name == name)
