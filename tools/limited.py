"""A model under a real limit on its process: each rung of the ladder it takes is said.

python -m tools.limited
python -m tools.limited --size 512 --spare 400 200 100     megabytes beyond what is held at rest

Each limit holds in a child (RLIMIT_DATA: what it may allocate) that has painted one small grid
before. Printed is what the run told, whether its pictures are those of a run without a limit, and
what verify says of them when the limit is gone: a picture from any rung must be identical when it
is painted again as its recipe and its passport say.
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
_SAME_BITS = {"memory_freed"}
"""Rungs after which every bit is as it was."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Paint under each limit; 1 when a run ended in anything but right pictures or a sentence."""
    parser = argparse.ArgumentParser(prog="python -m tools.limited", description=__doc__)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--size", type=int, default=512, help="of the pictures, in pixels")
    parser.add_argument("--spare", type=int, nargs="*", default=[9000, 700, 500, 400, 300, 200])
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.child is not None:
        return _paint(asked.model, asked.size, asked.child)
    unlimited: list[str] = []
    is_good = True
    for spare_mb in asked.spare:
        told = _run(asked.model, asked.size, spare_mb)
        unlimited = unlimited or told.get("pixels", [])
        has_same_bits = told.get("pixels") == unlimited
        is_told = has_same_bits or "pixels" not in told or set(told["rungs"]) - _SAME_BITS
        is_right = set(told.get("verdicts", ())) <= {"identical"}
        is_good &= bool(is_told) and is_right and "crashed" not in told
        _say(f"{spare_mb:5} MB to spare: {_words(told, has_same_bits=has_same_bits)}")
    return 0 if is_good else 1


def _words(told: dict[str, Any], *, has_same_bits: bool) -> str:
    if "pixels" not in told:
        return f"{told.get('error') or told['crashed']}; said: {told['rungs'] or 'nothing'}"
    bits = "same bits" if has_same_bits else "other bits"
    verdicts = ", ".join(sorted(set(told["verdicts"])))
    widths = ", ".join(map(str, sorted(set(told["widths"]))))
    said = told["rungs"] or "nothing"
    return f"{len(told['pixels'])} pictures, {bits}, width {widths}, {verdicts}; said: {said}"


def _run(model: str, size: int, spare_mb: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tools.limited", "--child", str(spare_mb)]
    command += ["--model", model, "--size", str(size)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.splitlines() or [""])[-1][:200]
        return {"crashed": f"the process ended with {done.returncode}: {last}", "rungs": []}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _paint(model: str, size: int, spare_mb: int) -> int:
    import resource

    from seedgrid import Studio
    from seedgrid.core.errors import SeedGridError
    from seedgrid.core.request import Request

    with tempfile.TemporaryDirectory() as folder, Studio(model, folder, "cpu") as studio:
        small = {"width": 256, "height": 256, "num_inference_steps": 1}
        studio.start_grid(Request(prompt="a fox", seeds=(9,), **small)).result()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = _allocated_bytes() + spare_mb * 1024**2
        asked = {"width": size, "height": size, "num_inference_steps": 1}
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        run = studio.start_grid(Request(prompt="a fox", seeds=(0, 1, 2, 3), **asked))
        told: dict[str, Any] = {}
        entries = ()
        try:
            entries = run.result()
        except SeedGridError as error:
            told["error"] = f"{error.code}: {error}"
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        told["rungs"] = [notice.code for notice in run.notices if "memory" in notice.code]
        if entries:
            told["pixels"] = [entry.pixels_sha256 for entry in entries]
            told["widths"] = [entry.recipe.lock_width for entry in entries]
            told["verdicts"] = _verdicts(studio, entries)
        _say(json.dumps(told))
    return 0


def _verdicts(studio: Any, entries: Sequence[Any]) -> list[str]:
    """Paint the pictures again, without a limit, as they say they were painted."""
    from seedgrid.verify.claim import read_claim
    from seedgrid.verify.verifying import verify

    claims = [read_claim(entry.path) for entry in entries]
    return [found.verdict for found in verify(claims, studio.backend)]


def _allocated_bytes() -> int:
    """Return what counts against the limit now."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmData:")[1].split()[0]) * 1024


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
