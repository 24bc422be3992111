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
LORA: Final = re.compile(r"(?:[^\s,;:]{1,80}+[ :] {0,4}+)?+[-+]?[\d.]++")
"""The form of a value behind the name of its field, in a variation."""

_EFFECTS: Final[dict[str, Effect]] = {"recipe": "other", "placement": "last", "run": "same"}
_WHOLE: Final = re.compile(r"-?\d{1,9}", re.ASCII)
_DECIMAL: Final = re.compile(r"[-+]?(?=\.?\d)\d{0,20}\.?\d{0,400}", re.ASCII)
_SHOWN: Final = 40


@dataclass(frozen=True)
class Field:
    """The declaration of one setting."""

    name: str  # On the page (`sg-NAME`), on the command line (`--NAME`), in links and in errors
    _: KW_ONLY
    # `"recipe"`: decides the picture; `"placement"`: where it is computed; `"run"`: neither
    scope: Literal["recipe", "placement", "run"] = "recipe"
    attributes: tuple[str, ...] = ()  # The attributes that it sets; by default the one it stands at
    # What the command line reads; bool is a switch. `Request` fills in its attribute's type.
    value_type: type[str | int | float | bool] = str
    # On the command line and, if a text, on the page; None: as the model's card says
    default: str | bool | None = None
    low: float = 0  # The least that a number may be
    high: float = math.inf  # The most
    read: Callable[[str], Any] | None = None  # Reads the typed text; by default by type
    write: Callable[[Any], str] | None = None  # Writes what `read` reads; by default by type
    reads_blank: bool = False  # Whether a blank text is a value; else it is unset
    # Turns a request's value, which may be None, into a recipe's, or raises; None: in no recipe
    check: Callable[[Any, ModelCard], Any] | None = None
    # The entries of its list for a model; None where the machine decides (model, device)
    choices: Callable[[ModelCard], Sequence[str]] | None = None
    has_auto: bool = False  # Whether its list begins with "auto", the model's own choice
    widget: Widget | None = None  # Its control on the page; `"bar"` is beside Generate
    row: str = ""  # Settings of one row stand side by side on the page
    is_expert: bool = False  # Whether the page shows it only under More
    effect_override: Effect | None = None  # Its `effect`; None if `scope` decides it
    help: str = ""  # Its text in `--help`; empty when it is no option
    metavar: str | None = None  # The name of its value in `--help`
    in_link: bool = True  # Whether links hold it, and links and dropped pictures fill it in
    imported: bool = False  # Whether it is a number in other tools' pictures: `ForeignSettings`
    # The form of its value in a variation, as in `steps 8`; None if a variation cannot set it
    varies: re.Pattern[str] | None = None
    decides_noise: bool = False  # Whether it changes the noise, so that a variation cannot set it

    @property
    def id(self) -> str:
        """Its component's id on the page, without `sg-`; errors name it so."""
        return self.name.replace("_", "-")

    @property
    def effect(self) -> Effect:
        """The effect of another value: other pixels, perhaps other last bits, or none."""
        return self.effect_override or _EFFECTS[self.scope]

    def read_typed(self, typed: Any) -> Any:  # noqa: ANN401 (each field has its own type)
        """Return the value of what was typed or switched; None if it is unset; raise InputError."""
        if isinstance(typed, str):
            return self.parse(typed) if self.reads_blank or typed.strip() else None
        return None if typed is False else typed

    def parse(self, text: str) -> Any:  # noqa: ANN401 (same)
        """Read a text, a blank one too; raise InputError by this field."""
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
        """Return the recipe's attributes for its value in a request; none without a check."""
        return self.as_attributes(self.check(self.value_in(request), card)) if self.check else {}

    def value_in(self, request: object) -> Any:  # noqa: ANN401 (same)
        """Return its value in a request; a tuple if it sets several attributes, as a size does."""
        values = tuple(getattr(request, name) for name in self.attributes)
        return values if len(values) > 1 else values[0]

    def text(self, request: object) -> str:
        """Return its value in a request as it is typed; empty if it is unset."""
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
