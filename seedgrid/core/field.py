"""Field: the declaration of one setting; fields.py has one for each."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import InputError
from seedgrid.core.text import write_decimal

Effect = Literal["other", "last", "same"]
Widget = Literal["bar", "words", "lines", "text", "number", "choice", "switch"]

NUMBER: Final = re.compile(r"[-+]?[\d.]++(?:,\d++)?")
NAME: Final = re.compile(r"[^\s,;]++")
LINE: Final = re.compile(r"[^,;]++")
TEXT: Final = re.compile(r"[^;]++")
SEEDS: Final = re.compile(r"\d[\d-]*+")
SIZE: Final = re.compile(r"\d[\dx×]*+")
LORA: Final = re.compile(r"(?:[^\s,;:]{1,80}+[ :] {0,4}+)?+[-+]?[\d.]++(?:,\d++)?")
"""Patterns of the value that follows a field's name in a variation, as in `steps 8`."""

_EFFECTS: Final[dict[str, Effect]] = {"recipe": "other", "placement": "last", "run": "same"}
_WHOLE: Final = re.compile(r"-?\d{1,9}", re.ASCII)
_DECIMAL: Final = re.compile(r"[-+]?(?=\.?\d)\d{0,20}\.?\d{0,400}", re.ASCII)
_SHOWN: Final = 40  # Characters of a wrong value that an error shows


@dataclass(frozen=True)
class Field:
    """The declaration of one setting, which the comments below call "it"."""

    name: str  # On the page (`sg-NAME`), on the command line (`--NAME`), in links and in errors
    _: KW_ONLY
    # What it decides: `"recipe"`: the picture; `"placement"`: the device; `"run"`: neither
    scope: Literal["recipe", "placement", "run"] = "recipe"
    attributes: tuple[str, ...] = ()  # Of `Request` or `Placement`; by default the declaring one
    # The option's type on the command line; bool is a switch. By default its attribute's type.
    value_type: type[str | int | float | bool] = str
    # The command line's default and, if it is a text, the page's; None leaves the field unset
    default: str | bool | None = None
    low: float = 0  # The least that a number may be
    high: float = math.inf  # The most that a number may be
    read: Callable[[str], Any] | None = None  # Parses a typed text; None: by type
    write: Callable[[Any], str] | None = None  # Formats a value as `read` parses it; None: by type
    reads_blank: bool = False  # Whether a blank text is parsed; else the field is unset
    # Turns a request's value, None if it is unset, into the recipe's, or raises InputError
    check: Callable[[Any, ModelCard], Any] | None = None
    # The options of its dropdown for a model; None for `model` and `device`, and without a dropdown
    choices: Callable[[ModelCard], Sequence[str]] | None = None
    has_auto: bool = False  # Whether the first option is "auto", the model's own choice
    widget: Widget | None = None  # Its control on the page; `"bar"` is beside Generate
    row: str = ""  # Fields of one row are side by side on the page
    is_expert: bool = False  # Whether the page shows it only under More
    effect_override: Effect | None = None  # Its `effect`; None if `scope` decides it
    help: str = ""  # Its text in `--help`; if empty, no option is made from this `Field`
    metavar: str | None = None  # The name of its value in `--help`
    in_link: bool = True  # Whether links contain it, if its scope is `"recipe"`
    imported: bool = False  # Whether it is imported as a number of `ForeignSettings`
    # The form of its value in a variation, as in `steps 8`; None if a variation cannot set it
    varies: re.Pattern[str] | None = None
    decides_noise: bool = False  # Whether it changes the noise, so that a variation cannot set it

    @property
    def id(self) -> str:
        """Its component's id on the page, without `sg-`; `InputError.field` holds this id."""
        return self.name.replace("_", "-")

    @property
    def effect(self) -> Effect:
        """What another value changes: the picture, at most its last bits, or nothing."""
        return self.effect_override or _EFFECTS[self.scope]

    def read_typed(self, typed: Any) -> Any:  # noqa: ANN401 (each field has its own type)
        """Return the value of a typed text or a switch, None if it is unset; raise InputError."""
        if isinstance(typed, str):
            return self.parse(typed) if self.reads_blank or typed.strip() else None
        return None if typed is False else typed

    def parse(self, text: str) -> Any:  # noqa: ANN401 (same)
        """Parse a text, even a blank one; raise InputError."""
        if self.read is not None:
            return self.read(text)
        if self.value_type not in (int, float):
            return text
        number = text.strip().replace(",", ".")
        pattern = _WHOLE if self.value_type is int else _DECIMAL
        if pattern.fullmatch(number) is None:
            code = f"{self.name}_range"
            raise InputError(code, field=self.name, value=text.strip()[:_SHOWN], limit=self.high)
        return self.value_type(number)

    def checked(self, request: object, card: ModelCard) -> dict[str, Any]:
        """Return recipe attributes for this field's value in a request; empty without `check`."""
        return self.as_attributes(self.check(self.value_in(request), card)) if self.check else {}

    def value_in(self, request: object) -> Any:  # noqa: ANN401 (same)
        """Return its value in a request; a tuple if it sets several attributes, as a size does."""
        values = tuple(getattr(request, name) for name in self.attributes)
        return values if len(values) > 1 else values[0]

    def text(self, request: object) -> str:
        """Return its value in a request as it is typed; empty if it is unset or off."""
        value = self.value_in(request)
        is_unset = None in value if isinstance(value, tuple) else value is None
        if is_unset or value is False:
            return ""
        if self.write is not None:
            return self.write(value)
        if value is True:
            return "yes"
        return write_decimal(value) if isinstance(value, float) else str(value)

    def as_attributes(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 (same)
        """Return the attributes that it sets, by name; none if the value is None."""
        if value is None:
            return {}
        return dict(
            zip(self.attributes, value if len(self.attributes) > 1 else (value,), strict=True)
        )
