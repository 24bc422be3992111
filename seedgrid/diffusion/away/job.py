"""What another process is to paint, as one text. Needs no torch."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seedgrid.core.recipe import Recipe, read_recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.storage import starts


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
