"""Favourites, notes, tags, trash and deletions, one line each in a file that is only appended to.

The database may be deleted and rebuilt from the PNG files; what people said about their pictures
is in no PNG, so it is here: `marks.jsonl`, a check sum and a JSON object a line, each on the disk
before it counts. Knows nothing of the database; whoever appends holds its right to write.
"""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from seedgrid.core.picture import now, readable_tags
from seedgrid.storage.files import refusals, sync_folder, write_atomically

_CHECK_DIGITS: Final = 16


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What was said about a picture.

    Attributes:
        lost: Its file is gone or damaged beyond repair, and the artist has been told.
        deleted: The trash was emptied with it inside.
        seal: This library's, of a picture from elsewhere that it verified.
        tags: See `core.tags`.
    """

    favourite: bool = False
    note: str = ""
    trashed: bool = False
    lost: bool = False
    deleted: bool = False
    seal: str = ""
    tags: tuple[str, ...] = ()


MarkValue = bool | str | tuple[str, ...]
Change = tuple[str, Mapping[str, MarkValue]]
"""A picture's id and the fields of its `Marks` that change."""

_NAMES: Final = frozenset(field.name for field in fields(Marks))


@dataclass(frozen=True, kw_only=True)
class History:
    """All marks, and how many lines of the file could not be read."""

    marks: dict[str, Marks]
    num_damaged: int


class MarksFile:
    """The file `marks.jsonl` of a library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._deleted: set[str] = set()
        self._known = (0, 0)  # The file's number and size when it was last looked at.

    def append(self, changes: Iterable[Change]) -> None:
        """Write changes; when this returns they are on the disk."""
        lines = [_line(picture_id, change) for picture_id, change in changes]
        if not lines:
            return
        # The empty line in front ends a line that a power cut may have left without its end.
        data = ("\n" + "".join(lines)).encode()
        with refusals(self.path):
            is_new = not self.path.exists()
            with self.path.open("ab") as file:
                size = file.tell()
                try:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with contextlib.suppress(OSError):
                        os.ftruncate(file.fileno(), size)
                    raise
            if is_new:
                sync_folder(self.path.parent)

    def compact(self, history: History) -> None:
        """Write the file anew: what its lines add up to, without those that are damaged."""
        lines = [_line(picture_id, _said(marks)) for picture_id, marks in history.marks.items()]
        write_atomically(self.path, "".join(lines).encode())

    def read(self) -> History:
        """Return what the lines add up to."""
        marks: dict[str, Marks] = {}
        num_damaged = 0
        with refusals(self.path):
            data = self.path.read_bytes() if self.path.exists() else b""
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            change = _change(line)
            if change is None:
                num_damaged += 1
                continue
            picture_id, changed = change
            marks[picture_id] = replace(marks.get(picture_id, Marks()), **changed)
        return History(marks=marks, num_damaged=num_damaged)

    def says_deleted(self, picture_id: str) -> bool:
        """Tell whether a picture was deleted for good.

        Asked at every picture that is added, so only what is new in the file is read.
        """
        with self._guard, refusals(self.path):
            if not self.path.exists():
                return False
            status = self.path.stat()
            if (status.st_ino, status.st_size) != self._known:
                is_longer = status.st_ino == self._known[0] and status.st_size > self._known[1]
                self._read_deletions(self._known[1] if is_longer else 0)
                self._known = (status.st_ino, status.st_size)
            return picture_id in self._deleted

    def _read_deletions(self, offset: int) -> None:
        if offset == 0:
            self._deleted.clear()
        with self.path.open("rb") as file:
            file.seek(offset)
            lines = file.read().split(b"\n")
        for line in lines:
            change = _change(line) if b'"deleted"' in line else None
            if change is not None:
                picture_id, changed = change
                keep = self._deleted.add if changed.get("deleted") else self._deleted.discard
                keep(picture_id)


def _said(marks: Marks) -> dict[str, MarkValue]:
    """Return the fields that are not as they always begin."""
    return {name: value for name, value in asdict(marks).items() if value}


def _line(picture_id: str, change: Mapping[str, MarkValue]) -> str:
    text = json.dumps({"picture": picture_id, **change, "at": now()}, ensure_ascii=False)
    return f"{_check(text)} {text}\n"


def _change(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return the picture's id and its changed marks, or None for a damaged line."""
    try:
        check, _, text = line.decode().partition(" ")
    except UnicodeDecodeError:
        return None
    if check != _check(text):
        return None
    values: dict[str, Any] = json.loads(text)
    # A later release may know more marks than this one.
    changed = {name: values[name] for name in values.keys() & _NAMES}
    if "tags" in changed:
        changed["tags"] = readable_tags(changed["tags"])
    return values["picture"], changed


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_CHECK_DIGITS]
