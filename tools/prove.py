"""Probe every scheduler with every family and write what was found to docs/schedulers.md.

    python -m tools.prove            # all of them
    python -m tools.prove kolors     # these families; the other columns stay

Real small pipelines with seeded random weights, one thread, width 4, float32 and bfloat16: the
probe paints two grids beside poisoned neighbours and compares every bit before rounding. Nothing
is remembered from a probe before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "schedulers.md"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from painting import PLACEMENT, recipes_for  # noqa: E402 (needs the path above)
from pipelines import save  # noqa: E402
from watches import SilentWatch  # noqa: E402

from seedgrid.core.errors import SeedGridError  # noqa: E402
from seedgrid.diffusion.diffusers_backend import DiffusersBackend  # noqa: E402
from seedgrid.models.schedulers import TABLE  # noqa: E402

FAMILIES = {
    "sd": "SD",
    "sdxl": "SDXL",
    "sd3": "SD3",
    "flux": "Flux",
    "pixart": "PixArt",
    "pixart-sigma": "PixArt Σ",
    "sana": "Sana",
    "lcm": "LCM",
    "stable-unclip": "unCLIP",
    "ddpm": "DDPM",
    "ddim": "DDIM",
    "z-image": "Z-Image",
    "qwen-image": "Qwen-Image",
    "flux2": "FLUX.2",
    "flux2-klein": "klein",
    "chroma": "Chroma",
    "lumina2": "Lumina 2",
    "aura-flow": "AuraFlow",
    "cogview4": "CogView4",
    "sana-sprint": "Sana-Sprint",
    "krea2": "Krea 2",
    "hunyuan-image": "HunyuanImage",
    "hidream": "HiDream",
    "ernie-image": "ERNIE-Image",
    "kolors": "Kolors",
}
DTYPES = ("float32", "bfloat16")

HEAD = """# Schedulers and families: what was tested

Written by `python -m tools.prove`; do not edit by hand. {when}.

**4**: the probe (docs/lock.md) found no leak at width 4, in float32 and in bfloat16: through four
steps and the decoding, a picture's bits did not depend on its slot, or on neighbours whose latents
and words were NaN, huge, ordinary or near. **·**: not offered, because the
scheduler does not fit the family. **1**: HiDream's experts compute with a whole batch's tokens at
once, so its pictures are painted one by one. Anything else would say where the lock does not hold.

Every draw, the first and each later one, comes from the picture's own CPU generator.

"""

TAIL = """
Not offered anywhere:

- `DPMSolverSDEScheduler` ("DPM++ SDE" of k-diffusion) ignores generators. Its Brownian trees take a
  list of seeds, but draw on the model's device, so a seed would mean another noise on a GPU. The
  name "DPM++ SDE" stands for the stochastic form of `DPMSolverSinglestepScheduler`, which draws
  from the generators.
- `LMSDiscreteScheduler` needs SciPy, which nothing else here needs.
- `EDM…`, `TCD…` and `SASolver…` were made for models of other families.
"""


def main(families: Sequence[str]) -> None:
    """Probe the families, by default all, and write the table."""
    backend = DiffusersBackend()
    cells = recorded() if families else {}
    with tempfile.TemporaryDirectory() as root:
        os.environ["SEEDGRID_CACHE"] = str(Path(root) / "cache")
        for family in families or FAMILIES:
            folder = save(family, Path(root) / family)
            for scheduler in backend.card(str(folder)).schedulers:
                cells[scheduler, family] = outcome(backend, folder, scheduler)
                print(family, scheduler, cells[scheduler, family], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "diffusers"))
    head = HEAD.format(when=f"{datetime.now(UTC):%Y-%m-%d}, {versions}, on a processor")
    PAGE.write_text(head + table(cells) + TAIL, encoding="utf-8")


def recorded() -> dict[tuple[str, str], str]:
    """Return the cells of the page as it is, by scheduler and family."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    head, *rows = [line.strip("| ").split(" | ") for line in lines]
    families = [next(f for f, label in FAMILIES.items() if label == each) for each in head[1:]]
    return {
        (r[0], family): cell for r in rows for family, cell in zip(families, r[1:], strict=True)
    }


def outcome(backend: DiffusersBackend, folder: Path, scheduler: str) -> str:
    """Return the width at which no leak was found, or what went wrong."""
    widths = set()
    for dtype in DTYPES:
        recipe = recipes_for(
            backend, folder, scheduler=scheduler, dtype=dtype, num_inference_steps=8
        )[0]
        try:
            report = backend.probe(recipe, PLACEMENT, SilentWatch())
        except SeedGridError as error:
            return f"{dtype}: {error}"
        widths.add(str(report.tested_width))
    return " / ".join(sorted(widths))


def table(cells: dict[tuple[str, str], str]) -> str:
    """Write the cells as a Markdown table."""
    lines = ["| scheduler | " + " | ".join(FAMILIES.values()) + " |"]
    lines.append("|---" * (len(FAMILIES) + 1) + "|")
    for scheduler in TABLE:
        row = [cells.get((scheduler, family), "·") for family in FAMILIES]
        lines.append(f"| {scheduler} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
