"""What a worker process is to paint and what it painted, as files in a folder. Needs no torch.

write_job(folder, recipes, placement)
pictures, passport = read_result(folder)
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport, Recipe, read_recipe
from seedgrid.diffusion.backend import Outcome, Placement
from seedgrid.storage import starts


def write_job(folder: Path, recipes: Sequence[Recipe], placement: Placement) -> None:
    """Write what a worker is to paint."""
    (folder / "job.json").write_text(job_text(recipes, placement), encoding="utf-8")


def read_job(folder: Path) -> tuple[list[Recipe], Placement]:
    """Read what `write_job` wrote."""
    return read_job_text((folder / "job.json").read_text(encoding="utf-8"))


def job_text(recipes: Sequence[Recipe], placement: Placement) -> str:
    """Return a batch as one text, for another process or another machine."""
    job = {
        "recipes": [recipe.model_dump(mode="json") for recipe in recipes],
        "placement": asdict(placement),
        "starts": [str(place) for place in starts.places()],
    }
    return json.dumps(job)


def read_job_text(text: str) -> tuple[list[Recipe], Placement]:
    """Read what `job_text` wrote."""
    job = json.loads(text)
    starts.know(*(Path(place) for place in job["starts"]))
    switches = tuple((name, value) for name, value in job["placement"].pop("switches"))
    recipes = [read_recipe(json.dumps(recipe)) for recipe in job["recipes"]]
    return recipes, Placement(**job["placement"], switches=switches)


def write_result(folder: Path, pictures: Sequence[Outcome], passport: Passport) -> None:
    """Write what a worker painted, and under which passport."""
    errors = {}
    for place, pixels in enumerate(pictures):
        if isinstance(pixels, RunError):
            errors[place] = {"code": pixels.code, "data": pixels.data}
        else:
            np.save(folder / f"{place}.npy", pixels, allow_pickle=False)
    (folder / "errors.json").write_text(json.dumps([len(pictures), errors]), encoding="utf-8")
    (folder / "passport.json").write_text(passport.model_dump_json(), encoding="utf-8")


def read_result(folder: Path) -> tuple[tuple[Outcome, ...], Passport]:
    """Read what `write_result` wrote."""
    count, errors = json.loads((folder / "errors.json").read_text(encoding="utf-8"))
    pictures: list[Outcome] = []
    for place in range(count):
        if error := errors.get(str(place)):
            pictures.append(RunError(error["code"], **error["data"]))
        else:
            pictures.append(np.load(folder / f"{place}.npy", allow_pickle=False))
    passport = Passport.model_validate_json((folder / "passport.json").read_bytes())
    return tuple(pictures), passport
