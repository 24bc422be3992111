"""A pairwise covering: few cases in which every two values of two axes meet at least once.

    covering(cases)   # every pair that some case has is had by one of these

Most faults of settings need one value or two; crossing all of nine axes takes weeks, all pairs of
them an hour. The choice is greedy and the same on every machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

Case = TypeVar("Case")
Pair = tuple[tuple[int, Any], tuple[int, Any]]

_POOL: Final = 4000
"""So many cases are looked through for those that bring many pairs at once."""


def pairs_of(values: Iterable[Any]) -> frozenset[Pair]:
    """Return the pairs of axes' values that a case has."""
    return frozenset(itertools.combinations(enumerate(values), 2))


def covering(cases: Sequence[Case], values: Callable[[Case], Iterable[Any]]) -> list[Case]:
    """Return cases that have, together, every pair that any case has; the richest first.

    Args:
        cases: In an order that mixes all axes.
        values: Gives a case's values, axis by axis.
    """
    chosen: list[Case] = []
    covered: set[Pair] = set()
    pool = [(case, pairs_of(values(case))) for case in cases[:_POOL]]
    most = max((len(pairs) for _, pairs in pool), default=0)
    for at_least in range(most, 1, -1):
        for case, pairs in pool:
            if len(pairs - covered) >= at_least:
                chosen.append(case)
                covered |= pairs
    for case in cases:
        if pairs := pairs_of(values(case)) - covered:
            chosen.append(case)
            covered |= pairs
    return chosen
