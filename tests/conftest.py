"""What many tests need: a backend without a model, recipes for it, and places for pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seedgrid.backend.fake import FakeBackend
from seedgrid.engine import Engine
from seedgrid.library.entry import Entry
from seedgrid.picture import Lineage, Picture
from seedgrid.recipe import Recipe
from seedgrid.request import Request, resolve

MakeRecipes = Callable[..., tuple[Recipe, ...]]


class MemoryStore:
    """A library without a disk: keeps pictures, and fails or waits when a test says so."""

    def __init__(self) -> None:
        self.pictures: dict[str, Picture] = {}
        self.entries: list[Entry] = []
        self.error: Exception | None = None
        self.may_save = threading.Event()
        self.may_save.set()

    def add(self, picture: Picture) -> Entry:
        self.may_save.wait()
        if self.error is not None:
            raise self.error
        entry = Entry(
            path=Path(f"/nowhere/{picture.lineage.picture_id}.png"),
            recipe=picture.recipe,
            passport=picture.passport,
            lineage=picture.lineage,
            pixels_sha256=picture.pixels_sha256,
            file_sha256="0" * 64,
        )
        self.pictures[entry.id] = picture
        self.entries.append(entry)
        return entry

    def add_again(self, entry: Entry, lineage: Lineage) -> Entry:
        old = self.pictures[entry.id]
        return self.add(
            Picture(pixels=old.pixels, recipe=old.recipe, passport=old.passport, lineage=lineage)
        )

    def remembered(self, recipe_id: str, passport_digest: str) -> Entry | None:
        for entry in self.entries:
            if (entry.recipe.id, entry.passport.digest) == (recipe_id, passport_digest):
                return entry
        return None

    def get(self, picture_id: str) -> Entry:
        return next(entry for entry in self.entries if entry.id == picture_id)


@pytest.fixture
def backend() -> FakeBackend:
    """A backend that paints landscapes at once."""
    return FakeBackend()


@pytest.fixture
def store() -> MemoryStore:
    """An empty library in memory."""
    return MemoryStore()


@pytest.fixture
def engine(backend: FakeBackend, store: MemoryStore) -> Iterator[Engine]:
    """An engine on the fake backend and the library in memory, closed afterwards."""
    with Engine(backend, store) as engine:
        yield engine


@pytest.fixture
def make_recipes(backend: FakeBackend) -> MakeRecipes:
    """Make small, quick recipes: `make_recipes("a fox", seeds=(0, 1), steps=3)`."""

    def make(
        prompt: str = "misty mountains", seeds: tuple[int, ...] = (0, 1, 2, 3), steps: int = 3
    ) -> tuple[Recipe, ...]:
        request = Request(
            prompt=prompt, seeds=seeds, width=64, height=64, num_inference_steps=steps
        )
        return resolve(request, backend.card(None))

    return make


@pytest.fixture(scope="session", autouse=True)
def cache_in_a_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep digests, places and probe results of the tests away from the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEDGRID_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a small real pipeline of `tests/pipelines.py`, saved once a session."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            import pipelines

            folders[name] = pipelines.save(name, tmp_path_factory.mktemp("models") / name)
        return folders[name]

    return folder
