"""How fast a library of many pictures answers: opening, pages, search, adding.

Rows without files are enough for that: no answer but `check` reads a picture.

    python -m tools.benchmarks.library --pictures 100000
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from seedgrid.core.picture import Lineage, Picture, new_id, now
from seedgrid.core.recipe import Passport
from seedgrid.core.request import Request, resolve
from seedgrid.library import Library
from seedgrid.library.database import insert
from seedgrid.testing.fake import FAKE_CARD

WORDS = ("red", "fox", "castle", "river", "Labrador", "Vermeer", "artsy", "night", "狐狸", "서울")


def main() -> None:
    """Fill a library and time what people do with it."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.library")
    parser.add_argument("--pictures", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = Library(folder)
        measure("add to an empty library", lambda: library.add(a_picture()))
        fill(library, options.pictures)
        measure("open", lambda: Library(folder))
        library = Library(folder)
        measure("first page of works", library.works)
        measure("first page of pictures", library.search)
        for text in ("fox", "castle river", "Labrador Vermeer artsy", "狐狸", "zq", "nowhere"):
            measure(f"search {text!r}", lambda text=text: library.search(text))
        measure("favourites", lambda: library.search(favourite=True))
        measure("by seed", lambda: library.search(seed=5))
        measure("before 2020", lambda: library.search(until="2020"))
        measure("add to the full library", lambda: library.add(a_picture()))


def fill(library: Library, count: int) -> None:
    """Write rows with random words, four a round, twenty a work."""
    chance = random.Random(1)  # noqa: S311 - words, not secrets
    entry = library.search().entries[0]
    with library._database.writes() as connection:
        for number in range(count):
            if number % 20 == 0:
                work = new_id()
            words = " ".join(chance.choices(WORDS, k=12))
            recipe = entry.recipe.model_copy(
                update={"prompt": words, "seed": chance.randrange(2**32)}
            )
            row = replace(
                entry,
                recipe=recipe,
                lineage=a_lineage(work),
                file_sha256=new_id() * 2,
                favourite=chance.random() < 0.01,
            )
            insert(connection, row)


def measure(name: str, action: Callable[[], object], *, times: int = 9) -> None:
    """Print the median and the worst of a few times, in milliseconds."""
    taken = []
    for _ in range(times):
        start_s = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - start_s))
    print(f"{name:34} {sorted(taken)[times // 2]:8.1f} ms, worst {max(taken):8.1f} ms")


def a_picture() -> Picture:
    """Make a small picture of random pixels."""
    (recipe,) = resolve(Request(prompt="a fox", seeds=(7,), width=256, height=256), FAKE_CARD)
    pixels = np.random.default_rng().integers(0, 256, (256, 256, 3), dtype=np.uint8)
    return Picture(pixels=pixels, recipe=recipe, passport=Passport(), lineage=a_lineage(new_id()))


def a_lineage(work_id: str) -> Lineage:
    """Make a place in a tree."""
    return Lineage(
        picture_id=new_id(), work_id=work_id, round_id=new_id(), cell=0, created_at=now()
    )


if __name__ == "__main__":
    main()
