"""Every error SeedGrid raises on purpose, and its sentence.

    SeedGridError
    ├── InputError       the request cannot be carried out (exit 2); `field` names the wrong field
    │   ├── ModelError   a model is missing, damaged, unsafe, not permitted, or does not fit
    │   ├── DeviceError  a device is not on this machine
    │   └── PictureError a file is not a picture that SeedGrid can read
    ├── RunError         the work could not be started now, or did not succeed (exit 1)
    │   └── RunCancelled the work was stopped on request
    └── LibraryError     the library's folder, its database or a picture's file cannot be used

An error is a code and its data; `locales/` has its sentence in each language. Command line and
Python use English. A `Notice` has the same form, but is no error.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import ClassVar, Final

from seedgrid.core.text import one_line
from seedgrid.locales import english

MAX_VALUE_CHARACTERS: Final = 2000  # Of a text in a sentence; it may come from an untrusted file

MESSAGES: Final = english().errors  # `errors` in `locales/en.json`


def plain_data(data: Mapping[str, object]) -> dict[str, object]:
    """Shorten a sentence's values, escape control characters, drop the full stop of `reason`."""
    plain = dict(data)
    for name, value in data.items():
        if isinstance(value, str | PurePath | BaseException):
            plain[name] = one_line(str(value), limit=MAX_VALUE_CHARACTERS)
    if "reason" in plain:
        plain["reason"] = str(plain["reason"]).rstrip(" .。")
    return plain


class SeedGridError(Exception):
    """The root of the tree: `code`, a key of `MESSAGES`, and `data`, which fills the sentence."""

    exit_code = 1

    def __init__(self, code: str, **data: object) -> None:
        self.code = code
        self.data = plain_data(data)
        super().__init__(MESSAGES[code].format(**self.data))

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling: subclasses take other arguments than `args`."""
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(kind: type[SeedGridError], args: tuple[object, ...]) -> SeedGridError:
    return kind.__new__(kind, *args)


class InputError(SeedGridError):
    """The request cannot be carried out, and nothing is painted; `field` names the wrong field."""

    exit_code = 2

    def __init__(self, code: str, *, field: str, **data: object) -> None:
        super().__init__(code, field=field, **data)
        self.field = field


class ModelError(InputError):
    """A model is missing, damaged, unsafe, not permitted, or does not fit the request."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="model", **data)


class DeviceError(InputError):
    """The requested device is not on this machine."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="device", **data)


class PictureError(InputError):
    """A file is not a picture that SeedGrid can read, or it holds no recipe."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="picture", **data)


class RunError(SeedGridError):
    """The work could not be started now, or did not succeed."""


class RunCancelled(RunError):  # noqa: N818 - a request, not an error
    """The work was stopped on request; finished pictures stay in the library."""


class LibraryError(SeedGridError):
    """The library's folder, database or a picture cannot be used: full, locked, damaged, lost."""


class Notice:
    """A sentence: its `code` is a key of `sentences`, and `data` has the sentence's values."""

    sentences: ClassVar[Mapping[str, str]] = MESSAGES

    def __init__(self, code: str, **data: object) -> None:
        self.code = code
        self.data = plain_data(data)

    def __str__(self) -> str:
        return self.sentences[self.code].format(**self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code}: {self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Notice) and (self.code, self.data) == (other.code, other.data)

    def __hash__(self) -> int:
        return hash((self.code, str(self)))


_MEMORY_SENTENCES: Final = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "can't start new thread",
)  # From torch's allocators, from readers that map files, and from Python's threads

_ONEDNN: Final = frozenset({"could not create a primitive", "could not execute a primitive"})
"""oneDNN's messages when memory is refused; unsupported work gives other messages."""


def is_memory_error(error: BaseException) -> bool:
    """Tell whether an error, or one chained to it, of any library, means that memory was full."""
    sentence = str(error).strip()
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if sentence in _ONEDNN or any(words in sentence.lower() for words in _MEMORY_SENTENCES):
        return True
    chained = error.__cause__ or error.__context__
    return chained is not None and is_memory_error(chained)


def as_ours(error: BaseException) -> SeedGridError:
    """Return an error as one of SeedGrid's: itself, `memory_spent` or `run_unexpected`."""
    if isinstance(error, SeedGridError):
        return error
    if is_memory_error(error):
        return RunError("memory_spent")
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return RunError("run_unexpected", reason=f"{name}: {lines[0][:200]}" if lines else name)
