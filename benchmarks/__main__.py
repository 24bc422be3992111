"""`python -m benchmarks`: run the contests, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.contest import Contest, Outcome, run
from benchmarks.models import BUNDLED, build_sd_shaped
from benchmarks.painting import Stage
from seedgrid.studio import Settings

SETTINGS: dict[str, dict[str, Any]] = {
    "bundled-256": {"size_px": 256, "num_steps": 10, "guidance": 2.0},
    "sd-256": {"size_px": 256, "num_steps": 4, "guidance": 7.5},
    "sd-512": {"size_px": 512, "num_steps": 2, "guidance": 7.5},
}


def main(arguments: list[str] | None = None) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count")
    parser.add_argument("--only", default="", help="only contests whose name holds this")
    parser.add_argument("--model", choices=[*SETTINGS, "none"], action="append")
    parser.add_argument("--threads", type=int, help="of torch, on both sides")
    parser.add_argument("--processes", action="store_true", help="memory and start-up as well")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    chosen = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SEEDGRID_CACHE"] = f"{scratch}/cache"
        for model in chosen.model or SETTINGS:
            if model == "none":
                continue
            stage = _stage(model, Path(scratch), chosen.threads)
            for contest in _contests(model, stage, chosen.only):
                outcomes.append(run(contest, chosen.rounds))
                print(_line(outcomes[-1].as_json()), flush=True)
            stage.close()
        costs = _processes(Path(scratch), chosen.rounds) if chosen.processes else []
    if chosen.json is not None:
        found = [outcome.as_json() for outcome in outcomes]
        report = _machine() | {"outcomes": found, "processes": costs}
        chosen.json.write_text(json.dumps(report, indent=1))


def _stage(model: str, scratch: Path, threads: int | None) -> Stage:
    name = model.partition("-")[0]
    folder = BUNDLED if name == "bundled" else scratch / "sd-shaped"
    if not folder.is_dir():
        build_sd_shaped(folder)
    return Stage(name, folder, scratch=scratch / model, threads=threads, **SETTINGS[model])


def _contests(model: str, stage: Stage, only: str) -> Iterator[Contest]:
    """Make the contests one by one: each keeps a model in memory."""
    makers = {
        "grid": stage.grid,
        "previews": stage.grid_with_previews,
        "refinement": stage.refinement,
        "known": stage.known,
    }
    if model == "bundled-256":
        makers["matrix"] = lambda: stage.matrix(16)
    else:
        half = Settings(dtype="bfloat16")
        makers["bfloat16"] = lambda: stage.faster("bfloat16", {}, half)
        makers["turbo"] = lambda: stage.faster("turbo", {"channels_last": True}, half)
    for name, make in makers.items():
        if only in name:
            yield make()


def _processes(scratch: Path, rounds: int) -> list[dict[str, Any]]:
    """Measure what whole processes cost, on the bundled model."""
    measures: list[Callable[[], dict[str, Any]]] = [
        lambda: processes.peak_memory(BUNDLED, scratch, size_px=256, num_steps=10),
        lambda: processes.time_to_ready(BUNDLED, scratch, rounds),
        lambda: processes.time_to_page(scratch, rounds),
    ]
    costs = []
    for measure in measures:
        costs.append(measure())
        print(json.dumps(costs[-1]), flush=True)
    return costs


def _line(outcome: dict[str, Any]) -> str:
    target = "" if outcome["target"] is None else f"  (target {outcome['target']:.2f})"
    return (
        f"{outcome['name']:<40} plain {outcome['plain_median_s']:8.3f} s"
        f"  seedgrid {outcome['ours_median_s']:8.3f} s"
        f"  ratio {outcome['ratio']:6.3f}, of CPU time {outcome['cpu_ratio']:6.3f}{target}"
    )


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
