"""Live in a real Chromium: from the last key to four decoded pictures, and a minute of typing.

    python -m tools.benchmarks.live --seconds 60

Browser, page and painter share the processors, as on an artist's own machine. Measured are the
bundled model's own settings. The keys come at 100 ms on the average, from 20 to 300, so that some
pauses are long enough for a question.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.sync_api import Page, Response, sync_playwright

from tools.benchmarks.models import BUNDLED
from tools.benchmarks.processes import page_served, resident_mb

_SCRIPT: Final = Path(__file__).with_name("live.js")
_ECHO: Final = """() => {
    window.sgEchoes = [];
    document.querySelector("#sg-prompt textarea").addEventListener("keydown", (event) =>
        requestAnimationFrame(() => setTimeout(() =>
            window.sgEchoes.push(performance.now() - event.timeStamp)))); }"""
_SUBJECTS: Final = ("cat", "house", "sailboat", "lighthouse", "tree", "mountain", "fish", "moon")
_TEXT: Final = "a red lighthouse at night in the rain, a house in the snow, a cat "
_LOOK_S: Final = 0.05
_PAUSES_MS: Final = (20, 40, 60, 80, 80, 120, 300)
"""100 ms on the average."""


class Waiting(threading.Thread):
    """Looks how many runs wait or go on, and remembers the most.

    Args:
        address: Of the page.
    """

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.is_over = threading.Event()
        self._address = address

    def run(self) -> None:
        """Look until it is over."""
        while not self.is_over.wait(_LOOK_S):
            with urllib.request.urlopen(f"{self._address}healthz", timeout=30) as answer:  # noqa: S310 (ours)
                self.most = max(self.most, json.load(answer)["queue"]["waiting"])


def main() -> None:
    """Measure, and print each figure with its target."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.live", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="words that are typed at once")
    parser.add_argument("--seconds", type=int, default=60, help="of typing")
    chosen = parser.parse_args()
    path = os.environ.get("SEEDGRID_BROWSER") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SEEDGRID_CACHE"] = f"{scratch}/cache"
        library = Path(scratch) / "library"
        with (
            page_served(library, BUNDLED) as (address, server),
            sync_playwright() as playwright,
            closing(playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])) as own,
        ):
            page = own.new_page()
            took: list[float] = []
            page.on("response", lambda answer: _note_speed(answer, took))
            page.goto(address)
            _switch_on(page)
            _first_look(page, chosen.rounds, took)
            _typing(page, chosen.seconds, address, server, library)


def _note_speed(answer: Response, took: list[float]) -> None:
    if answer.url.endswith("/do/advise") and (said := answer.json()["live"]["took_s"]):
        took.append(said)


def _switch_on(page: Page) -> None:
    page.wait_for_function("() => SeedGrid.placeNow().isFilled")
    for seeds in ("10-13", "20-23", "30-33", "0-3"):
        page.locator("#sg-seeds input").fill(seeds)
        page.click("#sg-generate")
        page.wait_for_timeout(4000)  # The first one loads, and proves the lock.
    page.locator("#sg-live[aria-disabled='false']").click()


def _first_look(page: Page, rounds: int, took: list[float]) -> None:
    found = []
    for number in range(rounds + 1):
        words = f"a {_SUBJECTS[number % len(_SUBJECTS)]} number {number}"
        found.append(page.evaluate(_SCRIPT.read_text(), words))
        page.wait_for_timeout(500)
    engine_s = median(took[-rounds:])
    limit_s = 0.15 + 1.2 * engine_s
    _say("last key to four decoded pictures, s", median(found[1:]), limit_s)
    _say("... the slowest of them, s", max(found[1:]), None)
    _say("... the engine's time for the batch, s", engine_s, None)


def _typing(page: Page, seconds: int, address: str, server: int, library: Path) -> None:
    asked: list[Any] = []
    page.on("request", lambda each: asked.append(each) if "/do/live-" in each.url else None)
    page.evaluate(_ECHO)
    page.locator("#sg-prompt textarea").fill("")
    num_files = len(list(library.rglob("*.png")))
    watch, pauses = Waiting(address), random.Random(39)  # noqa: S311 (pauses)
    watch.start()
    megabytes, num_keys, start_s = [], 0, time.monotonic()
    while (at_s := time.monotonic() - start_s) < seconds:
        if num_keys % len(_TEXT) == 0:
            page.locator("#sg-prompt textarea").fill("")
        page.keyboard.type(_TEXT[num_keys % len(_TEXT)])
        num_keys += 1
        if len(megabytes) <= 4 * at_s / seconds:
            megabytes.append(resident_mb(server))
        page.wait_for_timeout(pauses.choice(_PAUSES_MS))
    page.wait_for_timeout(3000)
    watch.is_over.set()
    megabytes.append(resident_mb(server))
    echoes = sorted(page.evaluate("() => window.sgEchoes"))
    _say("keys", num_keys, None)
    _say("questions", len(asked), None)
    _say("batches that wait beside the one that is painted, at most", watch.most - 1, 1)
    _say("files in the library, more than before", len(list(library.rglob("*.png"))) - num_files, 0)
    _say("echo of a key, median, ms", median(echoes), 50)
    _say("... of 95 in 100, ms", echoes[int(0.95 * len(echoes))], None)
    print("memory of the page's process, MB:", ", ".join(f"{each:.0f}" for each in megabytes))


def _say(name: str, figure: float, target: float | None) -> None:
    verdict = (
        "" if target is None else f"  (target {target:.3g}: {'yes' if figure <= target else 'NO'})"
    )
    print(f"{name}: {figure:.3g}{verdict}", flush=True)


if __name__ == "__main__":
    main()
