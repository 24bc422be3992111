"""Everything that is to be known of a GPU, in one command and under nine minutes.

    python -m tools.benchmarks.gpu                        # on a machine with a GPU, a bare checkout
    python -m tools.benchmarks.gpu --device cpu --px 64   # a rehearsal on a processor

First the tests of tests/gpu (lock, schedulers, parity, switches, attention, offload, memory, verify
between processes), then seconds and memory beside plain diffusers on a model in the shape of Stable
Diffusion 1.5 with random weights. Prints a table; `--json FILE` keeps the figures. Never run on a
GPU so far. Needs torch, diffusers, transformers, accelerate and pytest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement, Unwatched
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from tools.benchmarks.models import ROOT, build_sd_shaped

LIMIT_S = 520.0
TESTS_S = 300
PROMPTS = ("a red fox", "a blue fox, artsy", "fox", "two foxes at night")


def run_tests(device: str, limit_s: float) -> bool:
    """Run tests/gpu and say whether all passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "tests/gpu", "--device", device]
    try:
        return subprocess.run(command, cwd=ROOT, timeout=limit_s, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Stage:
    """A model, a device, and what is asked of them."""

    def __init__(self, folder: Path, device: str, px: int, steps: int) -> None:
        self.folder, self.device, self.px, self.steps = folder, device, px, steps
        self.backend = DiffusersBackend()

    def recipes(self, **changes: str) -> tuple[Recipe, ...]:
        """Return one recipe a prompt, each on its own seed."""
        request = Request(
            prompt=PROMPTS[0],
            seeds=(0, 1, 2, 3),
            width=self.px,
            height=self.px,
            num_inference_steps=self.steps,
            **changes,
        )
        recipes = resolve(request, self.backend.card(str(self.folder)))
        return tuple(
            recipe.replace(prompt=prompt) for recipe, prompt in zip(recipes, PROMPTS, strict=True)
        )

    def ours(self, placement: Placement, **changes: str) -> Callable[[], object]:
        """Return what paints a grid with SeedGrid's backend."""
        recipes = self.recipes(**changes)
        return lambda: self.backend.paint(recipes, placement, Unwatched())

    def plain(self, dtype: str) -> Callable[[], object]:
        """Return what paints the same with diffusers alone, at torch's own switches."""
        import diffusers

        pipeline: Any = diffusers.DiffusionPipeline.from_pretrained(
            self.folder, dtype=getattr(torch, dtype)
        ).to(self.device)
        pipeline.set_progress_bar_config(disable=True)

        def paint() -> object:
            generators = [torch.Generator("cpu").manual_seed(seed) for seed in range(4)]
            size = {"width": self.px, "height": self.px, "num_inference_steps": self.steps}
            return pipeline(list(PROMPTS), generator=generators, **size).images

        return paint


def contests(stage: Stage) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is measured, a name and what paints one grid."""
    place = Placement(device=stage.device, previews=False)
    for dtype in ("float32", "float16", "bfloat16"):
        yield f"plain diffusers, {dtype}", stage.plain(dtype)
        for level in ("strict", "seeded", "off"):
            yield f"SeedGrid, {dtype}, {level}", stage.ours(place, dtype=dtype, determinism=level)
    for name in ATTENTION_NAMES[1:]:
        there = Placement(device=stage.device, previews=False, attention=name)
        yield f"SeedGrid, float32, attention {name}", stage.ours(there, dtype="float32")
    if stage.device != "cpu":
        far = Placement(device=stage.device, previews=False, offload="model")
        yield "SeedGrid, float32, offload model", stage.ours(far, dtype="float32")


def measure(paint: Callable[[], object], device: str, rounds: int) -> dict[str, Any]:
    """Paint once to warm up and some rounds by the clock; say how much memory it took."""
    on_gpu = device.startswith("cuda")
    try:
        paint()
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        took = []
        for _ in range(rounds):
            start_s = time.perf_counter()
            paint()
            if on_gpu:
                torch.cuda.synchronize()
            took.append(time.perf_counter() - start_s)
    except Exception as error:  # noqa: BLE001 (a row of the table says what went wrong)
        return {"error": f"{type(error).__name__}: {error}"[:120]}
    peak_mb = torch.cuda.max_memory_allocated() / 1e6 if on_gpu else 0.0
    return {"seconds": round(median(took), 4), "peak_mb": round(peak_mb)}


def main() -> int:
    """Run tests and contests within the limit; 0 when every test passed."""
    parser = argparse.ArgumentParser(description="What is to be known of a GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--px", type=int, default=512)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-tests", action="store_true")
    told = parser.parse_args()
    end_s = time.monotonic() + LIMIT_S
    passed = told.no_tests or run_tests(told.device, TESTS_S)
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(build_sd_shaped(Path(folder)), told.device, told.px, told.steps)
        for name, paint in contests(stage):
            if time.monotonic() > end_s:
                print("no time is left for more")
                break
            rows[name] = measure(paint, told.device, told.rounds)
            print(f"| {name} | {rows[name]} |", flush=True)
    if told.json:
        about = {"device": told.device, "torch": torch.__version__, "px": told.px}
        told.json.write_text(json.dumps({"about": about, "passed": passed, "rows": rows}))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
