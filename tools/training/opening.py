"""The four pictures of the opening page, painted by the model that ships: `assets/opening/`.

They are one round, with their recipes inside, so that a click goes on from one of them. Whoever
changes the model's weights makes them again: `python -m tools.training opening`.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Final

from seedgrid.formats import png
from seedgrid.storage.files import assets_folder, write_atomically
from seedgrid.studio import Studio

OPENING: Final = (
    ("lighthouse, stained glass", 4),
    ("mushroom in the style of Van Gogh", 6),
    ("rocket, neon", 5),
    ("sailboat, blueprint", 5),
)
"""Words and seed: what the model does best."""


def make_opening(folder: Path | None = None) -> list[Path]:
    """Paint the four and write them.

    Args:
        folder: Where to; the page's own by default.

    Returns:
        The files.
    """
    folder = folder or assets_folder() / "opening"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as library, Studio("bundled", library) as studio:
        painted = [studio.grid(prompt, (seed,))[0].path for prompt, seed in OPENING]
        pictures = [png.read_bytes(path) for path in painted]
        ids = [_id(png.read(picture).recipe.id) for picture in pictures]
        together = {"work_id": _id("".join(ids)), "round_id": _id("".join(ids))}
        files = []
        for cell, (picture, picture_id) in enumerate(zip(pictures, ids, strict=True)):
            place = together | {"picture_id": picture_id, "cell": cell}
            lineage = png.read(picture).lineage.model_copy(update=place)
            path = folder / f"{cell + 1}.png"
            write_atomically(path, png.rewrite(picture, lineage=lineage))
            files.append(path)
    return files


def _id(text: str) -> str:
    """Follow from what is painted: made again of the same weights, they are the same pictures."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
