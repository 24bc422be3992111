"""SIGTERM and SIGINT at random moments of a painting; then a restart, and the same asked again.

What a visitor was shown is in the library, which holds nothing else and nothing broken; the page
says that it stops, and ends with 0; and after the restart the same click shows every picture, those
that were finished as they were.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent))

from serving import serve_process

from seedgrid.core.errors import SeedGridError
from seedgrid.library import Library
from tests.crash.journal import Promise, Promises
from tests.load.visitor import Page, Visitor

NUM_SEEDS = 12
_STEPS, _STEP_S = 6, 0.05
_STOPPING = "Stopping; what is finished is kept."
_LONGEST_S = 1.5 * NUM_SEEDS / 4 * _STEPS * _STEP_S


class Painting:
    """One click on Generate, and what was shown of it.

    Attributes:
        shown: The ids of the finished pictures, by seed.
    """

    def __init__(self, number: int) -> None:
        seeds = f"{number * 100}-{number * 100 + NUM_SEEDS - 1}"
        fields = {"prompt": f"a fox, painting {number}", "seeds": seeds, "size": "64x64"}
        self._asked = json.dumps(fields | {"steps": str(_STEPS)})
        self.shown: dict[int, str] = {}

    def look(self, address: str, has_begun: threading.Event) -> dict[int, str]:
        """Click, and follow until the end or until the server goes; return what is shown."""
        shown: dict[int, str] = {}
        visitor = Visitor(address, Page(httpx.get(f"{address}config").json()), 0)
        try:
            state, letter = visitor._event("sg-generate", "click", [{}, self._asked])
            has_begun.set()
            for told in [json.loads(letter), *_news(visitor._client, state)]:
                _note(told, shown)
        except httpx.HTTPError:
            has_begun.set()
        return shown


def run(folder: Path, *, count: int, seed: int) -> list[str]:
    """Stop a page so often and return every broken promise."""
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    library, promises, broken = folder / "library", Promises(), list[str]()
    before: Painting | None = None
    num_cut = 0
    for number in range(count):
        signal_number = chance.choice((signal.SIGTERM, signal.SIGINT))
        after_s = chance.uniform(0.0, _LONGEST_S)
        painting, log = Painting(number), folder / f"said-{number}"
        with _served(library, log) as (address, pid):
            if before is not None:
                broken += [f"restart {number}: {what}" for what in _asked_again(before, address)]
            has_begun = threading.Event()
            thread = threading.Thread(
                target=lambda p=painting, a=address, b=has_begun: _follow(p, a, b)
            )
            thread.start()
            has_begun.wait()
            time.sleep(after_s)
            os.kill(pid, signal_number)
            thread.join()
            _wait_for_end(pid)  # Whoever leaves the block sends a second signal.
        num_cut += len(painting.shown) < NUM_SEEDS
        broken += [f"stop {number}: {what}" for what in _broken(library, log, painting, promises)]
        before = painting
        now = f"{number + 1}: {signal_number.name} after {after_s:.2f} s"
        print(f"{now}, {len(painting.shown)} shown, {len(broken)} broken", flush=True)  # noqa: T201
    said = f"{count} signals with seed {seed}, {num_cut} cut a painting short"
    print(f"{said}, {len(broken)} broken promises")  # noqa: T201
    return broken


def _follow(painting: Painting, address: str, has_begun: threading.Event) -> None:
    painting.shown = painting.look(address, has_begun)


@contextmanager
def _served(library: Path, log: Path) -> Iterator[tuple[str, int]]:
    with serve_process(library, step_delay_s=_STEP_S, log=log) as served:
        yield served


def _asked_again(before: Painting, address: str) -> list[str]:
    """Click once more: all pictures come, those that were finished bit for bit."""
    shown = before.look(address, threading.Event())
    if len(shown) < NUM_SEEDS:
        return [f"only {len(shown)} pictures of {NUM_SEEDS} came of the same click"]
    with httpx.Client(base_url=address, timeout=60.0) as client:
        lost = [
            cell
            for cell, picture_id in (before.shown | shown).items()
            if client.get(f"/seedgrid/pictures/{picture_id}.png").status_code != 200
        ]
    return [f"cell {cell} is gone" for cell in lost]


def _broken(library: Path, log: Path, painting: Painting, promises: Promises) -> list[str]:
    promises.pictures |= {each: Promise() for each in painting.shown.values()}
    broken = promises.broken_by(library)
    said = _said(log)
    if _STOPPING not in said:
        broken.append("it did not say that it stops")
    if "Traceback" in said:
        broken.append(f"a traceback: {said.strip().splitlines()[-1]}")
    try:
        with Library(library) as again:
            notices = again.notices
    except SeedGridError as error:
        return [*broken, f"it does not open: {error}"]
    return [*broken, *(f"it was mended: {notice}" for notice in notices)]


def _said(log: Path) -> str:
    """Return what the page said; who copies it may lag behind."""
    deadline = time.monotonic() + 10
    while _STOPPING not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    return log.read_text()


def _wait_for_end(pid: int) -> None:
    while "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.02)


def _news(client: httpx.Client, state: Any) -> Iterator[dict[str, Any]]:
    with client.stream("POST", "/seedgrid/follow", json=state) as news:
        for line in news.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def _note(told: dict[str, Any], shown: dict[int, str]) -> None:
    for number, cell in enumerate((told.get("stage") or {}).get("cells", ())):
        if cell.get("id"):
            shown[number] = cell["id"]
