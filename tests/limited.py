"""The bundled model under a real limit on its process: each rung of the ladder it takes is said.

python -m tests.limited
python -m tests.limited --spare 400 200 100      megabytes beyond what the loaded model has

Each limit holds in a child (RLIMIT_AS) that has painted one small grid before. Printed is what the
run told, and whether its pictures are those of a run without a limit wherever they should be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIZE_PX = 256
_SAME_BITS = {"memory_freed"}
"""Rungs after which every bit is as it was."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Paint under each limit; 1 when a run ended in anything but pictures or a sentence."""
    parser = argparse.ArgumentParser(prog="python -m tests.limited", description=__doc__)
    parser.add_argument("--spare", type=int, nargs="*", default=[4000, 300, 200, 150, 100, 60, 30])
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.child is not None:
        return _paint(asked.child)
    unlimited: list[str] = []
    is_good = True
    for spare_mb in asked.spare:
        told = _run(spare_mb)
        unlimited = unlimited or told.get("pixels", [])
        has_same_bits = told.get("pixels") == unlimited
        is_told = has_same_bits or "pixels" not in told or set(told["rungs"]) - _SAME_BITS
        is_good &= bool(is_told) and "crashed" not in told
        said = told.get("error") or told.get("crashed") or "four pictures"
        bits = "" if "pixels" not in told else ", same bits" if has_same_bits else ", other bits"
        _say(f"{spare_mb:5} MB to spare: {said}{bits}; said: {told.get('rungs') or 'nothing'}")
    return 0 if is_good else 1


def _run(spare_mb: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.limited", "--child", str(spare_mb)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.splitlines() or [""])[-1][:200]
        return {"crashed": f"the process ended with {done.returncode}: {last}", "rungs": []}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _paint(spare_mb: int) -> int:
    import resource

    from seedgrid import Studio
    from seedgrid.core.errors import SeedGridError
    from seedgrid.core.request import Request

    with tempfile.TemporaryDirectory() as folder, Studio("bundled", folder, "cpu") as studio:
        size = {"width": SIZE_PX, "height": SIZE_PX, "num_inference_steps": 2}
        studio.start_grid(Request(prompt="a fox", seeds=(9,), **size)).result()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + spare_mb * 1024**2
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        run = studio.start_grid(Request(prompt="a fox", seeds=(0, 1, 2, 3), **size))
        told: dict[str, Any] = {}
        try:
            told["pixels"] = [entry.pixels_sha256 for entry in run.result()]
        except SeedGridError as error:
            told["error"] = f"{error.code}: {error}"
        told["rungs"] = [notice.code for notice in run.notices if "memory" in notice.code]
        _say(json.dumps(told))
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
