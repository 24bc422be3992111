"""What differs between two pictures, pixel by pixel, and between two passports.

>>> import numpy as np
>>> black = np.zeros((2, 2, 3), np.uint8)
>>> compare_pixels(black, black).is_identical
True

Another number of threads, other instructions or kernels sum the same numbers in another order. The
effect was measured by changing one setting at a time (docs/lock.md): in float32 a few pixels
differ, by one. Different pixels are explained only by a passport that differs in such a setting,
and only up to `_MAX_DIFFERENCE` and `_MAX_SHARE`.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from seedgrid.core.errors import Notice
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport
from seedgrid.diffusion import process
from seedgrid.locales import english
from seedgrid.models.files import QUANTISERS

_FULL_BRIGHTNESS: Final = 16
_MAX_DIFFERENCE: Final = 2  # of 255; twice the largest measured difference in float32
_MAX_SHARE: Final = 0.01  # Of the pixels; several times the measured largest in float32, 0.0024
_FIELD_NAMES: Final[dict[str, str]] = {
    "device_name": "device",
    "cpu_capability": "CPU instructions",
    "instruction_limits": "instruction limit",
    "memory_format": "memory format",
    "vae_slicing": "VAE slicing",
    "vae_tiling": "VAE tiling",
}

_ROUNDING: Final = frozenset(  # Fields of the passport that change rounding
    {
        *("torch", "diffusers", "transformers", "peft", "spandrel"),
        *QUANTISERS,
        *("device", "device_name", "driver", "cpu_capability", "instruction_limits", "threads"),
        *("precision", "attention", "memory_format", "vae_slicing", "vae_tiling"),
        "determinism.onednn",
    }
)

_UNKNOWN_EFFECT: Final = frozenset({"seedgrid", "offload", "determinism"})
"""Fields whose effect is unknown: if only these differ, other pixels are `drifted`."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """The smallest rectangle around all pixels that differ, in pixels from the top left."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far apart two pictures are."""

    max_abs_diff: int  # the largest difference of a channel, 0 … 255
    psnr_db: float | None  # peak signal-to-noise ratio; None, meaning infinite, for equal pictures
    differing_pixels: int  # pixels that differ in any channel
    num_pixels: int
    where: Box | None  # around the differing pixels; None if none differ

    @property
    def is_identical(self) -> bool:
        """Whether every bit is equal."""
        return self.max_abs_diff == 0

    @property
    def share(self) -> float:
        """The share of pixels that differ, 0 … 1."""
        return self.differing_pixels / self.num_pixels


def compare_pixels(one: Pixels, other: Pixels) -> Comparison | None:
    """Compare two pictures; None where their sizes differ."""
    if one.shape != other.shape:
        return None
    distance = _distance(one, other)
    differs: NDArray[np.bool_] = np.any(distance, axis=-1)
    mean_square = float(np.square(distance, dtype=np.int32).mean())
    psnr_db = 10 * math.log10(255**2 / mean_square) if mean_square else None
    return Comparison(
        max_abs_diff=int(distance.max(initial=0)),
        psnr_db=None if psnr_db is None else round(psnr_db, 2),
        differing_pixels=int(differs.sum()),
        num_pixels=differs.size,
        where=_box(differs),
    )


def figures_of(comparison: Comparison | None) -> dict[str, Any]:
    """Return what the commands print of a comparison, as JSON; without one, values are None."""
    names = ("max_abs_diff", "psnr_db", "differing_pixels", "where")
    values = asdict(comparison) if comparison else {}
    return {name: values.get(name) for name in names}


def difference_picture(one: Pixels, other: Pixels) -> Pixels:
    """Show where two pictures of one size differ: black if equal, full from a difference of 16."""
    scaled = np.minimum(_distance(one, other), _FULL_BRIGHTNESS) * 255 // _FULL_BRIGHTNESS
    return scaled.astype(np.uint8)


def _distance(one: Pixels, other: Pixels) -> NDArray[np.int16]:
    return np.abs(one.astype(np.int16) - other.astype(np.int16))


def _box(differs: NDArray[np.bool_]) -> Box | None:
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not rows.size:
        return None
    return Box(
        left=int(columns[0]),
        top=int(rows[0]),
        width=int(columns[-1] - columns[0]) + 1,
        height=int(rows[-1] - rows[0]) + 1,
    )


class Reason(Notice):
    """A reason of a verdict: a code with data, and a sentence in each language."""

    sentences = english().reasons

    @property
    def is_difference(self) -> bool:
        """Whether the reason is that the passports differ, or that the file has none."""
        return self.code in {"passport_field", "passport_missing"}


def explain(
    then: Passport, now: Passport, comparison: Comparison
) -> tuple[Literal["close", "drifted", "altered"], tuple[Reason, ...]]:
    """Judge other pixels by the differences of two passports; return a verdict and its reasons."""
    if then == Passport():
        return "drifted", ()
    before, after = _flat(then), _flat_with_defaults(now)
    own_fields = {_field_of(name) for name in after}
    # An unknown field explains nothing: anybody can write one into a file.
    differing = [
        name
        for name, value in before.items()
        if after.get(name) != value and _field_of(name) in own_fields
    ]
    explaining = [name for name in differing if name in after and _changes_rounding(name)]
    if explaining:
        is_small = comparison.max_abs_diff <= _MAX_DIFFERENCE and comparison.share <= _MAX_SHARE
        data = {"limit": _MAX_DIFFERENCE, "share": f"{_MAX_SHARE:.0%}"}
        reason = Reason("close" if is_small else "unexplained", names=_listed(explaining), **data)
        return ("close" if is_small else "drifted"), (reason,)
    if any(map(_may_change_pixels, differing)):
        return "drifted", ()
    if unknown := [name for name in after if name not in before and _may_change_pixels(name)]:
        return "drifted", (Reason("passport_unknown", names=_listed(unknown)),)
    return "altered", (Reason("same_passport"),)


def passport_differences(then: Passport, now: Passport) -> tuple[Reason, ...]:
    """Return the differences of two passports, in the order of the fields."""
    if then == Passport():
        return (Reason("passport_missing"),)
    before, after = _flat(then), _flat_with_defaults(now)
    return tuple(
        Reason("passport_field", name=_in_words(name), then=value, now=after.get(name, "unknown"))
        for name, value in before.items()
        if after.get(name) != value
    )


def passport_changes(before: Passport, after: Passport) -> tuple[tuple[str, str], ...]:
    """Return the names and values of fields in which the second passport differs."""
    old = _flat(before)
    return tuple(
        (_in_words(name), value) for name, value in _flat(after).items() if old.get(name) != value
    )


def _changes_rounding(name: str) -> bool:
    return name in _ROUNDING or _field_of(name) in _ROUNDING


def _may_change_pixels(name: str) -> bool:
    return _changes_rounding(name) or _field_of(name) in _UNKNOWN_EFFECT


def _flat_with_defaults(passport: Passport) -> dict[str, str]:
    """Return a passport's fields as `_flat`, as if those with default values were set too."""
    return _flat(Passport(**passport.model_dump()))


def _flat(passport: Passport) -> dict[str, str]:
    """Return set, non-empty fields as texts, dictionaries by `name.key`, no limit as "not set"."""
    flat: dict[str, str] = {}
    set_fields = passport.model_fields_set
    for name, value in passport.model_dump(mode="json").items():
        if name == "instruction_limits":
            limits = dict.fromkeys(process.LIMIT_NAMES, "not set") if name in set_fields else {}
            flat |= {f"{name}.{key}": str(item) for key, item in sorted((limits | value).items())}
        elif isinstance(value, dict):
            flat |= {f"{name}.{key}": str(item) for key, item in sorted(value.items())}
        elif name in set_fields and (isinstance(value, bool) or value not in ("", 0, None)):
            flat[name] = str(value)
    return flat


def _field_of(name: str) -> str:
    return name.partition(".")[0]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(map(_in_words, names)))


def _in_words(name: str) -> str:
    field_name, _, key = name.partition(".")
    words = _FIELD_NAMES.get(field_name, field_name)
    return f"{words} {key.replace('_', ' ')}" if key else words
