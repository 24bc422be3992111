"""Scratch: pictures of live runs, in memory alone, until their owner asks for them in earnest.

A live run's store is a `Scratch`: it saves nothing. What was painted for it stays in `Painted` for
a while, so an ordinary run of the same recipes takes the very bits from there. Knows nothing of
files.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from seedgrid.core.picture import Entry, Lineage, Picture, Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.engine.run import Store

_MOST_BYTES: Final = 64 * 2**20
"""Of pixels, for all owners together: 340 pictures of 256 px, or 21 of 1024 px."""


class Painted:
    """Pictures that are kept nowhere else, by owner and recipe; those used last stay. Thread-safe.

    Args:
        most_bytes: How much memory their pixels may take.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._pictures: OrderedDict[tuple[str, str], tuple[Pixels, str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def note(
        self, owner: str, recipe: Recipe, passport: Passport, pixels: Pixels, decoder: str = ""
    ) -> None:
        """Remember a picture; those that nobody asked for longest make room for it.

        Args:
            owner: Who is given it.
            recipe: What it is.
            passport: Where it was computed.
            pixels: Shape (height, width, 3), uint8.
            decoder: `Placement.decoder`.
        """
        key = owner, recipe.id
        with self._lock:
            before = self._pictures.pop(key, None)
            self._num_bytes += pixels.nbytes - (before[0].nbytes if before else 0)
            self._pictures[key] = pixels, passport.digest, decoder
            while self._num_bytes > self._most_bytes:
                _, (oldest, *_) = self._pictures.popitem(last=False)
                self._num_bytes -= oldest.nbytes

    def find(
        self, owner: str, recipe_id: str, passport_digest: str = "", decoder: str | None = None
    ) -> Pixels | None:
        """Return an owner's picture of a recipe, if it is still here.

        Args:
            owner: Nobody is given what was painted for somebody else.
            recipe_id: `Recipe.id`.
            passport_digest: Where it must have been computed; empty for anywhere.
            decoder: Which tiny decoder it may have been decoded by, beside the model's own; None
                for any.

        Returns:
            Shape (height, width, 3), uint8.
        """
        with self._lock:
            pixels, digest, by = self._pictures.get((owner, recipe_id), (None, "", ""))
            if pixels is None or passport_digest not in ("", digest):
                return None
            if decoder is not None and by not in ("", decoder):
                return None
            self._pictures.move_to_end((owner, recipe_id))
            return pixels


class Scratch:
    """The store of a live run: it knows what the owner's library knows, and keeps nothing."""

    def __init__(self, library: Store) -> None:
        self._library = library

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        """Nothing needs room."""

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        """Return what the pictures would be in a library; there are no files."""
        return tuple(
            Entry(
                path=Path(),
                recipe=picture.recipe,
                passport=picture.passport,
                lineage=picture.lineage,
                pixels_sha256=picture.pixels_sha256,
                file_sha256="",
            )
            for picture in pictures
        )

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        """Return the library's own pictures."""
        return tuple(entry for entry, _ in copies)

    def remembered(self, recipe_ids: Sequence[str], passport_digest: str) -> Mapping[str, Entry]:
        """Ask the library."""
        return self._library.remembered(recipe_ids, passport_digest)
