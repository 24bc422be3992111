"""LateLibrary: a library whose folder is made with its first picture.

Who only looks costs no folder, no database and no descriptor: until then it answers as another,
empty library does. For the many visitors of a public page.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seedgrid.core.picture import Entry, Lineage, Picture, Pixels, pixels_sha256
from seedgrid.core.recipe import Recipe
from seedgrid.formats import png
from seedgrid.library.reader import LibraryReader
from seedgrid.library.storage import File, LibraryStorage
from seedgrid.library.store import BUSY_TIMEOUT_S, Library
from seedgrid.storage import starts
from seedgrid.storage.files import size_of

_OPENING = threading.Lock()
"""One is made or forgotten at a time: no two threads make the same, none what just goes."""


class LateLibrary(Library):
    """Made without touching the disk. Safe from any thread, also after `close`.

    Args:
        folder: Made with the first picture.
        empty: Answers until then; never written to.
        on_grow: Called before it is made, and before anything more is begun that it will keep; what
            it raises keeps it from that.
        on_add: Told of every picture that was added, and of the bytes that came in.
        on_delete: Told of every picture that was deleted, and of the bytes that are left.

    Attributes:
        asked_from: The address from which it was last asked for; empty where nobody says.
    """

    def __init__(
        self,
        folder: Path,
        *,
        empty: Library,
        on_grow: Callable[[LateLibrary], None],
        on_add: Callable[[LateLibrary, Sequence[Entry], int], None],
        on_delete: Callable[[Sequence[Entry], int], None],
    ) -> None:
        LibraryReader.__init__(self, empty._storage)
        self.folder = folder
        self.notices = ()
        self.asked_from = ""
        self._just_added = {}
        self._empty = empty
        self._on_grow = on_grow
        self._on_add = on_add
        self._on_delete = on_delete
        self._is_made = False

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Make sure that pictures of these recipes will find room.

        Raises:
            LibraryError: They will not, or the library may not be made or grow.
        """
        self._empty.check_room(recipes)
        self._on_grow(self)

    def close(self) -> None:
        """Let go of descriptors; the next look takes new ones."""
        if self._is_made:
            super().close()

    def rest(self) -> None:
        """Let go of what looks hold, also while somebody looks or writes."""
        if self._is_made:
            self._storage.database.rest()

    def forget(self) -> None:
        """Begin anew: its folder is about to be deleted."""
        with _OPENING:
            self.close()
            starts.forget(self.starts)
            self._storage, self._just_added, self._is_made = self._empty._storage, {}, False

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Keep a few pictures, as `Library` does; the first make the folder."""
        self._make()
        return super().add_together(pictures)

    def add_png(self, data: bytes) -> Entry:
        """Keep a PNG file, as `Library` does; what is none of ours makes no folder."""
        png.read_checked(data)
        self._on_grow(self)
        self._make()
        return super().add_png(data)

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Keep the same pixels at other places, as `Library` does."""
        self._make()
        return super().add_again(*copies)

    def keep_start(self, pixels: Pixels) -> str:
        """Keep a picture to begin others from, as `Library` does; it counts as what it takes."""
        file = self.starts / f"{pixels_sha256(pixels)}.png"
        is_new = not file.is_file()
        if is_new:
            self._on_grow(self)
        self._make()
        sha256 = super().keep_start(pixels)
        self._on_add(self, (), size_of(file) if is_new else 0)
        return sha256

    def _add(self, *files: File) -> tuple[Entry, ...]:
        entries = super()._add(*files)
        self._on_add(self, entries, sum(len(data) for data, _ in files))
        return entries

    def _delete_trashed(self) -> tuple[Entry, ...]:
        if not self._is_made:
            return ()
        deleted = super()._delete_trashed()
        self._on_delete(deleted, size_of(self.folder / "objects") + size_of(self.starts))
        return deleted

    def _make(self) -> None:
        if self._is_made:
            return
        self._on_grow(self)  # It may have others forget theirs, so not while we hold the lock.
        with _OPENING:
            self._make_once()

    def _make_once(self) -> None:
        if self._is_made:
            return
        storage = LibraryStorage.at(self.folder, timeout_s=BUSY_TIMEOUT_S)
        self._open(storage)
        self._storage = storage
        self._is_made = True
