"""What needs no painting: pictures that a library has, or that live runs have painted.

Live runs save nothing; `Painted` keeps theirs for ordinary runs. Knows nothing of files.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from seedgrid.core.picture import Entry, Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.engine.run import Run

_MOST_BYTES: Final = 64 * 2**20  # Of all owners' pixels: 340 pictures of 256 px, or 21 of 1024 px
_MAX_PASSPORTS: Final = 256
_IN_PASSPORTS: Final = frozenset(  # Settings of a recipe that a passport may depend on
    {"model", "loras", "upscaler", "dtype", "determinism", "arithmetic"}
)


class Painted:
    """Pictures of live runs, by owner and recipe; the least recently used go first. Thread-safe."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._pictures: OrderedDict[tuple[str, str], tuple[Pixels, str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def note(
        self, owner: str, recipe: Recipe, passport: Passport, pixels: Pixels, decoder: str = ""
    ) -> None:
        """Keep a picture, shape (height, width, 3), uint8; `decoder` is `Placement.decoder`."""
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
        """Return an owner's picture of a recipe, shape (height, width, 3), uint8, if it is kept.

        An empty `passport_digest` means any. `decoder` is a tiny decoder that may have decoded it,
        besides the model's own; None means any.
        """
        with self._lock:
            pixels, digest, by = self._pictures.get((owner, recipe_id), (None, "", ""))
            if pixels is None or passport_digest not in ("", digest):
                return None
            if decoder is not None and by not in ("", decoder):
                return None
            self._pictures.move_to_end((owner, recipe_id))
            return pixels


@dataclass(frozen=True, kw_only=True)
class Known:
    """Pictures of a run that need no painting, by cell, all computed under one passport."""

    passport: Passport
    entries: Mapping[int, Entry]  # In the run's library
    painted: Mapping[int, Pixels]  # Painted live for the run's owner

    @property
    def cells(self) -> set[int]:
        """The cells of both."""
        return {*self.entries, *self.painted}


def known_of(run: Run, cells: Iterable[int], passport: Passport, painted: Painted) -> Known:
    """Look for pictures of a run in its library and among those painted live for its owner."""
    ids = {} if run.fresh else {cell: run.jobs[cell].recipe.id for cell in cells}
    saved = run.library.remembered(tuple(ids.values()), passport.digest) if ids else {}
    entries = {cell: saved[recipe_id] for cell, recipe_id in ids.items() if recipe_id in saved}
    pixels = {
        cell: painted.find(run.owner, recipe_id, passport.digest, run.placement.decoder)
        for cell, recipe_id in ids.items()
        if cell not in entries
    }
    live = {cell: each for cell, each in pixels.items() if each is not None}
    return Known(passport=passport, entries=entries, painted=live)


class KnownPassports:
    """The passports under which recipes were painted here last: the library is asked by them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Placement], Passport] = {}

    def get(self, recipe: Recipe, placement: Placement) -> Passport | None:
        """Return the passport of recipes like this one; None if none was painted yet."""
        return self._known.get(_passport_key(recipe, placement))

    def note(self, recipe: Recipe, placement: Placement, passport: Passport) -> None:
        """Remember a passport."""
        if len(self._known) >= _MAX_PASSPORTS:
            self._known.clear()
        self._known[_passport_key(recipe, placement)] = passport


def _passport_key(recipe: Recipe, placement: Placement) -> tuple[str, Placement]:
    key = recipe.model_dump_json(include=set(_IN_PASSPORTS))
    return key, replace(placement, previews=False)  # Who looks on changes no bit.
