"""Admission: whether one more request may wait. Knows nothing of queues or screens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.errors import InputError, RunError


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds for strangers, in seconds as estimated by `core/speeds.py`; None is no bound."""

    queue_s: float | None = None  # Of everything that waits or runs
    run_s: float | None = None  # Of one request
    runs_per_address: int | None = None  # Waiting or running, of all visitors there


UNBOUNDED: Final = Bounds()


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who sends a request."""

    owner: str  # Owners take turns: a browser session, for example, by an id of its own
    address: str = ""  # As the server saw it; empty for one's own machine


@dataclass(frozen=True, kw_only=True)
class Load:
    """What an engine has to do."""

    num_waiting: int  # Runs and tasks that wait or go on
    left_s: float  # Their remaining time, as estimated
    is_lost: bool  # Its painter hung or died: the process should be started anew


def admit(
    asker: Asker,
    active: Sequence[tuple[Asker, float]],
    *,
    new_s: float,
    runs_per_owner: int,
    bounds: Bounds,
) -> None:
    """Refuse a request of `new_s` seconds that is too much beside `active`, with seconds left.

    Raises:
        InputError: `run_long`: it is too much at any time.
        RunError: `too_many_runs`, `too_many_here` or `queue_full`: it is too much now.
    """
    longest_s = min(bounds.run_s or math.inf, bounds.queue_s or math.inf)
    if new_s > longest_s:
        value, limit = str(_whole_seconds(new_s)), str(_whole_seconds(longest_s))
        raise InputError("run_long", field="seeds", value=value, limit=limit)
    if sum(other.owner == asker.owner for other, _ in active) >= runs_per_owner:
        raise RunError("too_many_runs", limit=runs_per_owner)
    same_address_s = [left_s for other, left_s in active if other.address == asker.address]
    if bounds.runs_per_address is not None and len(same_address_s) >= bounds.runs_per_address:
        wait_s = _whole_seconds(min(same_address_s))
        raise RunError("too_many_here", limit=bounds.runs_per_address, seconds=wait_s)
    queue_s = sum(left_s for _, left_s in active)
    if bounds.queue_s is not None and queue_s + new_s > bounds.queue_s:
        wait_s = _whole_seconds(queue_s + new_s - bounds.queue_s)
        raise RunError("queue_full", value=_whole_seconds(queue_s), seconds=wait_s)


def _whole_seconds(seconds: float) -> int:
    return max(1, math.ceil(seconds))
