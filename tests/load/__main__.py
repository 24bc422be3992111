"""Run the crowd and say what the server held and how it answered; 1 when something was mixed up.

Times are by the clock, on a machine that the visitors share with the server; beside them stands
what an answer costs the server in processor time, by seconds: the work of a second over the
answers given in it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent))

from serving import serve_process

from tests.load.process import Held, held_by
from tests.load.visitor import Page, Tally, Visitor

WIDE = {
    "SEEDGRID_MAX_RUNS_PER_ADDRESS": "none",  # the crowd has one address
    "SEEDGRID_MAX_UPLOADS_MB_PER_ADDRESS": "none",
}
_WARM_UP = 0.3
"""The part of the time after which everything should be flat."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        public = WIDE | {"TMPDIR": name}
        with serve_process(folder / "library", public=public) as (address, pid):
            page = Page(httpx.get(f"{address}config").json())
            crowd = [Visitor(address, page, asked.seed + n) for n in range(asked.visitors)]
            samples = run(crowd, asked.seconds, pid, folder)
    return tell([visitor.tally for visitor in crowd], samples, asked.seconds)


def run(
    crowd: Sequence[Visitor], seconds: float, pid: int, folder: Path
) -> list[tuple[float, int, Held]]:
    """Let them all live for so long; once a second note when, how many answers, what is held."""
    start_s = time.monotonic()
    threads = [threading.Thread(target=each.live, args=(start_s + seconds,)) for each in crowd]
    for thread in threads:
        thread.start()
    samples = [(0.0, 0, held_by(pid, folder))]
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.0)
        num_answers = sum(len(t) for v in crowd for t in v.tally.elapsed_s.copy().values())
        samples.append((time.monotonic() - start_s, num_answers, held_by(pid, folder)))
    return samples


def tell(
    tallies: Sequence[Tally], samples: Sequence[tuple[float, int, Held]], seconds: float
) -> int:
    """Print what was found."""
    warm = next(
        held for at_s, _, held in samples if at_s >= min(seconds * _WARM_UP, samples[-1][0])
    )
    for moment, held in (("start", samples[0][2]), ("warm", warm), ("end", samples[-1][2])):
        _say(f"{moment:6} {held}")
    for what in ("open", "click", "generate", "picture", "thumb"):
        times = sorted(s for tally in tallies for s in tally.elapsed_s.get(what, ()))
        if times:
            p95 = times[int(0.95 * (len(times) - 1))]
            median = statistics.median(times)
            _say(f"{what:9} {len(times):6} answers  median {median:.3f} s  p95 {p95:.3f} s")
    costs = sorted(_costs(samples))
    if costs:
        p95 = costs[int(0.95 * (len(costs) - 1))]
        _say(f"an answer costs {statistics.median(costs):.1f} ms of processor, p95 {p95:.1f} ms")
    mixed = [each for tally in tallies for each in tally.mix_ups]
    errors = [each for tally in tallies for each in tally.errors]
    num_pictures = sum(tally.num_pictures for tally in tallies)
    refused = sum(tally.refused for tally in tallies)
    _say(f"{num_pictures} pictures, {len(mixed)} mixed up, {refused} requests asked to wait")
    _say(f"{len(errors)} errors")
    for line in (*mixed[:5], *errors[:5]):
        _say(f"  {line}")
    return 1 if mixed or errors else 0


def _costs(samples: Sequence[tuple[float, int, Held]]) -> list[float]:
    """Milliseconds of processor an answer, second by second."""
    pairs = pairwise(samples)
    return [
        1000 * (after[2].processor_s - before[2].processor_s) / (after[1] - before[1])
        for before, after in pairs
        if after[1] > before[1]
    ]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
