"""Paint in a new process, whose libraries start under other instruction limits.

The limits are environment variables that torch, oneDNN and MKL read once, at their start; so a
picture made under other limits can only be made again in another process. No torch needed here;
the child imports it. Files in a temporary folder carry the work there and back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from seedgrid.core import instruction_limits
from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe, read_recipe
from seedgrid.diffusion.backend import Placement, Unwatched

LIMIT_NAMES: Final = instruction_limits.NAMES

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[3]


def paint_in_child(
    recipes: Sequence[Recipe], placement: Placement, limits: Mapping[str, str]
) -> tuple[tuple[Pixels, ...], Passport]:
    """Paint one batch in a process of its own.

    Args:
        recipes: As for `Backend.paint`.
        placement: As for `Backend.paint`.
        limits: The only instruction limits that the child has; what is none is left out.

    Returns:
        The pictures, and the passport under which the child made them.

    Raises:
        RunError: `child_failed` with the last thing it said.
    """
    environment = child_environment()
    for name in instruction_limits.NAMES:
        environment.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="seedgrid-") as folder:
        write_work(Path(folder), recipes, placement)
        done = subprocess.run(  # noqa: S603 (our own module)
            [sys.executable, "-m", "seedgrid.diffusion.worker.child", folder],
            env=environment | instruction_limits.accepted(limits),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RunError("child_failed", reason=last_words(done.stderr))
        pictures = np.load(Path(folder) / "pictures.npy", allow_pickle=False)
        passport = Passport.model_validate_json((Path(folder) / "passport.json").read_bytes())
    return tuple(pictures), passport


def child_environment() -> dict[str, str]:
    """Return this process's environment, in which a child finds our package."""
    path = os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def last_words(said: str) -> str:
    """Return the last line of what a child said."""
    return (said.strip() or "it said nothing").split("\n")[-1][:300]


def write_work(folder: Path, recipes: Sequence[Recipe], placement: Placement) -> None:
    """Write into a folder what a child is to do."""
    work = {
        "recipes": [recipe.model_dump(mode="json") for recipe in recipes],
        "placement": asdict(placement),
    }
    (folder / "work.json").write_text(json.dumps(work), encoding="utf-8")


def read_work(folder: Path) -> tuple[list[Recipe], Placement]:
    """Read what `write_work` wrote."""
    work = json.loads((folder / "work.json").read_text(encoding="utf-8"))
    switches = tuple((name, value) for name, value in work["placement"].pop("switches"))
    recipes = [read_recipe(json.dumps(recipe)) for recipe in work["recipes"]]
    return recipes, Placement(**work["placement"], switches=switches)


def _main(folder: Path) -> int:
    """Be the child: read the work in a folder and leave the answer there."""
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend

    recipes, placement = read_work(folder)
    backend = DiffusersBackend()
    try:
        passport = backend.prepare(recipes[0], placement)
        pictures = backend.paint(recipes, placement, Unwatched())
    except SeedGridError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    np.save(folder / "pictures.npy", np.stack(pictures), allow_pickle=False)
    (folder / "passport.json").write_text(passport.model_dump_json(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
