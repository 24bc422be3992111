"""`python -m tools.benchmarks`: run the contests, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.benchmarks import processes
from tools.benchmarks.contest import Contest, run
from tools.benchmarks.models import BUNDLED
from tools.benchmarks.painting import Stage
from tools.benchmarks.plain import ROOT

SETTINGS: dict[str, dict[str, Any]] = {
    "bundled-256": {"size_px": 256, "num_steps": 10, "guidance": 2.0},
    "sd-256": {"size_px": 256, "num_steps": 5, "guidance": 7.5},
    "sd-512": {"size_px": 512, "num_steps": 5, "guidance": 7.5},
}
CONTESTS: dict[str, tuple[str, ...]] = {
    "bundled-256": ("grid", "previews", "refinement", "known", "matrix", "portable"),
    "sd-256": ("grid", "refinement", "bfloat16", "portable"),
    "sd-512": ("grid",),
}


def main(arguments: list[str] | None = None) -> None:
    """Run what was asked for, and end with a table of targets."""
    chosen = _read(arguments)
    if chosen.cluster:
        from tools.benchmarks.cluster import main as measure_cluster

        measure_cluster(chosen.rounds)
        return
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SEEDGRID_CACHE"] = f"{scratch}/cache"
        for figure in _figures(chosen, Path(scratch)):
            found.append(figure)
            print(_line(figure), flush=True)
    print("\n" + "\n".join(_table(found)))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(_machine() | {"found": found}, indent=1))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", usage="%(prog)s [options]")
    parser.add_argument("--rounds", type=_positive, default=7, help="rounds that count, at most")
    parser.add_argument(
        "--limit", type=float, default=40, help="seconds for one contest; one round counts anyway"
    )
    parser.add_argument("--only", default="", help="only contests whose name holds this")
    parser.add_argument("--model", choices=[*SETTINGS, "none"], action="append")
    parser.add_argument("--threads", type=_positive, help="of torch, on both sides")
    parser.add_argument("--processes", action="store_true", help="memory and start-up as well")
    parser.add_argument("--page", action="store_true", help="the page in Chromium as well")
    parser.add_argument(
        "--cluster", action="store_true", help="instead: what Ray costs, and a hundred workers"
    )
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    return parser.parse_args(arguments)


def _figures(chosen: argparse.Namespace, scratch: Path) -> Iterator[dict[str, Any]]:
    """Measure one thing after the other."""
    if chosen.processes:
        yield from _processes(scratch, chosen.rounds)
    if chosen.page:
        yield from _on_the_page(scratch, chosen.rounds, chosen.limit)
    for model in chosen.model or SETTINGS:
        if model == "none":
            continue
        stage = _stage(model, scratch, chosen.threads)
        for contest in _contests(model, stage, chosen.only):
            yield run(contest, chosen.rounds, chosen.limit).as_json()
        if model == "bundled-256" and not chosen.only:
            yield stage.first_preview(chosen.rounds)
            yield stage.stop()
        stage.close()


def _stage(model: str, scratch: Path, threads: int | None) -> Stage:
    name = model.partition("-")[0]
    folder = BUNDLED if name == "bundled" else _sd_shaped(scratch)
    return Stage(name, folder, scratch=scratch / model, threads=threads, **SETTINGS[model])


def _sd_shaped(scratch: Path) -> Path:
    """Return the folder of the model in the shape of Stable Diffusion, made once."""
    folder = scratch / "sd-shaped"
    if not folder.is_dir():
        # In a process of its own: torch's threads of this one would stay, and slow the studio's.
        command = [sys.executable, "-m", "tools.benchmarks.models", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True)
    return folder


def _contests(model: str, stage: Stage, only: str) -> Iterator[Contest]:
    """Make the contests one by one: each keeps a model in memory."""
    half = {"dtype": "bfloat16"}
    makers: dict[str, Callable[[], Contest]] = {
        "grid": stage.grid,
        "previews": stage.grid_with_previews,
        "refinement": stage.refinement,
        "known": stage.known,
        "matrix": lambda: stage.matrix(64),
        "bfloat16": lambda: stage.faster("bfloat16", {}, half),
        "portable": lambda: stage.faster("portable", {}, {"portable": True}, target=3.0),
    }
    for name, make in makers.items():
        if name in CONTESTS[model] and only in name:
            yield make()


def _processes(scratch: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure what whole processes cost, on the bundled model."""
    yield processes.time_to_page(scratch, rounds)
    yield processes.memory_of_library(scratch)
    yield processes.time_to_ready(BUNDLED, scratch, rounds)
    yield processes.peak_memory("bundled", BUNDLED, scratch, rounds)
    yield processes.peak_memory("sd", _sd_shaped(scratch), scratch, min(rounds, 5))
    yield processes.peak_memory("bundled", BUNDLED, scratch, min(rounds, 3), portable=True)
    yield processes.peak_memory("sd", _sd_shaped(scratch), scratch, min(rounds, 3), portable=True)
    yield processes.memory_of_many(BUNDLED, scratch)


def _on_the_page(scratch: Path, rounds: int, limit_s: float) -> Iterator[dict[str, Any]]:
    """Measure from the click to the pictures; needs Chromium and the development requirements."""
    from tools.benchmarks.screen import SIZES, opened

    with opened(scratch) as screen:
        for size in SIZES:
            for contest in (screen.grid(size), screen.known(size)):
                yield run(contest, rounds, limit_s).as_json()
        yield from screen.first_preview("bundled, 10 steps", rounds, steps="10")
    with opened(scratch, _sd_shaped(scratch)) as screen:
        yield from screen.first_preview("sd, 256 px", 3, size="256", steps="4")


def _line(figure: dict[str, Any]) -> str:
    if "value" in figure:
        return f"{figure['name']:<58} {figure['value']:8.3f}"
    return (
        f"{figure['name']:<58} plain {figure['plain_median_s']:7.3f} s"
        f"  seedgrid {figure['ours_median_s']:7.3f} s"
        f"  ratio {figure['ratio']:6.3f}, of CPU time {figure['cpu_ratio']:6.3f}"
        f"  ({figure['num_rounds']} rounds)"
    )


def _table(found: list[dict[str, Any]]) -> Iterator[str]:
    """Every figure beside its target, with yes or no."""
    yield f"{'what':<58} {'found':>8} {'target':>8}  reached"
    for figure in found:
        value, target = figure.get("value", figure.get("ratio")), figure["target"]
        if figure.get("target_s") is not None:
            value, target = figure["ours_median_s"], figure["target_s"]
        limit = "" if target is None else f"{target:.2f}"
        verdict = {True: "yes", False: "NO", None: "-"}[figure["reached"]]
        yield f"{figure['name']:<58} {value:8.3f} {limit:>8}  {verdict}"


def _machine() -> dict[str, Any]:
    import diffusers
    import torch

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "torch": str(torch.__version__),
        "diffusers": diffusers.__version__,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
