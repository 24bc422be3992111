"""A long session of mixed requests in one process, painted again in new ones in another order.

    python -m tools.session [--requests 200] [--seed 7] [--again 2] [--keep FOLDER]

One process paints what an artist and many strangers may ask for one after the other: grids,
refinements, mixes of noise, other sizes, schedulers, formats, widths and guidance, models in
turns, and a part of it is stopped in the middle. Then new processes paint every recipe that gave a
picture once more, shuffled, so that each has other neighbours, other slots and another past. The
same recipe must give the same pixels. Prints a table; 1 when a picture differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from seedgrid.core.errors import SeedGridError  # noqa: E402
from seedgrid.core.events import Step  # noqa: E402
from seedgrid.core.picture import Entry  # noqa: E402 (needs the path above)
from seedgrid.core.plan import plan_grid  # noqa: E402
from seedgrid.core.recipe import Recipe  # noqa: E402
from seedgrid.core.request import Request  # noqa: E402
from seedgrid.engine import Run  # noqa: E402
from seedgrid.studio import Studio  # noqa: E402

FAMILIES: Final = ("sd", "sdxl", "flux", "lcm", "ddim")
_WORDS: Final = ("a red fox", "a", "two foxes at night, in the rain", "fox " * 60, "狐 🦊")
_KINDS: Final = ("grid", "grid", "matrix", "refine", "refine", "mix", "cancel", "again")
_CELLS_A_RUN: Final = 24


@dataclass
class Session:
    """What was asked for so far.

    Attributes:
        kinds: How many requests of each kind were made.
        pictures: By recipe id: the recipe's JSON and the digest of its pixels.
        differing: What was painted twice here and differs.
    """

    studio: Studio
    models: Sequence[str]
    chance: random.Random
    kinds: Counter[str] = field(default_factory=Counter)
    pictures: dict[str, tuple[str, str]] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    _entries: list[Entry] = field(default_factory=list)

    def ask(self) -> None:
        """Make one request of any kind, wait for its end, and note what came out."""
        kind = self.chance.choice(_KINDS)
        try:
            run = getattr(self, f"_{kind}")()
            self._wait(run)
        except SeedGridError as error:
            kind = f"refused ({error.code})"
        self.kinds[kind] += 1

    def _wait(self, run: Run) -> None:
        with contextlib.suppress(SeedGridError):  # Stopped, or one picture came to nothing.
            run.result(timeout_s=600)
        for entry in run.finished.values():
            self.note(entry)
            self._entries.append(entry)

    def note(self, entry: Entry) -> None:
        """Remember a picture; one of a recipe that was painted before must be the same."""
        recipe = entry.recipe
        known = self.pictures.setdefault(recipe.id, (recipe.model_dump_json(), entry.pixels_sha256))
        if known[1] != entry.pixels_sha256:
            self.differing.append(recipe.id)

    def _request(self) -> Request:
        pick = self.chance.choice
        model = pick(self.models)
        card = self.studio.card(model)
        size = (None, None) if card.fixed_size or model == "bundled" else pick(((64, 64), (64, 96)))
        return Request(
            prompt=pick(_WORDS),
            negative_prompt=pick(("", "", "blurry")),
            seeds=tuple(self.chance.randrange(2**32) for _ in range(pick((1, 3, 4, 5)))),
            model=model,
            width=size[0],
            height=size[1],
            num_inference_steps=pick((2, 3, 4, 6)),
            guidance_scale=pick((None, None, 1.0, 4.0)),
            scheduler=pick((None, None, *card.schedulers)),
            dtype=pick(("float32", "float32", "bfloat16")),
            lock_width=pick((None, None, 1, 2, 8)),
        )

    def _grid(self) -> Run:
        return self.studio.start_grid(self._request())

    def _matrix(self) -> Run:
        return self.studio.start_grid(self._request(), self.chance.sample(_WORDS, 2))

    def _refine(self) -> Run:
        parent = self._any_with_words()
        return self.studio.start_refine(parent) if parent else self._grid()

    def _mix(self) -> Run:
        if not self._entries:
            return self._grid()
        parent = self.chance.choice(self._entries)
        return self.studio.start_variations(parent, weight=self.chance.choice((0.1, 0.3, 1.0)))

    def _again(self) -> Run:
        """Paint some pictures once more, whatever came between."""
        if not self._entries:
            return self._grid()
        few = self.chance.sample(self._entries, min(3, len(self._entries)))
        return self.studio.start_again(few)

    def _cancel(self) -> Run:
        """Stop in the middle: at the first step that is told, or before it."""
        run = self._matrix()
        if self.chance.random() < 0.7:
            run.wait_for(Step, timeout_s=600)
        run.cancel()
        return run

    def _any_with_words(self) -> Entry | None:
        worded = [entry for entry in self._entries if entry.recipe.prompt]
        return self.chance.choice(worded) if worded else None


def first(folder: Path, models: Sequence[str], num_requests: int, seed: int) -> Session:
    """Live through the session; pictures go into the folder's `first.json`."""
    chance = random.Random(seed)  # noqa: S311 (requests, no secrets)
    with _studio(folder, "first") as studio:
        session = Session(studio, models, chance)
        for _ in range(num_requests):
            session.ask()
    _write(folder / "first.json", session)
    return session


def again(folder: Path, number: int) -> Session:
    """Paint every recipe of the first session once more, in an order of this process's own."""
    chance = random.Random(number)  # noqa: S311 (an order, no secret)
    recipes = [Recipe.model_validate_json(text) for text, _ in read(folder / "first.json").values()]
    chance.shuffle(recipes)
    with _studio(folder, f"again-{number}") as studio:
        session = Session(studio, (), chance)
        for start in range(0, len(recipes), _CELLS_A_RUN):
            jobs = plan_grid(recipes[start : start + _CELLS_A_RUN])
            for entry in studio.engine.submit(
                jobs, owner="again", library=studio.library, fresh=True
            ).result(3600):
                session.note(entry)
    _write(folder / f"again-{number}.json", session)
    return session


def read(path: Path) -> dict[str, tuple[str, str]]:
    """Return the pictures of a session, by recipe id."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {name: (text, pixels) for name, (text, pixels) in data["pictures"].items()}


def differing(folder: Path, number: int) -> list[str]:
    """Return the ids of recipes that gave other pixels in a later process."""
    before, after = (read(folder / f"{name}.json") for name in ("first", f"again-{number}"))
    return [name for name in before if name not in after or after[name][1] != before[name][1]]


def save_models(folder: Path) -> None:
    """Write the small models, unless they are there."""
    from pipelines import save

    for family in FAMILIES:
        if not (folder / "models" / family).exists():
            save(family, folder / "models" / family)


def _models(folder: Path) -> tuple[str, ...]:
    return ("bundled", *(str(folder / "models" / family) for family in FAMILIES))


def _studio(folder: Path, name: str) -> Studio:
    return Studio("bundled", folder / f"library-{name}")


def _write(path: Path, session: Session) -> None:
    data = {"pictures": session.pictures, "kinds": session.kinds, "differing": session.differing}
    path.write_text(json.dumps(data), encoding="utf-8")


def main() -> int:
    """Run the session and its repetitions, each in a process of its own; print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--again", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="work in this folder and keep it")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.role == "first":
        first(asked.keep, _models(asked.keep), asked.requests, asked.seed)
        return 0
    if asked.role:
        again(asked.keep, int(asked.role))
        return 0
    with tempfile.TemporaryDirectory(prefix="seedgrid-session-") as name:
        folder = asked.keep or Path(name)
        save_models(folder)
        lines = list(_run_all(folder, asked))
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any("**" in line for line in lines) else 0


def _run_all(folder: Path, asked: argparse.Namespace) -> Iterator[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tools.session", "--keep", str(folder)]
    command += ["--requests", str(asked.requests), "--seed", str(asked.seed), "--role"]
    run: Callable[[str], Any] = lambda role: subprocess.run(  # noqa: E731
        [*command, role], cwd=ROOT, check=True
    )
    run("first")
    data = json.loads((folder / "first.json").read_text(encoding="utf-8"))
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(data["kinds"].items()))
    yield f"{date.today()}: {asked.requests} requests with seed {asked.seed} ({kinds})."
    yield ""
    yield "| process | recipes | other pixels |"
    yield "|---|---|---|"
    yield f"| the session itself | {len(data['pictures'])} | {_bold(len(data['differing']))} |"
    for number in range(1, asked.again + 1):
        run(str(number))
        found = differing(folder, number)
        yield f"| new, order {number} | {len(data['pictures'])} | {_bold(len(found))} |"


def _bold(number: int) -> str:
    return f"**{number}**" if number else "0"


if __name__ == "__main__":
    sys.exit(main())
