"""Seeds: read them from text, check them, draw new ones.

A seed is a whole number from 0 to 2**32 - 1: torch's CPU generator uses only the low 32 bits (seed
2**32 draws what seed 0 draws), and a number in a browser holds them.

    >>> parse_seeds("0-3")
    (0, 1, 2, 3)
    >>> parse_seeds("7, 11 42")
    (7, 11, 42)
"""

import re
import secrets
from typing import Final

from seedgrid.core.errors import InputError

MAX_SEED: Final = 2**32 - 1
MAX_SEEDS_AT_ONCE: Final = 256
RANDOM: Final = "random"  # Typed for four new seeds; the recipes name them
NUM_DRAWN: Final = 4

MAX_CHARACTERS: Final = 10_000  # Of a list of seeds; 256 of them with commas take a third of it

# One seed or range, then the separator. Possessive quantifiers: the time is linear in the length.
_ITEM: Final = re.compile(r"(-?\d{1,20})(?:\s*+[-–…]\s*+(\d{1,20}))?(\s*+(?:[,;]\s*+)?)")


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
    seeds: list[int] = []
    for first_digits, last_digits in _items(text):
        first, last = int(first_digits), int(last_digits)
        check_seed(first)
        check_seed(last)
        if last < first:
            raise InputError("seed_text", field="seeds", value=f"{first}-{last}")
        if len(seeds) + last - first + 1 > MAX_SEEDS_AT_ONCE:
            count = len(seeds) + last - first + 1
            raise InputError("seed_count", field="seeds", value=count, limit=MAX_SEEDS_AT_ONCE)
        seeds.extend(range(first, last + 1))
    return tuple(seeds)


def _items(text: str) -> list[tuple[str, str]]:
    """Split a list into ranges; a single seed is a range of one."""
    if len(text) > MAX_CHARACTERS:
        raise InputError("seeds_long", field="seeds", value=len(text), limit=MAX_CHARACTERS)
    text = text.strip()
    items: list[tuple[str, str]] = []
    position, is_parted = 0, True
    while position < len(text) or not items:
        item = _ITEM.match(text, position) if is_parted else None
        if item is None:
            raise InputError("seed_text", field="seeds", value=text[:80])
        items.append((item[1], item[2] or item[1]))
        position, is_parted = item.end(), bool(item[3])
    return items


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
