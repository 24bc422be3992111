"""Request: what was typed. ModelCard: what a model can do. `resolve` makes recipes of both.

A request may leave almost everything open; a recipe leaves nothing open. This is the one place
where defaults are filled in and where what was typed is checked, for the page, the command line
and Python alike.

    resolve(Request(prompt="a red fox", seeds=(0, 1, 2, 3)), card)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast, get_args

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import vary
from seedgrid.core.recipe import (
    LOCK_WIDTH,
    LOCK_WIDTHS,
    MAX_GUIDANCE,
    MAX_PROMPT_CHARACTERS,
    MAX_SIZE_PX,
    MAX_STEPS,
    MIN_SIZE_PX,
    Determinism,
    DType,
    Lora,
    ModelRef,
    NoiseShare,
    Recipe,
)
from seedgrid.core.seeds import check_seed

SUBTLE: Final = 0.1
"""How far a subtle neighbour lies from its parent's noise, on the sphere towards the other."""

STRONG: Final = 0.3
"""How far a strong neighbour lies."""

_MAX_SIZE_CHARACTERS: Final = 40

DEFAULT_DETERMINISM: Final[Determinism] = "strict"


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model is and can do, known without loading it.

    Attributes:
        family: The pipeline class, for example `"StableDiffusionPipeline"`.
        has_prompt: False for unconditional pipelines (DDPM, DDIM): their prompt is empty.
        has_negative_prompt: Whether a negative prompt reaches the picture.
        size_multiple: Width and height must be multiples of this many pixels.
        fixed_size: True when only `width` x `height` can be painted.
        max_steps: The most steps that the model's noise schedule allows.
        schedulers: The names on offer with this model, the model's own first.
        lock_width: What is offered: less than `usual_lock_width` where a probe found a leak here,
            which whoever takes it must say.
        hints: Words the model knows, by kind, for the page; empty when nobody said.
        fragile: True for pipelines that only the same hardware and versions reproduce (UnCLIP).
    """

    ref: ModelRef
    family: str
    has_prompt: bool = True
    has_negative_prompt: bool = True
    width: int
    height: int
    size_multiple: int = 8
    fixed_size: bool = False
    num_inference_steps: int = 25
    max_steps: int = MAX_STEPS
    guidance_scale: float = 7.5
    scheduler: str
    schedulers: tuple[str, ...]
    dtype: DType = "float32"
    lock_width: int = LOCK_WIDTH
    usual_lock_width: int = LOCK_WIDTH
    hints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fragile: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for; None means "as the model's card says".

    Attributes:
        seeds: One picture for each.
        model: Which model, as `seedgrid.models.registry.find` understands it; None is the default.
    """

    prompt: str
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    negative_prompt: str = ""
    model: str | None = None
    width: int | None = None
    height: int | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    scheduler: str | None = None
    dtype: str | None = None
    lock_width: int | None = None
    determinism: str | None = None
    loras: tuple[Lora, ...] = ()
    noise_mix: tuple[NoiseShare, ...] = ()


def resolve(request: Request, card: ModelCard) -> tuple[Recipe, ...]:
    """Turn a request into one complete recipe for each of its seeds.

    Args:
        request: What was asked for.
        card: The model that will paint.

    Returns:
        Recipes in the order of `request.seeds`.

    Raises:
        InputError: The first thing that cannot be, by field, with the value and what to do.
    """
    width, height = _check_size(request, card)
    prompt = check_prompt(request.prompt, field="prompt") if card.has_prompt else ""
    if card.has_prompt and not prompt.strip():
        raise InputError("prompt_empty", field="prompt")
    negative = check_prompt(request.negative_prompt, field="negative") if card.has_prompt else ""
    base = Recipe(
        prompt=prompt,
        negative_prompt=negative if card.has_negative_prompt else "",
        seed=0,
        width=width,
        height=height,
        num_inference_steps=_check_steps(request, card),
        guidance_scale=_check_guidance(request, card),
        scheduler=_check_scheduler(request, card),
        model=card.ref,
        dtype=cast("DType", _one_of("dtype", request.dtype or card.dtype, get_args(DType))),
        lock_width=_check_lock_width(request, card),
        determinism=cast(
            "Determinism",
            _one_of(
                "determinism", request.determinism or DEFAULT_DETERMINISM, get_args(Determinism)
            ),
        ),
        loras=request.loras,
        noise_mix=request.noise_mix,
    )
    if not request.seeds:
        raise InputError("seed_text", field="seeds", value="")
    return tuple(base.model_copy(update={"seed": check_seed(seed)}) for seed in request.seeds)


def refine(
    parent: Recipe, suffixes: Sequence[str], *, prompt: str | None = None
) -> tuple[Recipe, ...]:
    """Vary the words of a recipe and keep everything else, its seed above all.

    Args:
        parent: The recipe of the picture that was picked.
        suffixes: Appended to the base prompt, one recipe each.
        prompt: The base prompt; the parent's own by default.

    Returns:
        One recipe for each suffix that says something, all on the parent's seed.

    Raises:
        InputError: `variations_empty`, or the prompt is empty or too long.

    Source:
        https://huggingface.co/docs/diffusers/using-diffusers/reusing_seeds
    """
    base = parent.prompt if prompt is None else check_prompt(prompt, field="prompt")
    if not base.strip():
        raise InputError("prompt_empty", field="prompt")
    return tuple(
        parent.model_copy(update={"prompt": check_prompt(text, field="vary")})
        for text in vary(base, suffixes)
    )


def neighbours(parent: Recipe, seeds: Sequence[int], *, weight: float) -> tuple[Recipe, ...]:
    """Go a little way from a recipe's noise towards that of other seeds, and keep everything else.

    Args:
        parent: The recipe of the picture that was picked; its own mix stays in front.
        seeds: One recipe for each.
        weight: How far to go, `SUBTLE` or `STRONG` for example; above 0 and at most 1.

    Returns:
        Recipes that differ from the parent, and from each other, in their last share of noise.
    """
    return tuple(
        parent.replace(
            noise_mix=(*parent.noise_mix, NoiseShare(seed=check_seed(seed), weight=weight))
        )
        for seed in seeds
    )


def check_prompt(text: str, *, field: str) -> str:
    """Return the text if a recipe can hold it; line ends become newlines, nothing else changes.

    Raises:
        InputError: `prompt_long` or `prompt_characters`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise InputError("prompt_long", field=field, value=len(text), limit=MAX_PROMPT_CHARACTERS)
    for character in text:
        if (character < " " and character not in "\n\t") or character == "\x7f":
            raise InputError("prompt_characters", field=field, value=f"U+{ord(character):04X}")
        if "\ud800" <= character <= "\udfff":
            raise InputError("prompt_characters", field=field, value=f"U+{ord(character):04X}")
    return text


def parse_size(text: str) -> tuple[int, int]:
    """Read a size as people write it: `512x768` is 512 wide and 768 high, `512` is a square.

    Raises:
        InputError: `size_text`.
    """
    if len(text) > _MAX_SIZE_CHARACTERS:
        raise InputError("size_text", field="size", value=text.strip()[:40])
    parts = text.lower().replace("×", "x").replace(" ", "").split("x")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError("size_text", field="size", value=text.strip()[:40])
    width, height = int(parts[0][:9]), int(parts[-1][:9])
    return width, height


def _check_size(request: Request, card: ModelCard) -> tuple[int, int]:
    width = card.width if request.width is None else request.width
    height = card.height if request.height is None else request.height
    shown = f"{width}x{height}"
    if card.fixed_size and (width, height) != (card.width, card.height):
        raise InputError(
            "size_fixed", field="size", value=shown, width=card.width, height=card.height
        )
    low = max(MIN_SIZE_PX, card.size_multiple)
    if not (low <= width <= MAX_SIZE_PX and low <= height <= MAX_SIZE_PX) and not card.fixed_size:
        raise InputError("size_range", field="size", value=shown, low=low, high=MAX_SIZE_PX)
    if (width % card.size_multiple or height % card.size_multiple) and not card.fixed_size:
        raise InputError("size_multiple", field="size", value=shown, multiple=card.size_multiple)
    return width, height


def _check_steps(request: Request, card: ModelCard) -> int:
    steps = request.num_inference_steps
    steps = card.num_inference_steps if steps is None else steps
    limit = min(MAX_STEPS, card.max_steps)
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= limit:
        raise InputError("steps_range", field="steps", value=steps, limit=limit)
    return steps


def _check_guidance(request: Request, card: ModelCard) -> float:
    guidance = card.guidance_scale if request.guidance_scale is None else request.guidance_scale
    if not math.isfinite(guidance) or not 0 <= guidance <= MAX_GUIDANCE:
        raise InputError("guidance_range", field="guidance", value=guidance)
    return float(guidance)


def _check_scheduler(request: Request, card: ModelCard) -> str:
    wanted = request.scheduler or card.scheduler
    names = {name.casefold(): name for name in card.schedulers}
    if wanted.casefold() not in names:
        choices = ", ".join(card.schedulers)
        raise InputError("scheduler_unknown", field="scheduler", value=wanted[:80], choices=choices)
    return names[wanted.casefold()]


def _check_lock_width(request: Request, card: ModelCard) -> int:
    width = card.lock_width if request.lock_width is None else request.lock_width
    if isinstance(width, bool) or width not in LOCK_WIDTHS:
        raise InputError("width_range", field="width", value=width)
    return width


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        code = f"{name}_unknown"
        raise InputError(code, field=name, value=value[:80], choices=", ".join(choices))
    return value
