"""How far neighbours of a picture's noise lie from it, by weight.

    python -m tests.neighbours [--prompts 6] [--weights 0.1,0.3,0.5]

Paints parents and four neighbours of each by the bundled model, and by a small Stable Diffusion of
random weights, and prints the mean distance of a neighbour to its parent: of all bytes, 0 to 255,
beside that of another seed, which is as far as noise can lead. The page's two buttons must differ
clearly. The figures go into docs/log.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import pipelines  # noqa: E402 (needs the path above)

from seedgrid.core.request import STRONG, SUBTLE  # noqa: E402
from seedgrid.pictures import StudioPicture  # noqa: E402
from seedgrid.studio import Studio  # noqa: E402

PROMPTS: Final = (
    *("Labrador in the style of Vermeer", "a red cat in the snow", "a lighthouse at dawn"),
    *("a sailboat, watercolor", "a house in the style of Van Gogh", "a yellow fish, pixel art"),
)


def distances(model: str, prompts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Return the mean distance to the parent: by weight, and of another seed."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, Studio(model, folder) as studio:
        for number, prompt in enumerate(prompts):
            parent, *others = studio.grid(prompt, f"{4 * number}-{4 * number + 3}")
            found.setdefault("another seed", []).extend(_apart(parent, others))
            for weight in weights:
                run = studio.start_variations(parent.id, weight=weight)
                around = [StudioPicture(entry) for entry in run.result()]
                found.setdefault(f"{weight:g}", []).extend(_apart(parent, around))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _apart(parent: StudioPicture, others: Sequence[StudioPicture]) -> list[float]:
    own = np.asarray(parent.image, dtype=float)
    return [float(np.abs(np.asarray(each.image, dtype=float) - own).mean()) for each in others]


def main() -> int:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description="How far neighbours lie from their parent.")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--weights", default=f"{SUBTLE:g},{STRONG:g}")
    asked = parser.parse_args()
    weights = [float(each) for each in asked.weights.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        random_weights = pipelines.save("sd", Path(folder))
        for name, model in (("bundled", "bundled"), ("random weights", str(random_weights))):
            found = distances(model, PROMPTS[: asked.prompts], weights)
            told = "".join(f"  {key}: {value:.2f}" for key, value in found.items())
            sys.stdout.write(f"{name}:{told}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
