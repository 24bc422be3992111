"""One visitor of the page: opens it, generates, follows, looks at pictures, marks favourites.

Every prompt holds a word that is the visitor's own: a picture without it is a mix-up.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from seedgrid.formats import png


@dataclass
class Tally:
    """What visitors met; each has its own.

    Attributes:
        elapsed_s: How long answers took, by what was asked for.
        refused: How often the page asked to wait.
        lost: How many of the pictures that were shown were gone when they were asked for.
        goes_on: Whether the last grid that was begun came with pictures.
        told: What was told of grids that did not come, and how often.
    """

    elapsed_s: dict[str, list[float]] = field(default_factory=dict)
    num_pictures: int = 0
    refused: int = 0
    lost: int = 0
    goes_on: bool = True
    told: Counter[str] = field(default_factory=Counter)
    mix_ups: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


_STATE = ("work", "round", "picked", "run", "epoch")


class Visitor:
    """Clicks until it is told to stop."""

    def __init__(self, address: str, seed: int) -> None:
        self.tally = Tally()
        self._random = random.Random(seed)  # noqa: S311 (a crowd, no secret)
        self._word = f"visitor{secrets.token_hex(4)}"
        self._client = httpx.Client(base_url=address, timeout=60.0)
        self._state: dict[str, Any] = {}
        self._pictures: list[str] = []

    @property
    def num_requests(self) -> int:
        """How much was answered so far."""
        return sum(len(times) for times in self.tally.elapsed_s.copy().values())

    def live(self, until_s: float) -> None:
        """Do one thing after the other until this time; what goes wrong is noted."""
        self._try(self._open)
        while time.monotonic() < until_s:
            action = self._random.choice((self._generate, *[self._click] * 4, self._look))
            self._try(action)
            time.sleep(self._random.uniform(0.2, 1.5))
        self._client.close()

    def _try(self, action: Any) -> None:
        try:
            action()
        except (httpx.HTTPError, KeyError, ValueError) as error:
            self.tally.errors.append(f"{action.__name__}: {type(error).__name__} {error}"[:200])

    def _open(self) -> None:
        with self._timed("open"):
            self._client.get("/").raise_for_status()
        self._ask("load", place=None)

    def _generate(self) -> None:
        first = self._random.randrange(2**20)
        asked = {"prompt": f"a fox, {self._word}", "seeds": f"{first}-{first + 3}", "size": "64x64"}
        self.tally.goes_on = False  # Also where what follows fails.
        with self._timed("generate"):
            shown = self._ask("generate", fields=asked | {"steps": "3"})
        if "place" not in shown:
            self.tally.refused += 1
            self.tally.goes_on = True  # Nothing was begun.
            return
        cells, status = self._follow(shown)
        self._pictures = [cell["id"] for cell in cells if cell.get("id")]
        self.tally.goes_on = bool(self._pictures)
        if not self._pictures:
            self.tally.told[status.get("key") or "nothing"] += 1
        for cell in cells:
            if cell.get("id"):
                self._check(cell["id"])

    def _follow(self, shown: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the cells and the status at the end of the run that is shown."""
        asked = {"state": self._state}
        with self._client.stream("POST", "/seedgrid/do/follow", json=asked) as news:
            for line in news.iter_lines():
                if line.startswith("data: "):
                    shown |= json.loads(line[6:])
        return shown["stage"]["cells"], shown.get("status") or {}

    def _check(self, picture_id: str) -> None:
        with self._timed("picture"):
            data = self._client.get(f"/seedgrid/pictures/{picture_id}.png")
        if data.status_code == 404:
            self.tally.lost += 1
            return
        data.raise_for_status()
        self.tally.num_pictures += 1
        prompt = png.read(data.content).recipe.prompt
        if self._word not in prompt:
            self.tally.mix_ups.append(f"{self._word} was shown {prompt!r}")

    def _click(self) -> None:
        if not self._pictures:
            return
        picture = {"id": self._random.choice(self._pictures)}
        action, told = self._random.choice(
            (("pick", picture), ("favourite", picture | {"favourite": True}))
        )
        with self._timed("click"):
            self._ask(action, **told)

    def _look(self) -> None:
        if self._pictures:
            with self._timed("thumb"):
                path = f"/seedgrid/thumbs/{self._random.choice(self._pictures)}.jpg"
                answer = self._client.get(path)
            if answer.status_code == 404:
                self.tally.lost += 1
            else:
                answer.raise_for_status()

    def _ask(self, action: str, **told: Any) -> dict[str, Any]:
        """Ask the page as its script does, and go where the answer leads."""
        answer = self._client.post(f"/seedgrid/do/{action}", json={"state": self._state} | told)
        parts: dict[str, Any] = answer.raise_for_status().json()
        place = parts.get("place", {})
        self._state |= {name: place[name] for name in _STATE if name in place}
        return parts

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start_s = time.perf_counter()
        yield
        self.tally.elapsed_s.setdefault(what, []).append(time.perf_counter() - start_s)
