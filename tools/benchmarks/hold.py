"""What a refinement costs that holds its parent's first steps, beside one that holds none.

    python -m tools.benchmarks.hold --rounds 3

The model has the shape of Stable Diffusion 1.5 with fewer channels, and random weights. In each
round every share is painted in turn, with the parent's way in memory, and once without it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from seedgrid import Studio
from tools.benchmarks.models import build_sd_shaped

_SHARES: Final = (0.0, 0.25, 0.5, 0.75)
_PX: Final = 192
_STEPS: Final = 20


def main() -> None:
    """Measure, and print each share's cost."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.hold", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        model = build_sd_shaped(Path(scratch) / "model")
        with Studio(str(model), Path(scratch) / "library") as studio:
            sizes = {"width": _PX, "height": _PX, "num_inference_steps": _STEPS}
            for number in range(rounds + 1):  # The first one is for warming up.
                grid = studio.grid(f"a lighthouse {number}", "0-3", **sizes)
                for share in _SHARES:
                    name = f"hold {share:g}"
                    took.setdefault(name, []).append(_refinement_s(studio, grid[0], share))
                os.environ["SEEDGRID_WAY_MB"] = "0.001"  # too little for any
                grid = studio.grid(f"a lighthouse, forgotten {number}", "0-3", **sizes)
                del os.environ["SEEDGRID_WAY_MB"]
                forgotten_s = _refinement_s(studio, grid[1], 0.5)
                took.setdefault("hold 0.5, way forgotten", []).append(forgotten_s)
    plain_s = median(took["hold 0"][1:])
    for name, times in took.items():
        seconds = median(times[1:])
        print(f"{name:24} {seconds:6.2f} s   {seconds / plain_s:.2f}")


def _refinement_s(studio: Studio, picture: object, share: float) -> float:
    start_s = time.perf_counter()
    words = [", at night", ", neon", ", in snow", ", vintage"]
    studio.refine(picture, words, hold=share or None, fresh=True)  # type: ignore[arg-type]
    return time.perf_counter() - start_s


if __name__ == "__main__":
    main()
