"""kill -9 at random moments of generation, import and deletion; then look whether all is there."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from tools.crash import worker
from tools.crash.journal import Journal, Promises

KILLS_PER_LIBRARY = 30


def run(folder: Path, *, count: int, seed: int, writers: int = 1) -> list[str]:
    """Kill workers `count` times and return every broken promise.

    Args:
        folder: Empty; gets one library for every 30 kills.
        count: How many kills.
        seed: Of the random moments.
        writers: How many processes write to one library; all are killed at once.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    broken: list[str] = []
    announced = 0
    for kill in range(count):
        place = folder / f"library-{kill // KILLS_PER_LIBRARY}"
        if kill % KILLS_PER_LIBRARY == 0:
            promises = Promises()
        journals = [folder / f"journal-{kill}-{number}" for number in range(writers)]
        seeds = [chance.randrange(2**32) for _ in journals]
        _kill(place, dict(zip(journals, seeds, strict=True)), after_s=chance.uniform(0.0, 0.4))
        for journal in journals:
            promises.follow(journal)
            announced += journal.read_text().count('"done"') if journal.exists() else 0
        if writers > 1:
            promises.forgive_emptied()
        found = promises.broken_by(place)
        broken += [f"kill {kill}: {what}" for what in found]
        if found:
            promises = Promises()
    print(f"{count} kills, {announced} announcements, {len(broken)} broken promises")
    return broken


def _kill(library: Path, journals: dict[Path, int], *, after_s: float) -> None:
    children = [_start(library, journal, seed) for journal, seed in journals.items()]
    # The workers need a moment to open the library before there is anything to kill.
    time.sleep(0.02 + after_s)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"a worker ended by itself: {status}")


def _start(library: Path, journal: Path, seed: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            worker.live(library, Journal(journal), seed)
        except BaseException:  # noqa: BLE001 - the outermost edge of a process
            traceback.print_exc()
        finally:
            os._exit(1)
    return child
