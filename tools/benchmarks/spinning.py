"""How long torch's threads should spin at a barrier: plain diffusers, spin counts in turns.

python -m tools.benchmarks.spinning
python -m tools.benchmarks.spinning --counts 1000 10000 30000 100000 300000 --rounds 7 --busy 2

A process for each count, since libgomp reads `GOMP_SPINCOUNT` once. They paint in turns, first with
nothing beside them, then beside loops that never wait. Printed are medians of a grid of the bundled
model by the clock and in processor time, and how much longer than its fair share a busy one took:
with two threads and two loops on two cores twice the best quiet time would be fair. A quiet machine
is needed: look at the load first. 300000 is what libgomp takes by itself on most machines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.benchmarks.models import BUNDLED
from tools.benchmarks.plain import PlainScript

_SPIN = "GOMP_SPINCOUNT"
_GRID = {"height": 256, "width": 256, "guidance_scale": 2.0}
_LOOP = (sys.executable, "-c", "while True: pass")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmarks.spinning", description=__doc__
    )
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[1000, 10_000, 30_000, 100_000, 300_000]
    )
    parser.add_argument("--rounds", type=int, default=5, help="grids of each, quiet and busy")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1, help="loops beside")
    parser.add_argument("--steps", type=int, default=10)
    asked = parser.parse_args(arguments)
    _say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        scripts = {count: _script(count, Path(folder)) for count in asked.counts}
        for script in scripts.values():
            stack.callback(script.close)
        _painted(scripts, 1, asked.steps)  # The first grid of a process takes longer.
        quiet = _painted(scripts, asked.rounds, asked.steps)
        with _loops(asked.busy):
            busy = _painted(scripts, asked.rounds, asked.steps)
    cores = os.cpu_count() or 1
    fair_s = min(clock_s for clock_s, _ in quiet.values()) * max(1.0, (cores + asked.busy) / cores)
    for count in asked.counts:
        (clock_s, cpu_s), (busy_s, busy_cpu_s) = quiet[count], busy[count]
        _say(
            f"{count:7}: quiet {clock_s:.2f} s ({cpu_s:.2f} of processor), beside {asked.busy}"
            f" loops {busy_s:.2f} s ({busy_cpu_s:.2f}), {busy_s / fair_s:.2f} of the fair share"
        )


def _script(count: int, folder: Path) -> PlainScript:
    os.environ[_SPIN] = str(count)
    return PlainScript(BUNDLED, folder / str(count), None)


def _painted(
    scripts: Mapping[int, PlainScript], rounds: int, steps: int
) -> dict[int, tuple[float, float]]:
    """Paint in turns; return the medians by the clock and in processor time, in seconds."""
    took: dict[int, list[tuple[float, float]]] = {count: [] for count in scripts}
    for number in range(rounds):
        for count, script in scripts.items():
            cpu_s, start_s = script.cpu_s(), time.perf_counter()
            seeds = range(4 * number, 4 * number + 4)
            script.paint(["a fox"] * 4, seeds, num_inference_steps=steps, **_GRID)
            took[count].append((time.perf_counter() - start_s, script.cpu_s() - cpu_s))
    return {
        count: (statistics.median(t[0] for t in times), statistics.median(t[1] for t in times))
        for count, times in took.items()
    }


@contextlib.contextmanager
def _loops(number: int) -> Iterator[None]:
    loops = [subprocess.Popen(_LOOP) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
