"""Checks of settings: texts become values, values are checked against the model's card.

A wrong value raises an `InputError` at its field; fields.py says which check a setting has.

    >>> parse_seeds("0-3"), parse_seeds("7, 11 42")
    ((0, 1, 2, 3), (7, 11, 42))
    >>> parse_size("512x768")
    (512, 768)
    >>> write_mix(read_mix("5:.1, 7:0.3"))  # a tenth towards the noise of seed 5, then on to 7
    '5:0.1,7:0.3'
"""

import re
import secrets
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final, TypeGuard, get_args

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError
from seedgrid.core.recipe import (
    LOCK_WIDTHS,
    MAX_GUIDANCE,
    MAX_PROMPT_CHARACTERS,
    MAX_SEED,
    MAX_SHARES,
    MAX_SIZE_PX,
    MAX_STEPS,
    MIN_SIZE_PX,
    Determinism,
    DType,
    NoiseShare,
)
from seedgrid.core.text import write_decimal

DEFAULT_DETERMINISM: Final[Determinism] = "strict"
DEFAULT_STRENGTH: Final = 0.6
MIN_STRENGTH: Final = 0.01
_DIGEST_DIGITS: Final = 64
_SHOWN: Final = 40  # Characters of a wrong value that an error shows


def in_range(name: str, value: float, low: float, high: float) -> float:
    """Return a decimal number if it is within its bounds; NaN is not."""
    if not low <= value <= high:
        raise InputError(f"{name}_range", field=name, value=value)
    return float(value) + 0.0  # -0.0 becomes 0.0: as JSON they differ, and so would the ids.


def check_prompt(text: str, *, field: str) -> str:
    """Return the text if a recipe can hold it; line ends become newlines, nothing else changes."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise InputError("prompt_long", field=field, value=len(text), limit=MAX_PROMPT_CHARACTERS)
    for character in text:
        is_control = (character < " " and character not in "\n\t") or character == "\x7f"
        if is_control or "\ud800" <= character <= "\udfff":
            raise InputError("prompt_characters", field=field, value=f"U+{ord(character):04X}")
    return text


def parse_size(text: str) -> tuple[int, int]:
    """Read a size as people write it: `512x768` is 512 wide and 768 high, `512` is a square."""
    parts = text.lower().replace("×", "x").replace(" ", "").split("x")
    is_size = len(parts) <= 2 and all(part.isascii() and part.isdigit() for part in parts)
    if len(text) > _SHOWN or not is_size:
        raise InputError("size_text", field="size", value=text.strip()[:_SHOWN])
    width, height = int(parts[0][:9]), int(parts[-1][:9])
    return width, height


def parse_start(text: str) -> str:
    """Read the id of a picture, or the digest of its pixels: hexadecimal digits."""
    text = text.strip().lower()
    if not text or len(text) > _DIGEST_DIGITS or set(text) - set("0123456789abcdef"):
        raise InputError("start_unknown", field="start", value=text[:_SHOWN])
    return text


def check_start(start: str | None, card: ModelCard) -> str:
    """Return the digest of the start's pixels; empty without a start."""
    if not start:
        return ""
    if not card.has_start:
        raise InputError("start_family", field="start", value=card.ref.id, family=card.family)
    if len(start) != _DIGEST_DIGITS:
        raise InputError("start_unknown", field="start", value=start[:_SHOWN])
    return parse_start(start)


def check_strength(strength: float | None, _: ModelCard) -> float:
    """Return the strength, `DEFAULT_STRENGTH` if it is None."""
    strength = DEFAULT_STRENGTH if strength is None else strength
    return in_range("strength", strength, MIN_STRENGTH, 1)


def check_steps_run(num_inference_steps: int, strength: float) -> None:
    """Refuse a strength at which no step would be run."""
    if int(num_inference_steps * strength) < 1:
        raise InputError(
            "strength_small", field="strength", value=strength, steps=num_inference_steps
        )


def check_words(text: str, card: ModelCard) -> str:
    """Return the prompt; an unconditional model gets an empty one."""
    if not card.has_prompt:
        return ""
    if not text.strip():
        raise InputError("prompt_empty", field="prompt")
    return check_prompt(text, field="prompt")


def check_negative(text: str, card: ModelCard) -> str:
    """Return the negative prompt; empty for a model that does not use it."""
    negative = check_prompt(text, field="negative") if card.has_prompt else ""
    return negative if card.has_negative_prompt else ""


def check_weights(is_on: bool, card: ModelCard) -> bool:
    """Return whether brackets weigh words; raise `weights_family` if the model cannot do so."""
    if is_on and not card.has_weights:
        raise InputError("weights_family", field="weights", value=card.ref.id)
    return bool(is_on)


def check_size(size: tuple[int | None, int | None], card: ModelCard) -> tuple[int, int]:
    """Return width and height in pixels."""
    width = card.width if size[0] is None else size[0]
    height = card.height if size[1] is None else size[1]
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


def check_steps(steps: int | None, card: ModelCard) -> int:
    """Return the number of steps."""
    steps = card.num_inference_steps if steps is None else steps
    limit = min(MAX_STEPS, card.max_steps)
    if not _is_whole(steps) or not 1 <= steps <= limit:
        raise InputError("steps_range", field="steps", value=steps, limit=limit)
    return steps


def check_guidance(guidance: float | None, card: ModelCard) -> float:
    """Return the guidance."""
    guidance = card.guidance_scale if guidance is None else guidance
    return in_range("guidance", guidance, 0, MAX_GUIDANCE)


def check_scheduler(scheduler: str | None, card: ModelCard) -> str:
    """Return the scheduler's name as the card writes it."""
    chosen = scheduler or card.scheduler
    names = {_normalised(name): name for name in card.schedulers}
    if _normalised(chosen) not in names:
        choices = ", ".join(card.schedulers)
        raise InputError("scheduler_unknown", field="scheduler", value=chosen[:80], choices=choices)
    return names[_normalised(chosen)]


def _normalised(name: str) -> str:
    """Normalise a name for comparison: `euler_a` equals `Euler a`."""
    return " ".join(name.casefold().replace("_", " ").split())


def check_dtype(dtype: str | None, card: ModelCard) -> str:
    """Return the number format; `int8` is the model's own, with most weights stored in 8 bits."""
    wanted = f"int8-{card.dtype}" if dtype == "int8" else dtype or card.dtype
    check_quantiser(wanted)
    return _one_of("dtype", wanted, get_args(DType))


def check_quantiser(dtype: str) -> None:
    """Refuse a number format of 8 bits where the library that makes it is not installed."""
    if dtype.startswith("int8-") and find_spec("sdnq") is None:
        raise InputError("dtype_library", field="dtype", value=dtype)


def check_determinism(level: str | None, _: ModelCard) -> str:
    """Return the level of determinism."""
    return _one_of("determinism", level or DEFAULT_DETERMINISM, get_args(Determinism))


def check_lock_width(width: int | None, card: ModelCard) -> int:
    """Return the lock width."""
    width = card.lock_width if width is None else width
    if not _is_whole(width) or width not in LOCK_WIDTHS:
        raise InputError("width_range", field="width", value=width)
    return width


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        code = f"{name}_unknown"
        raise InputError(code, field=name, value=value[:80], choices=", ".join(choices))
    return value


MAX_MIX_CHARACTERS: Final = 420 * MAX_SHARES
# 400 decimals: enough to write the smallest float without an exponent.
_SHARE: Final = re.compile(r"(\d{1,10}):(0?\.\d{1,400}|1(?:\.0+)?)", re.ASCII)


def read_mix(text: str) -> tuple[NoiseShare, ...]:
    """Read `SEED:WEIGHT, …`, mixed in this order; blank is no mix; raise `mix_text`."""
    parts = text.replace(" ", "").split(",") if text.strip() else []
    if len(text) > MAX_MIX_CHARACTERS or len(parts) > MAX_SHARES:
        raise _mix_error(text)
    return tuple(_read_share(part) for part in parts)


def write_mix(mix: Sequence[NoiseShare]) -> str:
    """Write a noise mix as it is typed, `"5:0.1,7:0.3"`; empty for none."""
    return ",".join(f"{share.seed}:{write_decimal(share.weight)}" for share in mix)


def _read_share(text: str) -> NoiseShare:
    match = _SHARE.fullmatch(text)
    seed, weight = (int(match[1]), float(match[2])) if match else (0, 0.0)
    if weight == 0 or seed > MAX_SEED:
        raise _mix_error(text)
    return NoiseShare(seed=seed, weight=weight)


def _mix_error(text: str) -> InputError:
    return InputError("mix_text", field="mix", value=text.strip()[:40])


MAX_SEEDS_AT_ONCE: Final = 256
RANDOM: Final = "random"  # Typed to draw four seeds; recipes hold the drawn numbers
NUM_DRAWN: Final = 4

MAX_SEEDS_CHARACTERS: Final = 10_000  # Of a list; 256 seeds with commas take a third of it

# Possessive quantifiers: the time is linear in the length.
_SEED_RANGE: Final = re.compile(r"(-?\d{1,20}+)(?:\s*+[-–…]\s*+(\d{1,20}+))?+")
_BETWEEN: Final = r"(?:\s++(?:[,;]\s*+)?+|[,;]\s*+)"
_SEED_LIST: Final = re.compile(
    rf"{_SEED_RANGE.pattern}(?:{_BETWEEN}{_SEED_RANGE.pattern})*+{_BETWEEN}?+"
)


def check_seed(value: object) -> int:
    """Return `value` if it is a seed, a whole number from 0 to 2**32 - 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError("seed_text", field="seeds", value=value)
    if not 0 <= value <= MAX_SEED:
        raise InputError("seed_range", field="seeds", value=value)
    return value


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read seeds, as in `"7"` or `"0-1, 9"`, in order and with repeats; `"random"` draws four.

    Raise `seeds_long`, `seed_text`, `seed_range` or `seed_count`, naming the value.
    """
    if text.strip().casefold() == RANDOM:
        return tuple(draw_seed() for _ in range(NUM_DRAWN))
    if len(text) > MAX_SEEDS_CHARACTERS:
        raise InputError("seeds_long", field="seeds", value=len(text), limit=MAX_SEEDS_CHARACTERS)
    if _SEED_LIST.fullmatch(text.strip()) is None:
        raise InputError("seed_text", field="seeds", value=text.strip()[:80])
    seeds: list[int] = []
    for first_digits, last_digits in _SEED_RANGE.findall(text):
        first = check_seed(int(first_digits))
        last = check_seed(int(last_digits or first_digits))
        if last < first:
            raise InputError("seed_text", field="seeds", value=f"{first}-{last}")
        count = len(seeds) + last - first + 1
        if count > MAX_SEEDS_AT_ONCE:
            raise InputError("seed_count", field="seeds", value=count, limit=MAX_SEEDS_AT_ONCE)
        seeds.extend(range(first, last + 1))
    return tuple(seeds)


def check_count(num_pictures: int, *, field: str) -> None:
    """Refuse more pictures than one run may paint; raise `pictures_count`."""
    if num_pictures > MAX_SEEDS_AT_ONCE:
        raise InputError("pictures_count", field=field, value=num_pictures, limit=MAX_SEEDS_AT_ONCE)


def draw_seed() -> int:
    """Draw a seed from the operating system; no generator of the process changes."""
    return secrets.randbelow(MAX_SEED + 1)


def format_seeds(seeds: tuple[int, ...]) -> str:
    """Write seeds so that `parse_seeds` reads them back: runs of three and more become ranges.

    >>> format_seeds((0, 1, 2, 3, 9))
    '0-3, 9'
    """
    parts: list[str] = []
    start = 0
    for index in range(1, len(seeds) + 1):
        if index < len(seeds) and seeds[index] == seeds[index - 1] + 1:
            continue
        run = seeds[start:index]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(seed) for seed in run]
        start = index
    return ", ".join(parts)
