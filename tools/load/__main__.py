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
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from serving import TRIM_S, serve_process

from tools.load.hostile import Hostile
from tools.load.process import Sample, held_by
from tools.load.visitor import Visitor

WIDE = {
    "SEEDGRID_MAX_RUNS_PER_ADDRESS": "none",  # the crowd has one address
}
_TRIM_S = 2.0
"""The C library keeps up to 200 MB that were freed, as it is told to: that is not held."""
_WARM_UP = 0.3
"""The part of the time after which everything should be flat."""
_MOMENTS = 100
"""So many are compared with each other."""
_MAX_GROWTH = {"memory_mb": 60.0, "threads": 12.0, "descriptors": 60.0, "files": 40.0}
"""By how much the line through what was held may rise from the warm-up to the end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.load", description=__doc__)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--hostile", type=int, default=0, help="how many of them are rude")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="where what the server says is written to")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        public = WIDE | {"TMPDIR": name, TRIM_S: str(_TRIM_S)}
        server = serve_process(folder / "library", public=public, log=asked.log)
        with server as (address, pid):
            crowd = [
                Visitor(address, asked.seed + n) for n in range(asked.visitors - asked.hostile)
            ]
            rude = [Hostile(address, asked.seed + n) for n in range(asked.hostile)]
            samples = run([*crowd, *rude], asked.seconds, pid, folder)
    return tell(crowd, rude, samples, asked.seconds)


def run(crowd: Sequence[Visitor | Hostile], seconds: float, pid: int, folder: Path) -> list[Sample]:
    """Let them all live for so long; once a second note what is held."""
    start_s = time.monotonic()
    threads = [threading.Thread(target=each.live, args=(start_s + seconds,)) for each in crowd]
    for thread in threads:
        thread.start()
    samples = [Sample(0.0, 0, held_by(pid, folder))]
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.0)
        num_answers = sum(each.num_requests for each in crowd)
        samples.append(Sample(time.monotonic() - start_s, num_answers, held_by(pid, folder)))
    return samples


def tell(
    crowd: Sequence[Visitor], rude: Sequence[Hostile], samples: Sequence[Sample], seconds: float
) -> int:
    """Print what was found."""
    tallies = [each.tally for each in crowd]
    warm_s = min(seconds * _WARM_UP, samples[-1].at_s)
    # When the visitors go, what they held goes too: the end is the moment before.
    level = [each for each in samples if warm_s <= each.at_s <= seconds] or [samples[-1]]
    for moment, held in (("start", samples[0]), ("warm", level[0]), ("end", level[-1])):
        _say(f"{moment:6} {held.held}")
    floor = _floor(level)
    _say(f"lowest memory by tenths: {' '.join(f'{each.held.memory_mb:.0f}' for each in floor)} MB")
    grown = [
        _growth(floor if name == "memory_mb" else level, name, limit)
        for name, limit in _MAX_GROWTH.items()
    ]
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
    errors = [e for tally in [*tallies, *(each.tally for each in rude)] for e in tally.errors]
    num_pictures = sum(tally.num_pictures for tally in tallies)
    refused = sum(tally.refused for tally in tallies)
    num_lost = sum(tally.lost for tally in tallies)
    stuck = sum(not tally.goes_on for tally in tallies)
    _say(f"{num_pictures} pictures, {len(mixed)} mixed up, {refused} requests asked to wait")
    if rude:
        done = sum((each.done for each in rude), Counter())
        _say(f"others: {', '.join(f'{n} {what}' for what, n in done.most_common())}")
        _say(f"others: {sum(each.tally.refused for each in rude)} refused")
    _say(f"{num_lost} pictures gone, {stuck} visitors whose last grid did not come")
    if told := sum((tally.told for tally in tallies), Counter()):
        _say(f"grids that did not come: {', '.join(f'{n} {key}' for key, n in told.items())}")
    errors += ["a grid did not come, and nobody said why"] * (told["nothing"] + told["status_done"])
    if num_lost:
        errors.append("a picture went that nobody took")
    if stuck:
        errors.append("a visitor's last grid did not come")
    _say(f"{len(errors)} errors")
    for line, number in Counter((*mixed, *errors)).most_common(12):
        _say(f"  {number} × {line}")
    return 1 if mixed or errors or not all(grown) else 0


def _floor(level: Sequence[Sample]) -> list[Sample]:
    """Of each tenth the moment with the least memory: a large picture comes and goes in a second.

    It may take 256 MB on a public page, and would draw any line anywhere.
    """
    ends = [round(n * len(level) / 10) for n in range(11)]
    pieces = [level[start:end] for start, end in pairwise(ends) if start < end]
    return [min(piece, key=lambda each: each.held.memory_mb) for piece in pieces]


def _growth(level: Sequence[Sample], name: str, limit: float) -> bool:
    """Print how a quantity rose, by the middle of the slopes between any two moments.

    What comes and goes draws no such line. By what was asked, not by the clock: a busy machine
    answers less, and holds no less of it.
    """
    level = level[:: max(1, len(level) // _MOMENTS)]
    asked = [each.num_answers for each in level]
    values = [float(getattr(each.held, name)) for each in level]
    num_asked = asked[-1] - asked[0]
    pairs = combinations(zip(asked, values, strict=True), 2)
    slopes = [(held - before) / (n - m) for (m, before), (n, held) in pairs if n > m]
    if not slopes:
        return True
    slope = statistics.median(slopes)
    is_flat = slope * num_asked <= limit
    word = "flat" if is_flat else f"NOT FLAT (more than {limit:g})"
    risen = f"{slope * num_asked:+8.1f} in {num_asked} requests ({slope * 1000:+.2f} in 1,000)"
    _say(f"{name:12} rises {risen}: {word}")
    return is_flat


def _costs(samples: Sequence[Sample]) -> list[float]:
    """Milliseconds of processor an answer, second by second."""
    return [
        1000
        * (after.held.processor_s - before.held.processor_s)
        / (after.num_answers - before.num_answers)
        for before, after in pairwise(samples)
        if after.num_answers > before.num_answers
    ]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
