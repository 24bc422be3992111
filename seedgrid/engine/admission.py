"""Admission: who may still have something waiting, and how long it all will take.

How long something takes is measured (`core/speeds.py`). Knows nothing of queues or screens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seedgrid.core.errors import InputError, RunError


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What strangers may ask for; None bounds nothing, as on one's own machine.

    Attributes:
        queue_s: Everything that waits or runs, in estimated seconds.
        run_s: One request, in estimated seconds.
        runs_per_address: How much one address may have waiting or running, for all its visitors.
    """

    queue_s: float | None = None
    run_s: float | None = None
    runs_per_address: int | None = None


UNBOUNDED: Final = Bounds()


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks for something.

    Attributes:
        owner: Owners take turns: a browser session, for example, by an id that it chose itself.
        address: Where from, as the server saw it; empty for one's own machine.
    """

    owner: str
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What an engine has to do.

    Attributes:
        num_waiting: Runs and tasks that wait or go on.
        left_s: What is left of them, in estimated seconds.
        is_lost: Its painter hung or died: the process should be started anew.
    """

    num_waiting: int
    left_s: float
    is_lost: bool


def admit(
    asker: Asker,
    active: Sequence[tuple[Asker, float]],
    *,
    wanted_s: float,
    runs_per_owner: int,
    bounds: Bounds,
) -> None:
    """Let a request in, or say why not and how long to wait.

    Args:
        asker: Who asks.
        active: What waits or runs: who asked, and what is left of it in estimated seconds.
        wanted_s: How long the request will take.
        runs_per_owner: How much one owner may have waiting or running.
        bounds: What strangers may ask for beside.

    Raises:
        InputError: `run_long`: it is too much at any time.
        RunError: `too_many_runs`, `too_many_here` or `queue_full`: it is too much now.
    """
    longest_s = min(bounds.run_s or math.inf, bounds.queue_s or math.inf)
    if wanted_s > longest_s:
        value, limit = str(_whole_seconds(wanted_s)), str(_whole_seconds(longest_s))
        raise InputError("run_long", field="seeds", value=value, limit=limit)
    if sum(other.owner == asker.owner for other, _ in active) >= runs_per_owner:
        raise RunError("too_many_runs", limit=runs_per_owner)
    here = [left_s for other, left_s in active if other.address == asker.address]
    if bounds.runs_per_address is not None and len(here) >= bounds.runs_per_address:
        wait_s = _whole_seconds(min(here))
        raise RunError("too_many_here", limit=bounds.runs_per_address, seconds=wait_s)
    queue_s = sum(left_s for _, left_s in active)
    if bounds.queue_s is not None and queue_s + wanted_s > bounds.queue_s:
        wait_s = _whole_seconds(queue_s + wanted_s - bounds.queue_s)
        raise RunError("queue_full", value=_whole_seconds(queue_s), seconds=wait_s)


def _whole_seconds(seconds: float) -> int:
    return max(1, math.ceil(seconds))
