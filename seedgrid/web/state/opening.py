"""The opening pictures: four of the bundled model, shown before the first grid.

They are shown only with the very model that painted them. A click adds them to the visitor's
library, as imported pictures. `python -m tools.training opening` makes them.
"""

from functools import cache
from pathlib import Path
from typing import Any

from seedgrid.core.errors import SeedGridError
from seedgrid.formats import png
from seedgrid.storage.files import assets_folder
from seedgrid.studio import Studio


def opening_files() -> tuple[Path, ...]:
    """Return the pictures' files, in the order of the page."""
    return tuple(sorted((assets_folder() / "opening").glob("*.png")))


def opening_cells(studio: Studio) -> list[dict[str, Any]]:
    """Return the cells of the opening page; none with another model."""
    records = _records()
    try:
        model = studio.card().ref
    except SeedGridError:  # Generate says what is wrong with the model.
        return []
    if not records or any(record.recipe.model != model for record in records):
        return []
    return [
        {
            "state": "empty",
            "seed": record.recipe.seed,
            "prompt": record.recipe.prompt,
            "words": record.recipe.prompt,
            "example": number,
        }
        for number, record in enumerate(records, 1)
    ]


def opening_size() -> tuple[int, int]:
    """Return the width and height of the pictures, in pixels."""
    first = _records()[0].recipe
    return first.width, first.height


@cache
def _records() -> tuple[png.PngRecord, ...]:
    try:
        return tuple(png.read(path) for path in opening_files())
    except SeedGridError:  # A damaged asset must not keep the page from opening.
        return ()
