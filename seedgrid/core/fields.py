"""Fields: each thing that a person can set, once.

The page's form and what fills it in, the options of the command line, links, imports and
`request.resolve` all read this table: a new setting is one row here, and the place that uses it
(docs/contributing.md). Labels, hints and placeholders are words: `fields` in `locales/*.json`.

    field("steps").fills   # ('num_inference_steps',)
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, get_args

from seedgrid.core import checks
from seedgrid.core.field import LINE, LORA, NAME, NUMBER, SEEDS, SIZE, TEXT, Field
from seedgrid.core.loras import write_tags
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

AUTO: Final = "auto"
"""What a list offers first: as the model's card says."""


def _auto_is_open(text: str) -> str | None:
    return None if text == AUTO else text


def _yes(value: bool) -> str:
    return "yes" if value else ""


FIELDS: Final = (
    Field(
        name="prompt",
        fills=("prompt",),
        read=partial(checks.check_prompt, field="prompt"),
        reads_blank=True,
        check=checks.check_words,
        widget="bar",
        in_link=True,
    ),
    Field(
        name="typed",
        fills=("typed_prompt",),
        read=partial(checks.check_prompt, field="prompt"),
        check=lambda text, _: checks.check_prompt(text, field="prompt"),
        in_link=True,
    ),
    Field(
        name="seeds",
        fills=("seeds",),
        default="0-3",
        read=parse_seeds,
        write=format_seeds,
        reads_blank=True,
        widget="bar",
        in_link=True,
        varies=SEEDS,
        keeps_noise=True,
    ),
    Field(
        name="negative",
        fills=("negative_prompt",),
        default="",
        read=partial(checks.check_prompt, field="negative"),
        reads_blank=True,
        check=checks.check_negative,
        widget="words",
        help="What the picture should not show.",
        in_link=True,
        varies=TEXT,
    ),
    Field(
        name="weights",
        fills=("weights",),
        value_type=bool,
        default=False,
        write=_yes,
        check=checks.check_weights,
        widget="switch",
        is_expert=True,
        help="Let brackets weigh words, as in (red:1.3).",
        in_link=True,
    ),
    Field(name="more_prompts", belongs="run", widget="lines", is_expert=True),
    Field(
        name="mix",
        fills=("noise_mix",),
        read=read_mix,
        write=write_mix,
        reads_blank=True,
        check=lambda mix, _: mix,
        widget="text",
        is_expert=True,
        in_link=True,
    ),
    Field(
        name="steps",
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
        varies=NUMBER,
    ),
    Field(
        name="guidance",
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
        varies=NUMBER,
    ),
    Field(
        name="size",
        fills=("width", "height"),
        low=MIN_SIZE_PX,
        high=MAX_SIZE_PX,
        read=checks.parse_size,
        write=lambda size: f"{size[0]}x{size[1]}",
        check=checks.check_size,
        widget="number",
        help="For example 512x768.",
        metavar="WxH",
        in_link=True,
        varies=SIZE,
        keeps_noise=True,
    ),
    Field(
        name="scheduler",
        fills=("scheduler",),
        read=_auto_is_open,
        check=checks.check_scheduler,
        choices=lambda card: card.schedulers,
        has_auto=True,
        widget="choice",
        is_expert=True,
        help="For example DDIM, or DPM++ 2M Karras.",
        in_link=True,
        varies=LINE,
    ),
    Field(
        name="determinism",
        fills=("determinism",),
        check=checks.check_determinism,
        choices=lambda _: ("strict", "seeded", "off"),
        widget="choice",
        is_expert=True,
        bits="last",
        help="off, seeded or strict.",
        in_link=True,
    ),
    Field(
        name="start",
        fills=("start",),
        read=checks.parse_start,
        check=checks.check_start,
        widget="text",
        row="start",
        help="A picture to begin from: a PNG, JPEG or WebP file, or an id in the library.",
        metavar="PICTURE",
        in_link=True,
    ),
    Field(
        name="strength",
        fills=("strength",),
        value_type=float,
        high=1,
        read=checks.parse_strength,
        write=write_decimal,
        check=checks.check_strength,
        widget="text",
        row="start",
        help=f"How much of it the noise takes away, 0 to 1; {checks.DEFAULT_STRENGTH} by default.",
        in_link=True,
        varies=NUMBER,
    ),
    Field(
        name="lora",
        fills=("loras",),
        write=lambda loras: write_tags("", loras).strip(),
        varies=LORA,
    ),
    Field(
        name="upscaler",
        belongs="recipe",
        fills=("upscaler",),
        write=lambda upscaler: str(upscaler.id),
    ),
    Field(
        name="model",
        fills=("model",),
        read=str.strip,
        widget="choice",
        help="bundled, a folder, a hub id, or a .safetensors file.",
        in_link=True,
        varies=NAME,
    ),
    Field(
        name="device",
        belongs="placement",
        fills=("device",),
        default=AUTO,
        widget="choice",
        is_expert=True,
        help="auto, cpu, cuda, cuda:1, mps, xpu.",
    ),
    Field(
        name="dtype",
        fills=("dtype",),
        read=_auto_is_open,
        check=checks.check_dtype,
        choices=lambda _: get_args(DType),
        has_auto=True,
        widget="choice",
        is_expert=True,
        help="float32, bfloat16 or float16.",
        in_link=True,
        varies=NAME,
    ),
    Field(
        name="turbo",
        belongs="run",
        value_type=bool,
        default=False,
        widget="switch",
        is_expert=True,
        bits="other",
        help="Choose number format, scheduler and steps for speed.",
    ),
    Field(
        name="portable",
        fills=("portable",),
        value_type=bool,
        default=False,
        write=_yes,
        widget="switch",
        is_expert=True,
        bits="last",
        help="The same picture, to the last bit, on every machine (slower).",
        in_link=True,
    ),
    Field(
        name="width",
        fills=("lock_width",),
        value_type=int,
        low=1,
        high=max(LOCK_WIDTHS),
        read=checks.parse_lock_width,
        check=checks.check_lock_width,
        help="Lock width, the cells of a batch: 1, 2, 4, 8 or 16.",
        in_link=True,
    ),
)
"""In the order of the page."""

ON_PAGE: Final = tuple(row for row in FIELDS if row.widget)
OPTIONS: Final = tuple(row for row in FIELDS if row.help)
IN_LINKS: Final = tuple(row for row in FIELDS if row.in_link)


def read_fields(rows: Iterable[Field], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a request or a placement that were said.

    Raises:
        InputError: The first thing that cannot be read, by its field.
    """
    filled: dict[str, Any] = {}
    for row in rows:
        filled |= row.filled(row.value(said.get(row.name)))
    return filled


def field(name: str) -> Field:
    """Return the field of a name."""
    return next(row for row in FIELDS if row.name == name)
