"""Every error SeedGrid raises on purpose, and its sentence.

    SeedGridError
    ├── InputError       what was asked for cannot be (exit 2); `field` names the place
    │   ├── ModelError   a model is missing, damaged, unsafe or does not fit
    │   ├── DeviceError  a device is missing or too small
    │   └── PictureError a file is not a picture that SeedGrid can read
    ├── RunError         the work was started and did not succeed (exit 1)
    │   └── RunCancelled the work was stopped on request
    └── LibraryError     the library's folder or database refuses

An error is a code and its data. Its sentence is data too, in each language of `locales/`, and says
what, the value, and what to do; the command line and Python speak English.

    raise InputError("seed_range", field="seeds", value=-1)
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from seedgrid.core.plain import one_line
from seedgrid.locales import english

MAX_VALUE_CHARACTERS: Final = 2000
"""Of one text that a sentence is filled with; it may come from a stranger's file."""

_ENDS: Final = " .。"

MESSAGES: Final = english().errors
"""The English sentence of each code: `errors` in `locales/en.json`."""


def plain_data(data: Mapping[str, object]) -> dict[str, object]:
    """Return what a sentence is filled with, its texts cut and without anything unseen.

    A reason is mostly a library's own sentence; ours goes on after it, and ends by itself.
    """
    plain = {
        name: one_line(str(value), limit=MAX_VALUE_CHARACTERS)
        if isinstance(value, str | PurePath | BaseException)
        else value
        for name, value in data.items()
    }
    return plain | {name: str(plain[name]).rstrip(_ENDS) for name in plain.keys() & {"reason"}}


class SeedGridError(Exception):
    """The root of the tree: `code`, `data` for translation, and one English sentence.

    Attributes:
        code: A key of `MESSAGES`.
        data: What the sentence is filled with.
    """

    exit_code = 1

    def __init__(self, code: str, **data: object) -> None:
        self.code = code
        self.data = plain_data(data)
        super().__init__(MESSAGES[code].format(**self.data))


class InputError(SeedGridError):
    """What was asked for cannot be done; nothing was started and nothing is lost.

    Attributes:
        field: The request's field to blame, for example `"seeds"`.
    """

    exit_code = 2

    def __init__(self, code: str, *, field: str, **data: object) -> None:
        super().__init__(code, field=field, **data)
        self.field = field


class ModelError(InputError):
    """A model is missing, damaged, unsafe, or does not fit the request."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="model", **data)


class DeviceError(InputError):
    """The device asked for is not on this machine."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="device", **data)


class PictureError(InputError):
    """A file is not a picture that SeedGrid can read, or it holds no recipe."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="picture", **data)


class RunError(SeedGridError):
    """The work was started and did not give a picture."""


class RunCancelled(RunError):  # noqa: N818 - a request, not an error
    """The work was stopped on request; pictures that were finished are kept."""


class LibraryError(SeedGridError):
    """The library's folder or database refuses: full, read-only, damaged, locked."""
