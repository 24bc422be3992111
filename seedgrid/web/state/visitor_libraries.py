"""Whose pictures are whose: one library for the person at this machine, or one a visitor.

On a public Space each visitor has a library of their own that is deleted when they have been away
for a while; here at home there is one, and it is kept. Knows no component.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from seedgrid.core.entry import Entry
from seedgrid.core.errors import InputError
from seedgrid.studio import Studio

if TYPE_CHECKING:
    from seedgrid.library import Library

AWAY_S: Final = 6 * 3600.0


class Libraries(Protocol):
    """Where the page finds a visitor's library."""

    def of(self, visitor: str) -> Library:
        """Return the library of a visitor.

        Raises:
            LibraryError: Its folder or database refuses.
        """
        ...

    def file_of(self, picture_id: str) -> Path | None:
        """Return where the file of anybody's picture is, by an id which only they were told."""
        ...

    def family(self, picture_id: str, *, scope: str) -> tuple[Entry, ...]:
        """Return the pictures of the same `"round"` or `"work"`, or the `"picture"` alone."""
        ...


class OneLibrary:
    """The studio's own library for everybody; opened when it is first needed."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def of(self, visitor: str) -> Library:  # noqa: ARG002 (everybody's)
        """Return the studio's library."""
        return self._studio.library

    def file_of(self, picture_id: str) -> Path | None:
        """Return where a file of it is."""
        return self._studio.library.file_of(picture_id)

    def family(self, picture_id: str, *, scope: str) -> tuple[Entry, ...]:
        """Return pictures of it."""
        return _family(self._studio.library, picture_id, scope)


@dataclass
class _Visit:
    library: Library
    used_at_s: float = field(default_factory=time.monotonic)


class VisitorLibraries:
    """A library for each visitor, in a folder of its own, deleted when they stay away.

    Args:
        folder: Holds the libraries.
        away_s: How long a visitor may be away.
    """

    def __init__(self, folder: Path, *, away_s: float = AWAY_S) -> None:
        self._folder = folder
        self._away_s = away_s
        self._lock = threading.Lock()
        self._visits: dict[str, _Visit] = {}

    def of(self, visitor: str) -> Library:
        """Return the visitor's library, a new one at the first visit."""
        with self._lock:
            self._forget_who_is_away()
            visit = self._visits.get(visitor)
            if visit is None:
                from seedgrid.library import Library

                visit = _Visit(Library(self._folder / visitor))
                self._visits[visitor] = visit
            visit.used_at_s = time.monotonic()
            return visit.library

    def file_of(self, picture_id: str) -> Path | None:
        """Look for a picture's file in all of them, the one used last first."""
        with self._lock:
            visits = sorted(self._visits.values(), key=lambda visit: -visit.used_at_s)
        found = (visit.library.file_of(picture_id) for visit in visits)
        return next((path for path in found if path is not None), None)

    def family(self, picture_id: str, *, scope: str) -> tuple[Entry, ...]:
        """Look for the pictures in all of them."""
        found = (_family(library, picture_id, scope) for library in self._libraries())
        return next((entries for entries in found if entries), ())

    def _libraries(self) -> list[Library]:
        with self._lock:
            return [visit.library for visit in self._visits.values()]

    def _forget_who_is_away(self) -> None:
        limit_s = time.monotonic() - self._away_s
        for visitor in [v for v, visit in self._visits.items() if visit.used_at_s < limit_s]:
            library = self._visits.pop(visitor).library
            library.close()
            shutil.rmtree(library.folder, ignore_errors=True)


def _find(library: Library, picture_id: str) -> Entry | None:
    try:
        return library.get(picture_id)
    except InputError:
        return None


def _family(library: Library, picture_id: str, scope: str) -> tuple[Entry, ...]:
    entry = _find(library, picture_id)
    if entry is None:
        return ()
    if scope == "round":
        return _there(library.round(entry.lineage.round_id), picture_id)
    if scope == "work":
        return _there(library.work(entry.lineage.work_id), picture_id)
    return (entry,)


def _there(entries: Sequence[Entry], named: str) -> tuple[Entry, ...]:
    """Leave out what is in the trash or lost, but not the picture that was asked for."""
    return tuple(e for e in entries if e.id == named or not (e.trashed or e.lost))
