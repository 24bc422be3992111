"""What a difference between two passports can explain, and how large it was seen to be.

Other threads, instructions or kernels add up the same numbers in another order. What that does to a
picture was measured by flipping one switch at a time (docs/lock.md): a few pixels differ by one
step, rarely two. Only such a named difference excuses a difference of the pixels, and only as far.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from seedgrid.verify.comparison import Comparison

MAX_DIFFERENCE: Final = 2
"""Of 255; twice the largest that was seen in float32."""

MAX_SHARE: Final = 0.01
"""Of the pixels; several times the largest that was seen in float32, 0.0024."""

_VERSION: Final = re.compile(r"\d++\.\d++[\w.+-]*+")


def _is_version(value: str) -> bool:
    return _VERSION.fullmatch(value) is not None


def _is_one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


def _is_text(value: str) -> bool:
    return bool(value.strip()) and value.isprintable() and len(value) <= 200


_ROUNDING: Final[dict[str, Callable[[str], bool]]] = {
    "torch": _is_version,
    "diffusers": _is_version,
    "transformers": _is_version,
    "peft": _is_version,
    "spandrel": _is_version,
    "device": lambda value: bool(re.fullmatch(r"(cpu|cuda|xpu|mps)(:\d+)?", value)),
    "device_name": _is_text,
    "driver": _is_text,
    "cpu_capability": lambda value: bool(re.fullmatch(r"[A-Z0-9_ ]{3,20}", value)),
    "instruction_limits": lambda value: bool(re.fullmatch(r"[A-Za-z0-9_, ]{1,60}", value)),
    "threads": lambda value: value.isdigit() and 0 < int(value) <= 4096,
    "precision": _is_one_of(
        "none", "ieee", "tf32", "bf16", "highest", "high", "medium", "true", "false"
    ),
    "attention": _is_text,
    "memory_format": _is_one_of("contiguous", "channels_last"),
    "vae_slicing": _is_one_of("True", "False"),
    "vae_tiling": _is_one_of("True", "False"),
    "determinism.onednn": _is_one_of("true", "false"),
}
"""Fields of the passport of which another value rounds otherwise, and what values there are."""

_UNKNOWN_EFFECT: Final = frozenset({"seedgrid", "offload", "determinism"})
"""Fields of which another value may change anything: nobody is blamed, and nothing is close."""


def explaining(values: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names among differing fields, with their values then, that round otherwise."""
    return tuple(
        name
        for name, value in values
        if (is_known := _ROUNDING.get(name, _ROUNDING.get(name.partition(".")[0])))
        and is_known(value)
    )


def that_may_matter(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some fields that may change a picture, be it by rounding or otherwise."""
    return tuple(
        name
        for name in names
        if (field := name.partition(".")[0]) in _ROUNDING or field in _UNKNOWN_EFFECT
    )


def is_rounding(comparison: Comparison) -> bool:
    """Tell whether two pictures differ no more than other rounding was seen to make them."""
    return comparison.max_abs_diff <= MAX_DIFFERENCE and comparison.share <= MAX_SHARE
