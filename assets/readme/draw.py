"""Draw the README's picture: a grid of four seeds, and the refinement of the one that was picked.

    python assets/readme/draw.py

The pictures are the bundled model's, made here and now; nothing is retouched.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).parents[2]))

from seedgrid import Studio

PROMPT: Final = "Labrador in the style of Vermeer"
SEEDS: Final = "0-3"
PICKED: Final = 2
CELL_PX: Final = 256
GAP_PX: Final = 8
BETWEEN_PX: Final = 96
RING: Final = "#ff7f50"
GROUND: Final = "#111214"


def main() -> None:
    """Make both rounds and write `flow.png` beside this file."""
    with tempfile.TemporaryDirectory() as folder, Studio(library=folder) as studio:
        grid = studio.grid(PROMPT, seeds=SEEDS)
        refined = studio.refine(grid[PICKED])
        rounds = [[picture.image for picture in pictures] for pictures in (grid, refined)]
    side = 2 * CELL_PX + GAP_PX
    sheet = Image.new("RGB", (2 * side + BETWEEN_PX + 2 * GAP_PX, side + 2 * GAP_PX), GROUND)
    _paste(sheet, rounds[0], left=GAP_PX, ringed=PICKED)
    _paste(sheet, rounds[1], left=GAP_PX + side + BETWEEN_PX, ringed=None)
    _arrow(sheet, GAP_PX + side, side // 2 + GAP_PX)
    sheet.save(Path(__file__).with_name("flow.png"), optimize=True)


def _paste(
    sheet: Image.Image, pictures: list[Image.Image], *, left: int, ringed: int | None
) -> None:
    """Put four pictures two by two, one of them ringed."""
    for place, picture in enumerate(pictures):
        x = left + place % 2 * (CELL_PX + GAP_PX)
        y = GAP_PX + place // 2 * (CELL_PX + GAP_PX)
        sheet.paste(picture.resize((CELL_PX, CELL_PX)), (x, y))
        if place == ringed:
            box = (x - 4, y - 4, x + CELL_PX + 3, y + CELL_PX + 3)
            ImageDraw.Draw(sheet).rectangle(box, outline=RING, width=5)


def _arrow(sheet: Image.Image, left: int, middle: int) -> None:
    """Draw an arrow in the space between the rounds."""
    draw, right = ImageDraw.Draw(sheet), left + BETWEEN_PX - 20
    draw.line((left + 20, middle, right - 12, middle), fill=RING, width=6)
    draw.polygon([(right, middle), (right - 20, middle - 14), (right - 20, middle + 14)], fill=RING)


if __name__ == "__main__":
    main()
