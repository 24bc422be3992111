"""Bad luck: things that go wrong under a server that goes on, at random moments.

A thread of the engine that ends or stays away, a visitor's folder that is deleted, a database that
is overwritten. Two libraries that open at once and damaged archives come from the others.
"""

from __future__ import annotations

import contextlib
import json
import random
import secrets
import shutil
import time
from collections import Counter
from pathlib import Path

import httpx

from tests.load.visitor import Page, Tally

_PAUSE_S = (3.0, 8.0)


class BadLuck:
    """Happens until it is told to stop.

    Attributes:
        done: How often what happened.
    """

    def __init__(self, address: str, page: Page, seed: int, folder: Path) -> None:
        self.tally = Tally()
        self.done: Counter[str] = Counter()
        self._page = page
        self._random = random.Random(seed)  # noqa: S311 (a crowd, no secret)
        self._client = httpx.Client(base_url=address, timeout=60.0)
        self._folder = folder
        self._has_hung = False

    @property
    def num_requests(self) -> int:
        """How much was tried so far."""
        return self.done.total()

    def live(self, until_s: float) -> None:
        """Let one thing after the other go wrong until this time."""
        while time.monotonic() < until_s:
            happens = self._random.choice((self._engine_dies, self._deleted, self._overwritten))
            with contextlib.suppress(OSError, httpx.HTTPError):
                happens()
                self.done[happens.__name__.removeprefix("_")] += 1
            if not self._has_hung:
                self._has_hung = True
                self._ask("a fox that hangs")
                self.done["engine_hangs"] += 1
            time.sleep(self._random.uniform(*_PAUSE_S))
        self._client.close()

    def _engine_dies(self) -> None:
        self._ask("a fox that dies")

    def _ask(self, prompt: str) -> None:
        """Start a run with this prompt, and stop it: a thread that stays away is noticed then."""
        state = {"visitor": secrets.token_hex(16), "epoch": 1}
        asked = {"prompt": prompt, "seeds": str(self._random.randrange(2**20)), "size": "64x64"}
        state = self._event("sg-generate", [state, json.dumps(asked | {"steps": "2"})]) or state
        self._event("sg-stop", [state])

    def _event(self, elem: str, data: list[object]) -> dict[str, object] | None:
        number = self._page.number(elem, "click")
        body = {"fn_index": number, "data": data, "session_hash": secrets.token_hex(5)}
        answer = self._client.post("/gradio_api/run/predict", json=body)
        shown = answer.raise_for_status().json()["data"]
        return shown[0] if shown and isinstance(shown[0], dict) and "visitor" in shown[0] else None

    def _visits(self) -> list[Path]:
        return [path for path in self._folder.glob("*/visitors/*") if path.name != "nobody"]

    def _deleted(self) -> None:
        if visits := self._visits():
            shutil.rmtree(self._random.choice(visits))

    def _overwritten(self) -> None:
        databases = [path for visit in self._visits() for path in visit.glob("library.db*")]
        if databases:
            self._random.choice(databases).write_bytes(b"not a database" * 500)
