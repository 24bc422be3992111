"""Contest: two ways to do one thing, run in turns. Knows nothing of pictures.

The machine's mood changes within a minute, so only runs side by side are compared: in each round
both go once, who goes first alternates, and the figure is the median of the rounds' ratios. On a
busy machine the processor time says more than the clock on the wall; both are kept.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Side:
    """One way to do it.

    Attributes:
        go: Does it; gets the number of the round.
        cpu_s: Reads the processor time of the process that does it.
    """

    go: Callable[[int], object]
    cpu_s: Callable[[], float] = time.process_time


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Two ways to do one thing.

    Attributes:
        name: As it stands in the table.
        target: The ratio to reach, ours over plain; None when there is none.
        target_s: The seconds that ours may take, where the issue names seconds.
        plain: What a user would write instead.
        ours: The same with SeedGrid.
    """

    name: str
    target: float | None
    plain: Side
    ours: Side
    target_s: float | None = None


@dataclass(kw_only=True)
class Times:
    """What one side took, round by round, in seconds."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a contest gave."""

    name: str
    target: float | None
    plain: Times
    ours: Times
    target_s: float | None = None

    def as_json(self) -> dict[str, object]:
        """Return medians, ratios and every single measurement."""
        ratio = _ratio(self.ours.wall_s, self.plain.wall_s)
        return {
            "name": self.name,
            "target": self.target,
            "target_s": self.target_s,
            "reached": self._is_reached(ratio),
            "num_rounds": len(self.ours.wall_s),
            "ratio": ratio,
            "cpu_ratio": _ratio(self.ours.cpu_s, self.plain.cpu_s),
            "plain_median_s": round(statistics.median(self.plain.wall_s), 4),
            "ours_median_s": round(statistics.median(self.ours.wall_s), 4),
            "plain_wall_s": [round(value, 4) for value in self.plain.wall_s],
            "ours_wall_s": [round(value, 4) for value in self.ours.wall_s],
            "plain_cpu_s": [round(value, 4) for value in self.plain.cpu_s],
            "ours_cpu_s": [round(value, 4) for value in self.ours.cpu_s],
        }

    def _is_reached(self, ratio: float) -> bool | None:
        if self.target_s is not None:
            return statistics.median(self.ours.wall_s) <= self.target_s
        return None if self.target is None else ratio <= self.target


def run(contest: Contest, rounds: int, limit_s: float = math.inf) -> Outcome:
    """Run a contest; one round more goes before and does not count.

    Args:
        contest: What is compared.
        rounds: How many count.
        limit_s: No further round begins after so long; at least one counts.
    """
    sides = {"plain": contest.plain, "ours": contest.ours}
    times = {name: Times() for name in sides}
    for side in sides.values():
        side.go(-1)
    start_s = time.perf_counter()
    for number in range(rounds):
        if number and time.perf_counter() - start_s > limit_s:
            break
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            gc.collect()
            cpu_s, wall_s = sides[name].cpu_s(), time.perf_counter()
            sides[name].go(number)
            times[name].wall_s.append(time.perf_counter() - wall_s)
            times[name].cpu_s.append(sides[name].cpu_s() - cpu_s)
    return Outcome(name=contest.name, target=contest.target, target_s=contest.target_s, **times)


def measure(name: str, target: float, value: float, **more: object) -> dict[str, object]:
    """Return one figure beside its target, as it stands in the table; less is better."""
    found = {"name": name, "target": target, "value": round(value, 3)}
    return found | {"reached": value <= target} | more


def _ratio(ours: list[float], plain: list[float]) -> float:
    """The median of ours over plain, round by round."""
    return round(statistics.median(a / b for a, b in zip(ours, plain, strict=True)), 4)
