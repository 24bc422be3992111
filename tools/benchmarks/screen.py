"""From the click to four decoded pictures, in a real Chromium, beside the plain script.

Browser, page and painter share the processors, as on an artist's own machine. Chromium draws
without a graphics card here, which costs more than on a machine that has one.

    with opened(scratch) as screen:
        run(screen.grid("desktop"), rounds=9)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

from tools.benchmarks.contest import Contest, Side, measure
from tools.benchmarks.models import BUNDLED
from tools.benchmarks.painting import PROMPT
from tools.benchmarks.plain import PlainScript
from tools.benchmarks.processes import page_served

SIZES = {"desktop": (1400, 900), "phone": (390, 844)}
_SETTINGS = {"width": 256, "height": 256, "num_inference_steps": 10, "guidance_scale": 2.0}
_CLICK_JS = Path(__file__).with_name("screen.js")
_PREVIEW_JS = Path(__file__).with_name("preview.js")
_FLAGS = ("--no-sandbox", "--disable-gpu")


@contextmanager
def opened(scratch: Path, model: Path = BUNDLED) -> Iterator[Screen]:
    """Serve the page, open it in a browser, and start the plain script.

    Args:
        scratch: A folder for what is written.
        model: The bundled one, or the folder of another.
    """
    path = os.environ.get("SEEDGRID_BROWSER") or shutil.which("chromium")
    with (
        page_served(scratch / "screen" / "library", model) as (address, server),
        sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=path, args=list(_FLAGS))) as browser,
        closing(PlainScript(model, scratch / "screen" / "plain", None)) as plain,
    ):
        page = browser.new_page()
        page.goto(address)
        page.locator("#sg-steps input").wait_for(state="attached")
        yield Screen(page, plain, server)


class Screen:
    """The open page beside the plain script.

    Args:
        page: Open.
        plain: With its model loaded.
        server: The process that serves the page.
    """

    def __init__(self, page: Page, plain: PlainScript, server: int) -> None:
        self._page = page
        self._plain = plain
        self._server = server

    def grid(self, size: str) -> Contest:
        """A first grid, other seeds in each round."""
        start = 10_000 * (1 + list(SIZES).index(size))
        return self._contest(f"page, {size}: grid", size, start, target=1.10)

    def known(self, size: str) -> Contest:
        """A grid that is in the library already."""
        self._click("7-10")
        return self._contest(f"page, {size}: known grid", size, None, target_s=0.05)

    def first_preview(self, name: str, rounds: int, **fields: str) -> list[dict[str, object]]:
        """Say when something of the pictures is drawn after the click, in lengths of a step.

        Two figures: the noise that each picture begins from, and what the first step made of it.

        Args:
            name: Of the model in the table.
            rounds: How many grids count; one more goes before.
            fields: What to fill into the page's settings, by their ids.
        """
        self._page.locator("#sg-settings > summary").click()
        for field, text in fields.items():
            self._page.locator(f"#sg-{field} input, #sg-{field} textarea").first.fill(text)
        self._page.locator("#sg-settings > summary").click()
        found = [self._first_preview(number) for number in range(rounds + 1)][1:]
        names = (f"page, {name}: first preview, the noise", f"page, {name}: first step's preview")
        return [
            measure(f"{each}, in steps", 1.5, median(all_steps), all_steps=all_steps)
            for each, all_steps in zip(names, map(list, zip(*found, strict=True)), strict=True)
        ]

    def _first_preview(self, number: int) -> tuple[float, float]:
        """Return when the noise and the first step's preview were drawn, in steps of that run."""
        first = 50_000 + 4 * number
        noise_ms, preview_ms, steps = self._page.evaluate(
            _PREVIEW_JS.read_text(), f"{first}-{first + 3}"
        )
        if number == 0:
            # After the first grid of its kind the lock is proved, which takes as long again.
            self._page.wait_for_timeout(4 * steps[-1][0])
        (first_ms, first_step), (last_ms, last_step) = steps[0], steps[-1]
        step_ms = (last_ms - first_ms) / (last_step - first_step)
        return round(noise_ms / step_ms, 2), round(preview_ms / step_ms, 2)

    def _contest(
        self,
        name: str,
        size: str,
        start: int | None,
        *,
        target: float | None = None,
        target_s: float | None = None,
    ) -> Contest:
        width, height = SIZES[size]
        self._page.set_viewport_size({"width": width, "height": height})

        def first(number: int) -> int:
            return 7 if start is None else start + 4 * (number + 1)

        return Contest(
            name=name,
            target=target,
            target_s=target_s,
            plain=Side(
                go=lambda n: self._plain.paint(
                    [PROMPT] * 4, range(first(n), first(n) + 4), **_SETTINGS
                ),
                cpu_s=self._plain.cpu_s,
            ),
            ours=Side(
                go=lambda n: self._click(f"{first(n)}-{first(n) + 3}"), cpu_s=self._server_cpu_s
            ),
        )

    def _click(self, seeds: str) -> None:
        self._page.evaluate(_CLICK_JS.read_text(), seeds)

    def _server_cpu_s(self) -> float:
        """Read the server's processor time; the browser's is not in it."""
        fields = Path(f"/proc/{self._server}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
