"""Lists: text files of the artist's own, a choice a line, that `__name__` in a prompt opens.

    opened("a __coat__ fox", library_folder / "styles", field="prompt")  # coat.txt

A line may hold braces, weights and LoRAs, as a prompt does; `{day|night}` in it is two lines. Empty
lines, and those that begin with `#`, are left out.
"""

from pathlib import Path
from typing import Final

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import alternatives, names_list, open_lists

MAX_KB: Final = 64


def opened(text: str, folder: Path | None, *, field: str) -> tuple[str, ...]:
    """Return what a text says with each line of the lists that it names.

    Args:
        text: Of a prompt or a variation.
        folder: Holds the lists; None where nobody has any.
        field: Where it was typed.

    Raises:
        InputError: `list_unknown`, `list_public`, `list_file` or `pictures_count`.
    """

    def lines_of(name: str) -> list[str]:
        if folder is None:
            raise InputError("list_public", field=field, value=name)
        return _lines(folder / f"{name}.txt", name, field)

    return open_lists(text, lines_of, field=field)


def _lines(path: Path, name: str, field: str) -> list[str]:
    if not path.is_file():
        raise InputError("list_unknown", field=field, value=name, path=path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KB * 1000 + 1)
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        data, lines = b"", []
    choices = [line for line in lines if line and not line.startswith("#")]
    if not choices or len(data) > MAX_KB * 1000 or any(map(names_list, choices)):
        raise InputError("list_file", field=field, value=name, path=path, limit=MAX_KB)
    return [each for line in choices for each in alternatives(line)]
