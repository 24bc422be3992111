"""kill -9 at random moments of generation, import and deletion; then look whether all is there."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from tests.crash import worker
from tests.crash.journal import Journal, Promises

KILLS_PER_LIBRARY = 30


def run(folder: Path, *, count: int, seed: int) -> list[str]:
    """Kill a worker `count` times and return every broken promise.

    Args:
        folder: Empty; gets one library for every 30 kills.
        count: How many kills.
        seed: Of the random moments.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    broken: list[str] = []
    announced = 0
    for kill in range(count):
        place = folder / f"library-{kill // KILLS_PER_LIBRARY}"
        if kill % KILLS_PER_LIBRARY == 0:
            promises = Promises()
        journal = folder / f"journal-{kill}"
        _kill_one(place, journal, seed=chance.randrange(2**32), after_s=chance.uniform(0.0, 0.4))
        promises.follow(journal)
        found = promises.broken_by(place)
        broken += [f"kill {kill}: {what}" for what in found]
        announced += journal.read_text().count('"done"') if journal.exists() else 0
        if found:
            promises = Promises()
    print(f"{count} kills, {announced} announcements, {len(broken)} broken promises")  # noqa: T201
    return broken


def _kill_one(library: Path, journal: Path, *, seed: int, after_s: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            worker.live(library, Journal(journal), seed)
        except BaseException:  # noqa: BLE001 - the outermost edge of a process
            traceback.print_exc()
        finally:
            os._exit(1)
    # The worker needs a moment to open the library before there is anything to kill.
    time.sleep(0.02 + after_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        sys.exit(f"the worker ended by itself: {status}")
