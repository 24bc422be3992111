"""What is killed: it makes, imports, marks and deletes pictures, and keeps a journal of it."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np

from seedgrid.core.errors import InputError, LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Lineage, Picture, new_id, now
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.engine import Engine
from seedgrid.formats import png
from seedgrid.library import Library, tables
from seedgrid.library.storage import LibraryStorage
from seedgrid.testing.fake import FAKE_CARD, FakeBackend
from tools.crash.journal import Journal


def live(folder: Path, journal: Journal, seed: int) -> None:
    """Go on until killed: generate with the engine, import, mark, delete."""
    chance = random.Random(seed)  # noqa: S311 - deeds, not secrets
    ids: list[str] = []
    with Library(folder) as library, Engine(FakeBackend(), library) as engine:
        while True:
            generate(engine, journal, chance, ids)
            for action in chance.sample([bring_in, favourite, trash, restore, empty], 3):
                if len(ids) >= 2:
                    # Another writer may have emptied the trash with ours in it.
                    with contextlib.suppress(InputError):
                        action(library, journal, chance, ids)


def generate(engine: Engine, journal: Journal, chance: random.Random, ids: list[str]) -> None:
    request = Request(
        prompt="hills",
        seeds=tuple(chance.randrange(2**32) for _ in range(2)),
        width=64,
        height=64,
        num_inference_steps=1,
    )
    run = engine.submit(plan_grid(resolve(request, FAKE_CARD)), owner="crash")
    for event in run.events():
        if isinstance(event, Finished):
            journal.write("done", "add", event.entry.id)
            ids.append(event.entry.id)


def bring_in(library: Library, journal: Journal, chance: random.Random, ids: list[str]) -> None:
    entry = library.add_png(png.encode(small_picture(chance.randrange(2**32))))
    journal.write("done", "add", entry.id)
    ids.append(entry.id)


def favourite(library: Library, journal: Journal, chance: random.Random, ids: list[str]) -> None:
    picture_id = chance.choice(ids)
    journal.write("try", "favourite", picture_id)
    library.set_favourite(picture_id, True)
    journal.write("done", "favourite", picture_id)


def trash(library: Library, journal: Journal, chance: random.Random, ids: list[str]) -> None:
    chosen = chance.sample(ids, 2)
    journal.write("try", "trash", *chosen)
    library.trash(*chosen)
    journal.write("done", "trash", *chosen)


def restore(library: Library, journal: Journal, chance: random.Random, ids: list[str]) -> None:
    picture_id = chance.choice(ids)
    journal.write("try", "restore", picture_id)
    library.restore(picture_id)
    journal.write("done", "restore", picture_id)


def empty(
    library: Library,
    journal: Journal,
    chance: random.Random,  # noqa: ARG001 - all actions are called alike
    ids: list[str],
) -> None:
    journal.write("try", "empty")
    trashed = {entry.id for entry in library.search(trashed=True, limit=10_000).entries}
    library.empty_trash()
    ids[:] = [picture_id for picture_id in ids if picture_id not in trashed]
    journal.write("done", "empty")


def once(folder: Path, journal: Journal) -> int:
    """Do each thing once, and after a refusal go on with the next; count the refusals."""
    refused = 0

    def attempt(action: Callable[[], None]) -> None:
        nonlocal refused
        try:
            action()
        except LibraryError as error:
            refused += 1
            print(f"refused: {error}", flush=True)

    library = opened(folder, attempt)
    added: list[Entry] = []

    def add(make: Callable[[], Entry]) -> None:
        added.append(make())
        journal.write("done", "add", added[-1].id)

    def mark(action: str, change: Callable[[str], object]) -> None:
        journal.write("try", action, added[0].id)
        change(added[0].id)
        journal.write("done", action, added[0].id)

    def delete() -> None:
        journal.write("try", "empty")
        library.empty_trash()
        journal.write("done", "empty")

    for seed in (1, 2, 3):
        attempt(lambda seed=seed: add(lambda: library.add(small_picture(seed))))
    attempt(lambda: add(lambda: library.add_again((added[0], a_lineage()))[0]))
    attempt(lambda: mark("favourite", lambda picture_id: library.set_favourite(picture_id, True)))
    attempt(lambda: mark("trash", lambda picture_id: library.trash(picture_id)))
    attempt(delete)
    library.close()
    return refused


def opened(folder: Path, attempt: Callable[[Callable[[], None]], None]) -> Library:
    """Open the library; when that is refused, open it again."""
    found: list[Library] = []
    for _ in range(2):
        if not found:
            attempt(lambda: found.append(Library(folder, busy_timeout_s=2)))
    return found[0]


def be_careless() -> None:
    """Make every library of this process one without a discipline: the control of the sweep."""
    LibraryStorage.add = add_carelessly  # type: ignore[method-assign]


def add_carelessly(storage: LibraryStorage, data: bytes) -> Entry:
    """Do what tools without a discipline do: the row first, then a plain write."""
    file_sha256 = hashlib.sha256(data).hexdigest()
    entry = storage.entry_of(file_sha256, data)
    with storage.database.writes() as connection:
        tables.insert(connection, entry)
    path = storage.objects.path(file_sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise LibraryError("folder_refuses", value=str(path), reason=str(error)) from error
    return entry


def small_picture(seed: int) -> Picture:
    request = Request(prompt="import", seeds=(seed,), width=32, height=32)
    recipe: Recipe = resolve(request, FAKE_CARD)[0]
    pixels = np.random.default_rng(seed).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    return Picture(pixels=pixels, recipe=recipe, passport=Passport(), lineage=a_lineage())


def a_lineage() -> Lineage:
    return Lineage(
        picture_id=new_id(), work_id=new_id(), round_id=new_id(), cell=0, created_at=now()
    )
