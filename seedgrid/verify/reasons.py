"""The reasons of a verdict, and what a difference of two passports explains.

A reason is a code with data and a sentence in each language, as errors are. Other threads,
instructions or kernels sum the same numbers in another order. The effect was measured by changing
one setting at a time (docs/lock.md): a few pixels differ by one, rarely by two. Only such a
difference of the passports explains other pixels, and only up to these limits.
"""

from collections.abc import Iterable
from typing import Final, Literal

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import Passport
from seedgrid.diffusion import processor
from seedgrid.locales import english
from seedgrid.models.files import QUANTISERS
from seedgrid.verify.comparison import Comparison

_MAX_DIFFERENCE: Final = 2
"""Of 255; twice the largest measured difference in float32."""
_MAX_SHARE: Final = 0.01
"""Of the pixels; several times the largest measured share in float32, 0.0024."""
_FIELD_NAMES: Final[dict[str, str]] = {
    "device_name": "device",
    "cpu_capability": "CPU instructions",
    "instruction_limits": "instruction limit",
    "memory_format": "memory format",
    "vae_slicing": "VAE slicing",
    "vae_tiling": "VAE tiling",
}


class Reason(Notice):
    """A reason of a verdict."""

    sentences = english().reasons

    @property
    def is_difference(self) -> bool:
        """Whether it is a difference of the passports."""
        return self.code in {"passport_field", "passport_missing"}


_ROUNDING: Final = frozenset(
    {
        *("torch", "diffusers", "transformers", "peft", "spandrel"),
        *QUANTISERS,
        *("device", "device_name", "driver", "cpu_capability", "instruction_limits", "threads"),
        *("precision", "attention", "memory_format", "vae_slicing", "vae_tiling"),
        "determinism.onednn",
    }
)
"""Fields of the passport that change rounding."""

_UNKNOWN_EFFECT: Final = frozenset({"seedgrid", "offload", "determinism"})
"""Fields that may change anything: other pixels are neither altered nor close."""


def explain(
    then: Passport, now: Passport, comparison: Comparison
) -> tuple[Literal["close", "drifted", "altered"], tuple[Reason, ...]]:
    """Tell whether a difference of two passports explains other pixels."""
    if then == Passport():
        return "drifted", ()
    before, after = _flat(then), _flat_now(now)
    known_fields = {_field_of(name) for name in after}
    # An unknown field explains nothing: anybody can write one into a file.
    differing = [
        name
        for name, value in before.items()
        if after.get(name) != value and _field_of(name) in known_fields
    ]
    explaining = [name for name in differing if name in after and _rounds(name)]
    if explaining:
        has_few = comparison.max_abs_diff <= _MAX_DIFFERENCE and comparison.share <= _MAX_SHARE
        data = {"limit": _MAX_DIFFERENCE, "share": f"{_MAX_SHARE:.0%}"}
        reason = Reason("close" if has_few else "unexplained", names=_listed(explaining), **data)
        return ("close" if has_few else "drifted"), (reason,)
    if any(map(_may_matter, differing)):
        return "drifted", ()
    if unknown := [name for name in after if name not in before and _may_matter(name)]:
        return "drifted", (Reason("passport_unknown", names=_listed(unknown)),)
    return "altered", (Reason("same_passport"),)


def passport_differences(then: Passport, now: Passport) -> tuple[Reason, ...]:
    """Return the differences of two passports, in the order of the fields."""
    if then == Passport():
        return (Reason("passport_missing"),)
    before, after = _flat(then), _flat_now(now)
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


def _rounds(name: str) -> bool:
    return name in _ROUNDING or _field_of(name) in _ROUNDING


def _may_matter(name: str) -> bool:
    return _rounds(name) or _field_of(name) in _UNKNOWN_EFFECT


def _flat_now(passport: Passport) -> dict[str, str]:
    """Return every field of a passport of this release, with defaults."""
    return _flat(Passport(**passport.model_dump()))


def _flat(passport: Passport) -> dict[str, str]:
    """Return every set field as a text, those of dictionaries by `name.key`.

    A field that an older release did not have is left out; missing instruction limits mean none.
    """
    flat: dict[str, str] = {}
    known = passport.model_fields_set
    for name, value in passport.model_dump(mode="json").items():
        if name == "instruction_limits":
            limits = dict.fromkeys(processor.LIMIT_NAMES, "not set") if name in known else {}
            flat |= {f"{name}.{key}": str(item) for key, item in sorted((limits | value).items())}
        elif isinstance(value, dict):
            flat |= {f"{name}.{key}": str(item) for key, item in sorted(value.items())}
        elif name in known and (isinstance(value, bool) or value not in ("", 0, None)):
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
