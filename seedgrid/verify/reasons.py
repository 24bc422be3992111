"""What there is to say about a verdict: a code, its data, and one English sentence.

Other languages translate the code, as they do for errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from seedgrid.core.errors import plain_data
from seedgrid.core.recipe import Passport
from seedgrid.locales import english

REASONS: Final = english().reasons
"""The English sentence of each code: `reasons` in `locales/en.json`."""

FIELD_NAMES: Final[dict[str, str]] = {
    "device_name": "device",
    "cpu_capability": "CPU instructions",
    "instruction_limits": "instruction limit",
    "memory_format": "memory format",
    "vae_slicing": "VAE slicing",
    "vae_tiling": "VAE tiling",
}


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One thing to say.

    Attributes:
        code: A key of `REASONS`.
        data: What the sentence is filled with.
    """

    code: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def is_difference(self) -> bool:
        """Whether it tells how then and now differ."""
        return self.code in {"passport_field", "passport_missing"}

    def __str__(self) -> str:
        return REASONS[self.code].format(**self.data)


def reason(code: str, **data: Any) -> Reason:  # noqa: ANN401 (what a sentence is filled with)
    """Make a reason.

    Args:
        code: A key of `REASONS`.
        data: What the sentence is filled with.
    """
    return Reason(code=code, data=plain_data(data))


def passport_differences(then: Passport, now: Passport) -> tuple[Reason, ...]:
    """Say in words how two passports differ, the most telling first: in the order of the fields.

    Returns:
        Nothing when they are equal; one reason when the older is empty.
    """
    if then == Passport():
        return (reason("passport_missing"),)
    before, after = _flat(then), _flat(now)
    return tuple(
        reason(
            "passport_field",
            name=_in_words(name),
            then=before.get(name, "unknown"),
            now=after.get(name, "unknown"),
        )
        for name in before | after
        if before.get(name) != after.get(name)
    )


def passport_changes(before: Passport, after: Passport) -> tuple[tuple[str, str], ...]:
    """Return the fields, in words, that the second passport has and the first has otherwise."""
    old = _flat(before)
    return tuple(
        (_in_words(name), value) for name, value in _flat(after).items() if old.get(name) != value
    )


def _flat(passport: Passport) -> dict[str, str]:
    """Return every field as a text, those of dictionaries by `name.key`."""
    flat: dict[str, str] = {}
    for name, value in passport.model_dump(mode="json").items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": str(item) for key, item in sorted(value.items())}
        else:
            flat[name] = str(value) if value != "" else "unknown"
    return flat


def _in_words(name: str) -> str:
    field_name, _, key = name.partition(".")
    words = FIELD_NAMES.get(field_name, field_name)
    return f"{words} {key.replace('_', ' ')}" if key else words
