"""Random portable recipes under random environments and widths: one hash each.

    python -m tools.portable sweep FOLDER --count 200 --seed 7 --minutes 10

Each is painted alone, beside a neighbour, and in another slot, each time in a process of another
environment. What was painted is kept in the folder, and the next call goes on there. Says which
differ, which are refused, and the least PSNR from the plain picture.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from seedgrid.core.errors import RunError
from seedgrid.models.schedulers import TABLE, make_scheduler, min_steps
from seedgrid.portable import portable
from seedgrid.portable.selftest import digest
from tools.portable.child import pipeline_of, psnr_db

ROOT = Path(__file__).parent.parent.parent
FAMILIES = ("bundled", "sd", "sdxl", "sd3", "flux", "pixart", "lcm")
FLOWS = ("sd3", "flux")
WORDS = ("fox", "日本の狐", "", "a (red:1.3) fox 🦊", "x" * 300, "Füchse\nand\tcats")
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"OMP_NUM_THREADS": "1"},
    {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "OMP_NUM_THREADS": "3"},
    {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2_Usable,-AVX2,-FMA4",
        "OMP_NUM_THREADS": "2",
    },
)


NEIGHBOURS = ((0, 0), (0, 1), (2, 1))
"""By way: how many are painted before a picture, and how many after it."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One random picture; sizes are odd ones, too."""

    family: str
    scheduler: str
    steps: int
    width: int
    height: int
    seed: int
    prompt: str
    guidance: float


def draws(count: int, seed: int) -> list[Draw]:
    """Return random pictures, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    found = []
    for _ in range(count):
        family = dice.choice(FAMILIES)
        sampling = "flow" if family in FLOWS else "noise"
        fitting = [name for name, row in TABLE.items() if sampling in row.samplings]
        if family == "lcm":
            fitting = ["LCM"]
        step = 16 if family in FLOWS else 8
        found.append(
            Draw(
                family=family,
                scheduler=dice.choice(fitting),
                steps=dice.randint(2, 4),
                width=dice.randrange(32, 65, step),
                height=dice.randrange(32, 65, step),
                seed=dice.randrange(2**32),
                prompt=dice.choice(WORDS),
                guidance=dice.choice((1.0, 2.0, 7.5)),
            )
        )
    return found


def call(pipeline: Any, draw: Draw, neighbours: tuple[int, int], *, is_portable: bool) -> Any:
    """Paint a draw among others of its size: so many before it, so many after; its own row."""
    before, after = neighbours
    seeds = [*range(before), draw.seed, *range(50, 50 + after)]
    prompts = [*["a neighbour"] * before, draw.prompt, *["another"] * after]
    own = pipeline.scheduler  # put back: the next one is made of its configuration, too
    config = own.config
    with portable() if is_portable else contextlib.nullcontext():
        pipeline.scheduler = make_scheduler(draw.scheduler, config)
        images = pipeline(
            prompts,
            generator=[torch.Generator("cpu").manual_seed(seed) for seed in seeds],
            num_inference_steps=max(draw.steps, min_steps(draw.scheduler, config)),
            guidance_scale=draw.guidance,
            width=draw.width,
            height=draw.height,
            output_type="pt",
            **({"use_resolution_binning": False} if draw.family == "pixart" else {}),
        ).images
    pipeline.scheduler = own
    return images[before : before + 1]


def paint_way(draw: Draw, way: int, pipeline: Any) -> dict[str, Any]:
    """Paint a draw in one of the ways; the first is compared with the plain picture."""
    try:
        image = call(pipeline, draw, NEIGHBOURS[way], is_portable=True)
    except (RunError, ValueError) as error:
        return {"hash": f"refused: {error}"[:120]}
    found = {"hash": digest(image), "is_finite": bool(image.isfinite().all())}
    if way == 0:
        plain = call(pipeline, draw, (0, 0), is_portable=False)
        found["psnr_db"] = min(psnr_db(plain, image), 999.0)
    return found


def child(asked: list[Draw], way: int, kept: Path, minutes: float) -> None:
    """Paint in this environment what was not painted yet: a line of JSON each."""
    until = time.monotonic() + minutes * 60
    built: dict[str, Any] = {}
    with kept.open("a", encoding="utf-8") as lines:
        for draw in asked[len(read(kept)) :]:
            if time.monotonic() > until:
                return
            if draw.family not in built:
                built[draw.family] = pipeline_of(draw.family)
            lines.write(json.dumps(paint_way(draw, way, built[draw.family])) + "\n")
            lines.flush()


def read(kept: Path) -> list[dict[str, Any]]:
    """Return what was painted so far; a line that was cut off is mended by leaving it out."""
    if not kept.exists():
        return []
    whole, _, cut = kept.read_text(encoding="utf-8").rpartition("\n")
    if cut:
        kept.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def main(given: list[str]) -> int:
    """Sweep; 0 when every draw so far has one hash and is near the plain picture."""
    parser = argparse.ArgumentParser(prog="python -m tools.portable sweep")
    parser.add_argument("folder", type=Path, help="Where what was painted is kept.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=60, help="For each environment.")
    parser.add_argument("--way", type=int, help="Paint here, in one way (what the command starts).")
    options = parser.parse_args(given)
    asked = draws(options.count, options.seed)
    options.folder.mkdir(parents=True, exist_ok=True)
    kept = [options.folder / f"{options.seed}-{way}.jsonl" for way in range(len(ENVIRONMENTS))]
    if options.way is not None:
        with contextlib.redirect_stdout(sys.stderr):
            child(asked, options.way, kept[options.way], options.minutes)
        return 0
    for way, environment in enumerate(ENVIRONMENTS):
        subprocess.run(
            [sys.executable, "-m", "tools.portable", "sweep", *given, f"--way={way}"],
            cwd=ROOT,
            env=os.environ | environment,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    rows = [read(path) for path in kept]
    return report(asked[: min(map(len, rows))], rows)


def report(asked: list[Draw], rows: list[list[dict[str, Any]]]) -> int:
    """Say what came of the draws; 1 when one has two hashes or is far from the plain picture.

    Args:
        asked: As many as were painted in every way.
        rows: By way, what was found.
    """
    faults, refused, least = 0, defaultdict[str, int](int), 999.0
    for draw, *found in zip(asked, *rows, strict=False):
        first = found[0]
        if str(first["hash"]).startswith("refused"):
            refused[str(first["hash"])] += 1
        near = first.get("psnr_db", 999.0)
        least = min(least, near)
        if len({each["hash"] for each in found}) > 1 or near < 65 or not first.get("is_finite", 1):
            faults += 1
            sys.stdout.write(f"{asdict(draw)}: {found}\n")
    painted = len(asked) - sum(refused.values())
    sys.stdout.write(f"{painted} painted, least {least:.1f} dB, {faults} at fault; {refused}\n")
    return 1 if faults else 0
