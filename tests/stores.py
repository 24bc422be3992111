"""A library in memory, and the type of the fixture that makes recipes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pictures import as_entry

from seedgrid.core.picture import Entry, Lineage, Picture
from seedgrid.core.recipe import Recipe

MakeRecipes = Callable[..., tuple[Recipe, ...]]


class MemoryStore:
    """A library without a disk: keeps pictures, and fails or waits when a test says so."""

    def __init__(self) -> None:
        self.pictures: dict[str, Picture] = {}
        self.entries: list[Entry] = []
        self.error: Exception | None = None
        self.may_save = threading.Event()
        self.may_save.set()

    def check_room(self, recipes: Iterable[Recipe]) -> None:
        pass

    def add(self, picture: Picture) -> Entry:
        self.may_save.wait()
        if self.error is not None:
            raise self.error
        entry = as_entry(picture, Path(f"/nowhere/{picture.lineage.picture_id}.png"))
        self.pictures[entry.id] = picture
        self.entries.append(entry)
        return entry

    def add_together(self, pictures: Sequence[Picture]) -> tuple[Entry, ...]:
        return tuple(self.add(picture) for picture in pictures)

    def add_again(self, *copies: tuple[Entry, Lineage]) -> tuple[Entry, ...]:
        return tuple(
            self.add(replace(self.pictures[entry.id], lineage=lineage)) for entry, lineage in copies
        )

    def find_painted(self, recipe_ids: Sequence[str], passport_digest: str) -> dict[str, Entry]:
        return {
            entry.recipe.id: entry
            for entry in self.entries
            if entry.recipe.id in recipe_ids and entry.passport.digest == passport_digest
        }

    def get(self, picture_id: str) -> Entry:
        return next(entry for entry in self.entries if entry.id == picture_id)
