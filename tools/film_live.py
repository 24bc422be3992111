"""Record the README's film of Live from the real page: `python -m tools.film_live`.

Serves the bundled model, switches Live on, types a prompt, clicks a picture, types a variation, and
writes what Chromium showed as an animated WebP. Nothing is cut or sped up, but that frames in which
nothing changed are one.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tools.benchmarks.models import BUNDLED
from tools.benchmarks.plain import ROOT
from tools.benchmarks.processes import page_served

_SIZE: Final = (1180, 760)
_SHOWN_PX: Final = 920
"""Its width in the README."""
_FRAME_MS: Final = 80
_MOST_BYTES: Final = 3_000_000
_KEY_MS: Final = 75
_MOST_GRIDS: Final = 8
"""Painted before it begins, until the page knows that four pictures are quick enough here."""
_VARIATIONS: Final = (", at night", ", in the rain", ", in the style of Hokusai", ", blueprint")
_POINTER: Final = """() => {
    const dot = document.createElement("div");
    Object.assign(dot.style, {position: "fixed", zIndex: 99, width: "18px", height: "18px",
        margin: "-9px", borderRadius: "9px", background: "rgb(20 20 20 / 45%)",
        border: "2px solid white", pointerEvents: "none", left: "50%", top: "110%",
        transition: "left .35s, top .35s"});
    document.body.append(dot);
    document.addEventListener("mousemove", ({clientX, clientY}) =>
        Object.assign(dot.style, {left: `${clientX}px`, top: `${clientY}px`})); }"""


class Recorder:
    """Keeps what a page shows, as it is told by the browser.

    Args:
        page: Open.
    """

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._frames: list[tuple[float, bytes]] = []
        self._session.on("Page.screencastFrame", self._note)

    def start(self) -> None:
        """Record from now on."""
        self._session.send("Page.startScreencast", {"format": "jpeg", "quality": 92})

    def stop(self) -> list[tuple[float, bytes]]:
        """Return the frames as (seconds, JPEG)."""
        self._session.send("Page.stopScreencast")
        return self._frames

    def _note(self, frame: dict[str, Any]) -> None:
        self._frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
        self._session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(prog="python -m tools.film_live", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "assets" / "readme" / "live.webp")
    target: Path = parser.parse_args().out
    browser_path = os.environ.get("SEEDGRID_BROWSER") or shutil.which("chromium")
    with (
        tempfile.TemporaryDirectory() as scratch,
        page_served(Path(scratch) / "library", BUNDLED) as (address, _),
        sync_playwright() as playwright,
        closing(
            playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        ) as browser,
    ):
        size = {"width": _SIZE[0], "height": _SIZE[1]}
        page = browser.new_context(viewport=size, bypass_csp=True).new_page()
        page.goto(address)
        _prepare(page)
        recorder = Recorder(page)
        recorder.start()
        _play(page)
        frames = recorder.stop()
    data = _film(frames)
    if len(data) > _MOST_BYTES:
        raise SystemExit(f"the film has {len(data)} bytes, more than {_MOST_BYTES}")
    target.write_bytes(data)
    print(f"{target}: {len(data) / 1e6:.2f} MB, {frames[-1][0] - frames[0][0]:.1f} s")


def _prepare(page: Page) -> None:
    """Warm the model up, and switch Live on."""
    page.wait_for_function("() => SeedGrid.placeNow().isFilled")
    page.locator("#sg-prompt textarea").fill("a mountain")
    live = page.locator("#sg-live[aria-disabled='false']")
    for first in range(12 + 4 * _MOST_GRIDS, 11, -4):
        page.locator("#sg-seeds input").fill("12-15" if live.count() else f"{first}-{first + 3}")
        page.click("#sg-generate")
        page.wait_for_timeout(4000)
        if page.locator("#sg-seeds input").input_value() == "12-15":
            break
    live.click()
    page.locator("#sg-prompt textarea").fill("")
    for number, line in enumerate(_VARIATIONS, 1):
        page.locator(f"#sg-vary-{number} input").fill(line)
    page.wait_for_timeout(2000)
    page.evaluate(_POINTER)


def _play(page: Page) -> None:
    field = page.locator("#sg-prompt textarea")
    field.click()
    page.wait_for_timeout(700)
    for words in ("a red sailboat", " at sunset"):
        field.press_sequentially(words, delay=_KEY_MS)
        page.wait_for_timeout(900)
    _click(page, "#sg-stage [data-cell='2']")
    page.wait_for_timeout(900)
    for number, line in ((1, ", at night in the snow"), (4, ", pixel art")):
        selector = f"#sg-vary-{number} input"
        _click(page, selector)
        page.locator(selector).fill("")
        page.locator(selector).press_sequentially(line, delay=_KEY_MS)
        page.wait_for_timeout(1100)
    page.wait_for_timeout(900)


def _click(page: Page, selector: str) -> None:
    box = page.locator(selector).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(400)
    page.mouse.down()
    page.mouse.up()


def _film(frames: list[tuple[float, bytes]]) -> bytes:
    """Return an animated WebP of what was to be seen every so many milliseconds."""
    start_s, end_s = frames[0][0], frames[-1][0]
    images: list[Image.Image] = []
    durations: list[int] = []
    last = b""
    at = 0
    for number in range(int((end_s - start_s) * 1000 / _FRAME_MS) + 1):
        while at + 1 < len(frames) and (frames[at + 1][0] - start_s) * 1000 <= number * _FRAME_MS:
            at += 1
        if frames[at][1] == last:
            durations[-1] += _FRAME_MS
            continue
        last = frames[at][1]
        image = Image.open(io.BytesIO(last)).convert("RGB")
        height = round(image.height * _SHOWN_PX / image.width)
        images.append(image.resize((_SHOWN_PX, height), Image.Resampling.LANCZOS))
        durations.append(_FRAME_MS)
    durations[-1] += 1500
    target = io.BytesIO()
    images[0].save(
        target,
        "WEBP",
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        quality=72,
        method=4,
    )
    return target.getvalue()


if __name__ == "__main__":
    main()
