"""LateLibrary: a library whose folder is made with its first picture.

Who only looks costs no folder, no database and no descriptor: until then it answers as another,
empty library does. For the many visitors of a public page.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seedgrid.core.entry import Entry
from seedgrid.core.recipe import Recipe
from seedgrid.library import opening
from seedgrid.library.catalogue import Catalogue
from seedgrid.library.shelf import Shelf
from seedgrid.library.store import BUSY_TIMEOUT_S, Library

_OPENING = threading.Lock()
"""Alembic keeps its state in modules: no two threads may migrate at once."""


class LateLibrary(Library):
    """Made without touching the disk. Safe from any thread, also after `close`.

    Args:
        folder: Made with the first picture.
        empty: Answers until then; never written to.
        on_open: Called before it is made; what it raises keeps it from being made.
        on_add: Told of every picture that was added, and of the bytes of its file.
    """

    def __init__(
        self,
        folder: Path,
        *,
        empty: Library,
        on_open: Callable[[LateLibrary], None],
        on_add: Callable[[LateLibrary, Sequence[Entry], int], None],
    ) -> None:
        Catalogue.__init__(self, empty._shelf)
        self.folder = folder
        self.notices = ()
        self._just_added = {}
        self._empty = empty
        self._on_open = on_open
        self._on_add = on_add
        self._is_made = False

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Make sure that pictures of these recipes will find room.

        Raises:
            LibraryError: They will not, or the library may not be made.
        """
        self._empty.check_room(recipes)
        if not self._is_made:
            self._on_open(self)

    def close(self) -> None:
        """Let go of descriptors; the next look takes new ones."""
        if self._is_made:
            super().close()

    def forget(self) -> None:
        """Begin anew: its folder is about to be deleted."""
        with _OPENING:
            self.close()
            self._shelf, self._just_added, self._is_made = self._empty._shelf, {}, False

    def _add(self, *files: bytes) -> tuple[Entry, ...]:
        self._make()
        entries = super()._add(*files)
        self._on_add(self, entries, sum(map(len, files)))
        return entries

    def _make(self) -> None:
        with _OPENING:
            if self._is_made:
                return
            self._on_open(self)
            shelf = Shelf.at(self.folder, timeout_s=BUSY_TIMEOUT_S)
            opening.open_shelf(shelf)
            self._shelf = shelf
            self._is_made = True
