"""Painters for tests of several at once: they leave marks, and wait until they may go on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Backend, LoadWatch, Placement, Watch
from seedgrid.testing.fake import FakeBackend

LOOK_S = 0.01


class MarkingBackend(FakeBackend):
    """Leaves a file named by its process at every batch; a prompt with "held" waits for `go`.

    Args:
        folder: Where the files are; other processes look there.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def pause(self, recipes: Sequence[Recipe], number: int, watch: Watch) -> None:
        if number == 1:
            name = f"{os.getpid()} {'-'.join(str(recipe.seed) for recipe in recipes)}"
            (self._folder / name).touch()
        while "held" in recipes[0].prompt and not (watch.cancelled or self._may_go()):
            time.sleep(LOOK_S)

    def _may_go(self) -> bool:
        return (self._folder / "go").exists()


def marks(folder: Path) -> dict[int, list[str]]:
    """Return which seeds each process has begun, by its id."""
    found: dict[int, list[str]] = {}
    for path in folder.iterdir():
        pid, _, seeds = path.name.partition(" ")
        if seeds:
            found.setdefault(int(pid), []).append(seeds)
    return found


class OtherBackend(FakeBackend):
    """Paints as another processor would: under another passport."""

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        passport = super().prepare(recipe, placement, watch)
        return passport.model_copy(update={"device": "other"})


class DyingBackend(FakeBackend):
    """Is gone as soon as it is to paint."""

    def paint(self, *_: Any) -> Any:
        raise RunError("worker_lost", reason="killed")


class Several:
    """Painters in this process, as a cluster has them in others."""

    def __init__(self, **first: Backend) -> None:
        self._first = first
        self._on_join: Any = None
        self._on_leave: Any = None
        self.is_closed = False

    def begin(self, on_join: Any, on_leave: Any) -> None:
        self._on_join, self._on_leave = on_join, on_leave
        self.join(**self._first)

    def join(self, **painters: Backend) -> None:
        for name, painter in painters.items():
            self._on_join(name, painter)

    def leave(self, *names: str) -> None:
        for name in names:
            self._on_leave(name)

    def card(self, model: str | None) -> Any:
        return FakeBackend().card(model)

    def close(self) -> None:
        self.is_closed = True
