"""Request: the settings that were asked for; its attributes' metadata hold each `Field`.

Page, command line, links, imports and `request.resolve` read these declarations;
docs/contributing.md says what else a new setting needs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from dataclasses import field as attribute_field
from functools import partial
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from seedgrid.core import checks
from seedgrid.core.checks import DEFAULT_STRENGTH, format_seeds, parse_seeds, read_mix, write_mix
from seedgrid.core.field import LINE, LORA, NAME, NUMBER, SEEDS, SIZE, TEXT, Field
from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import (
    LOCK_WIDTHS,
    MAX_GUIDANCE,
    MAX_SIZE_PX,
    MAX_SPREAD,
    MAX_STEPS,
    MIN_SIZE_PX,
    Determinism,
    Lora,
    NoiseShare,
    Upscaler,
)
from seedgrid.core.text import write_decimal

AUTO: Final = "auto"  # The first option of a dropdown: the program chooses


def _auto_as_none(text: str) -> str | None:
    return None if text == AUTO else text


_FIELD: Final = "field"  # The key of a field in the metadata of its attribute


def _setting(name: str, initial: object = None, **details: Any) -> Any:  # noqa: ANN401
    """Return a dataclass field of `Request`: `initial` is its default, a `Field` its metadata."""
    return attribute_field(default=initial, metadata={_FIELD: Field(name, **details)})


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for; None means the default, which is often the model card's."""

    prompt: str = _setting(
        "prompt",
        MISSING,
        read=partial(checks.check_prompt, field="prompt"),
        reads_blank=True,
        check=checks.check_words,
        widget="bar",
    )
    # The prompt as it was typed, if `prompt` is its translation into the model's words; if this is
    # empty, `resolve` translates `prompt`
    typed_prompt: str = _setting(
        "typed",
        "",
        read=partial(checks.check_prompt, field="prompt"),
        check=lambda text, _: checks.check_prompt(text, field="prompt"),
    )
    # One picture is painted for each seed
    seeds: tuple[int, ...] = _setting(
        "seeds",
        (0, 1, 2, 3),
        default="0-3",
        read=parse_seeds,
        write=format_seeds,
        reads_blank=True,
        widget="bar",
        varies=SEEDS,
        decides_noise=True,
    )
    negative_prompt: str = _setting(
        "negative",
        "",
        default="",
        read=partial(checks.check_prompt, field="negative"),
        reads_blank=True,
        check=checks.check_negative,
        widget="words",
        help="What the picture should not show.",
        varies=TEXT,
    )
    # Whether brackets in its prompts weigh words, as in `(red:1.3)`
    weights: bool = _setting(
        "weights",
        False,
        check=checks.check_weights,
        widget="switch",
        is_expert=True,
        help="Let brackets weigh words, as in (red:1.3).",
    )
    noise_mix: tuple[NoiseShare, ...] = _setting(
        "mix",
        (),
        read=read_mix,
        write=write_mix,
        reads_blank=True,
        check=lambda mix, _: mix,
        widget="text",
        is_expert=True,
    )
    num_inference_steps: int | None = _setting(
        "steps",
        low=1,
        high=MAX_STEPS,
        check=checks.check_steps,
        widget="number",
        row="numbers",
        help="Steps of the denoiser.",
        imported=True,
        varies=NUMBER,
    )
    guidance_scale: float | None = _setting(
        "guidance",
        high=MAX_GUIDANCE,
        check=checks.check_guidance,
        widget="number",
        row="numbers",
        help=f"How closely to follow the words; 0 to {MAX_GUIDANCE:g}.",
        imported=True,
        varies=NUMBER,
    )
    width: int | None = _setting(
        "size",
        attributes=("width", "height"),
        low=MIN_SIZE_PX,
        high=MAX_SIZE_PX,
        read=checks.parse_size,
        write=lambda size: f"{size[0]}x{size[1]}",
        check=checks.check_size,
        widget="number",
        help="For example 512x768.",
        metavar="WxH",
        varies=SIZE,
        decides_noise=True,
    )
    height: int | None = None
    scheduler: str | None = _setting(
        "scheduler",
        read=_auto_as_none,
        check=checks.check_scheduler,
        choices=lambda card: card.schedulers,
        has_auto=True,
        widget="choice",
        is_expert=True,
        help="For example DDIM, or DPM++ 2M Karras.",
        varies=LINE,
    )
    determinism: str | None = _setting(
        "determinism",
        check=checks.check_determinism,
        choices=lambda _: get_args(Determinism)[::-1],
        widget="choice",
        is_expert=True,
        effect_override="last",
        help="off, seeded or strict.",
    )
    # The SHA-256 of the pixels that image-to-image begins from; a studio takes a picture's id, too
    start: str | None = _setting(
        "start",
        read=checks.parse_start,
        check=checks.check_start,
        widget="text",
        row="start",
        help="A picture to begin from: a PNG, JPEG or WebP file, or an id in the library.",
        metavar="PICTURE",
    )
    # Image-to-image's `strength`, as in diffusers, 0.01 to 1
    strength: float | None = _setting(
        "strength",
        high=1,
        check=checks.check_strength,
        widget="text",
        row="start",
        help=f"How much of it the noise takes away, 0.01 to 1; {DEFAULT_STRENGTH} by default.",
        varies=NUMBER,
    )
    spread: float = _setting(
        "spread",
        0.0,
        high=MAX_SPREAD,
        write=lambda spread: write_decimal(spread) if spread else "",
        check=lambda spread, _: checks.in_range("spread", spread, 0, MAX_SPREAD),
        widget="number",
        is_expert=True,
        help=f"Noise on the words in this share of the steps, 0 to {MAX_SPREAD}: seeds differ.",
        varies=NUMBER,
    )
    loras: tuple[Lora, ...] = _setting(
        "lora", (), in_link=False, write=lambda loras: write_tags("", loras).strip(), varies=LORA
    )
    # As in a recipe; no option and no component of the page sets it
    upscaler: Upscaler | None = _setting(  # noqa: RUF009 (it returns a dataclass's field)
        "upscaler", in_link=False, write=lambda upscaler: str(upscaler.id)
    )
    # Which model, as `seedgrid.models.registry.find` understands it; None is the default
    model: str | None = _setting(
        "model",
        read=str.strip,
        widget="choice",
        help="bundled, a folder, a hub id, or a .safetensors file.",
        varies=NAME,
    )
    dtype: str | None = _setting(
        "dtype",
        read=_auto_as_none,
        check=checks.check_dtype,
        choices=lambda _: ("float32", "bfloat16", "float16", "int8"),
        has_auto=True,
        widget="choice",
        is_expert=True,
        help="float32, bfloat16, float16, or int8 for smaller weights.",
        varies=NAME,
    )
    # Whether the pictures get the same bits on every machine, in float32
    portable: bool = _setting(
        "portable",
        False,
        widget="switch",
        is_expert=True,
        effect_override="last",
        help="The same picture, to the last bit, on every machine (slower).",
    )
    lock_width: int | None = _setting(
        "width",
        low=1,
        high=max(LOCK_WIDTHS),
        check=checks.check_lock_width,
        help="Lock width, the cells of a batch: 1, 2, 4, 8 or 16.",
    )


_NOT_IN_REQUEST: Final = {  # By the name of the field that precedes each on the page
    "weights": Field("more_prompts", scope="run", widget="lines", is_expert=True),
    "model": Field(
        "device",
        scope="placement",
        attributes=("device",),
        default=AUTO,
        widget="choice",
        is_expert=True,
        help="auto, cpu, cuda, cuda:1, mps, xpu.",
    ),
}


def _declared() -> Iterable[Field]:
    """Yield the fields in the order of the page, each with its attribute and type."""
    hints = get_type_hints(Request)
    for attribute in fields(Request):
        setting: Field | None = attribute.metadata.get(_FIELD)
        if setting is None:  # `height`: the field `size`, declared at `width`, sets both.
            continue
        if not setting.attributes:
            kind = _type(hints[attribute.name])
            default = False if kind is bool else setting.default
            setting = replace(
                setting, attributes=(attribute.name,), value_type=kind, default=default
            )
        yield setting
        if setting.name in _NOT_IN_REQUEST:
            yield _NOT_IN_REQUEST[setting.name]


def _type(hint: Any) -> type[str | int | float | bool]:  # noqa: ANN401 (a type hint)
    """Return the type of an attribute's values: bool, int, float, else str."""
    own = get_args(hint)[0] if NoneType in get_args(hint) else hint
    return own if own in (bool, int, float) else str


FIELDS: Final = tuple(_declared())  # In the order of the page

ON_PAGE: Final = tuple(each for each in FIELDS if each.widget)
OPTIONS: Final = tuple(each for each in FIELDS if each.help)
IN_LINKS: Final = tuple(each for each in FIELDS if each.in_link and each.scope == "recipe")


def read_fields(settings: Iterable[Field], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that were typed; raise InputError at the first wrong field."""
    filled: dict[str, Any] = {}
    for setting in settings:
        filled |= setting.as_attributes(setting.read_typed(typed.get(setting.name)))
    return filled


def field(name: str) -> Field:
    """Return the field of a name."""
    return next(setting for setting in FIELDS if setting.name == name)
