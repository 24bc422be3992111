"""What there is to say about a verdict: a code, its data, and one English sentence.

Other languages translate the code, as they do for errors.
"""

from collections.abc import Iterable
from typing import Final

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import Passport
from seedgrid.diffusion import processor
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


class Reason(Notice):
    """One thing to say."""

    sentences = REASONS

    @property
    def is_difference(self) -> bool:
        """Whether it tells how then and now differ."""
        return self.code in {"passport_field", "passport_missing"}


def passport_differences(then: Passport, now: Passport) -> tuple[Reason, ...]:
    """Say in words how two passports differ, the most telling first: in the order of the fields."""
    if then == Passport():
        return (Reason("passport_missing"),)
    before, after = _flat(then), _flat_now(now)
    return tuple(
        Reason("passport_field", name=_in_words(name), then=value, now=after.get(name, "unknown"))
        for name, value in before.items()
        if after.get(name) != value
    )


def differing_fields(then: Passport, now: Passport) -> tuple[tuple[str, str], ...]:
    """Return the fields of which the older passport says something else, with what it says.

    Those of dictionaries come as `name.key`. What only the newer one says is `unknown_fields`.
    """
    after = _flat_now(now)
    return tuple((name, value) for name, value in _flat(then).items() if after.get(name) != value)


def known_fields(passport: Passport) -> tuple[str, ...]:
    """Return the fields of which a passport says something, as `name` or `name.key`."""
    return tuple(_flat_now(passport))


def unknown_fields(then: Passport, now: Passport) -> tuple[str, ...]:
    """Return the fields of which the older passport says nothing."""
    before = _flat(then)
    return tuple(name for name in _flat_now(now) if name not in before)


def passport_changes(before: Passport, after: Passport) -> tuple[tuple[str, str], ...]:
    """Return the fields, in words, that the second passport has and the first has otherwise."""
    old = _flat(before)
    return tuple(
        (_in_words(name), value) for name, value in _flat(after).items() if old.get(name) != value
    )


def in_words(names: Iterable[str]) -> str:
    """Return fields as a list that people read."""
    return ", ".join(dict.fromkeys(_in_words(name) for name in names))


def _flat_now(passport: Passport) -> dict[str, str]:
    """Return every field of a passport of this release: what it leaves out is as usual."""
    return _flat(Passport(**passport.model_dump()))


def _flat(passport: Passport) -> dict[str, str]:
    """Return every field that is known as a text, those of dictionaries by `name.key`.

    A passport of an older release lacks fields, which is not the same as saying no; but no
    instruction limits are none.
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


def _in_words(name: str) -> str:
    field_name, _, key = name.partition(".")
    words = FIELD_NAMES.get(field_name, field_name)
    return f"{words} {key.replace('_', ' ')}" if key else words
