"""The contests about painting: a grid, a refinement, a matrix; each with its plain twin.

Both sides write PNG files; SeedGrid also keeps a library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from seedgrid.core.events import Step
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.process import tune_process
from seedgrid.studio import Studio
from tools.benchmarks.contest import Contest, Side, measure
from tools.benchmarks.plain import PlainScript

PROMPT = "Labrador in the style of Vermeer"
SUFFIXES = (", highly realistic", ", artsy", ", trending", ", colorful")


class Stage:
    """One model and one size, loaded both ways.

    Args:
        name: Of the model in the table.
        model: The model's folder.
        size_px: Width and height.
        num_steps: Of the denoiser.
        guidance: The guidance scale.
        scratch: A folder for what is written.
        threads: Of torch, on both sides; None is its own choice.
    """

    def __init__(
        self,
        name: str,
        model: Path,
        *,
        size_px: int,
        num_steps: int,
        guidance: float,
        scratch: Path,
        threads: int | None,
    ) -> None:
        self._name = f"{name}, {size_px} px, {num_steps} steps"
        self._model = model
        self._scratch = scratch
        self._threads = threads
        self._plain_settings = {
            "width": size_px,
            "height": size_px,
            "num_inference_steps": num_steps,
            "guidance_scale": guidance,
        }
        self._settings: dict[str, Any] = {
            "width": size_px,
            "height": size_px,
            "num_inference_steps": num_steps,
            "guidance_scale": guidance,
            "scheduler": "DDIM",
        }
        self._studio: Studio | None = None
        self._opened = ""
        self._plain = PlainScript(model, scratch / "plain", threads)

    def close(self) -> None:
        """Let go of both sides."""
        if self._studio is not None:
            self._studio.close()
        self._plain.close()

    def grid(self) -> Contest:
        """A first grid: one prompt, four seeds."""
        return self._grid_contest("grid", 1.00, self._quiet())

    def grid_with_previews(self) -> Contest:
        """The same with four previews at every step."""
        placement = Placement(previews=True, threads=self._threads)
        return self._grid_contest("grid, previews", 1.03, self._open("previews", placement))

    def refinement(self) -> Contest:
        """Four variations of the words on one seed, other words in each round."""
        studio = self._quiet()
        parent = studio.grid(PROMPT, seeds=[2], **self._settings)[0]

        def suffixes(number: int) -> list[str]:
            return [f"{suffix} {number}" for suffix in SUFFIXES]

        return Contest(
            name=f"{self._name}: refinement",
            target=0.97,
            plain=self._plain_side(lambda n: [PROMPT + suffix for suffix in suffixes(n)], [2] * 4),
            ours=Side(go=lambda n: studio.refine(parent, suffixes(n), fresh=True)),
        )

    def matrix(self, num_cells: int) -> Contest:
        """Many seeds of one prompt, for plain diffusers in batches of four."""

        def plain(_: int) -> None:
            for start in range(0, num_cells, 4):
                self._plain.paint([PROMPT] * 4, range(start, start + 4), **self._plain_settings)

        seeds, studio = range(num_cells), self._quiet()
        return Contest(
            name=f"{self._name}: matrix of {num_cells}",
            target=1.00,
            plain=Side(go=plain, cpu_s=self._plain.cpu_s),
            ours=Side(go=lambda _: studio.grid(PROMPT, seeds, fresh=True, **self._settings)),
        )

    def known(self) -> Contest:
        """A grid that is known already; the twin paints it again, for want of a memory."""
        studio = self._quiet()
        studio.grid(PROMPT, **self._settings)
        return Contest(
            name=f"{self._name}: known grid",
            target=None,
            target_s=0.05,
            plain=self._plain_side(lambda _: [PROMPT] * 4, range(4)),
            ours=Side(go=lambda _: studio.grid(PROMPT, **self._settings)),
        )

    def faster(
        self,
        name: str,
        placement: dict[str, Any],
        settings: dict[str, Any],
        *,
        target: float | None = 0.56,
    ) -> Contest:
        """A grid with choices that change pixels for speed; recipe and passport hold them."""
        studio = self._open(name, Placement(previews=False, threads=self._threads, **placement))
        chosen = {**self._settings, **settings}
        return Contest(
            name=f"{self._name}: {name}",
            target=target,
            plain=self._plain_side(lambda _: [PROMPT] * 4, range(4)),
            ours=Side(go=lambda _: studio.grid(PROMPT, fresh=True, **chosen)),
        )

    def first_preview(self, rounds: int) -> dict[str, object]:
        """Say how many steps after the start the first preview is there: by the clock, in steps."""
        studio = self._open("first", Placement(previews=True, threads=self._threads))
        studio.grid(PROMPT, fresh=True, **self._settings)
        found = [self._first_preview(studio) for _ in range(rounds)]
        all_steps = [round(value, 2) for value in found]
        name = f"{self._name}: first preview, in steps"
        return measure(name, 1.5, median(found), all_steps=all_steps)

    def _first_preview(self, studio: Studio) -> float:
        start_s = time.perf_counter()
        run = studio.start_grid(Request(prompt=PROMPT, **self._settings), fresh=True)
        seen_s = [time.perf_counter() for event in run.events() if isinstance(event, Step)]
        step_s = (seen_s[-1] - seen_s[0]) / max(1, len(seen_s) - 1)
        return (seen_s[0] - start_s) / step_s

    def stop(self) -> dict[str, object]:
        """Say how many steps are still done after Stop was pressed at the first one."""
        studio = self._open("stop", Placement(previews=True, threads=self._threads))
        run = studio.start_grid(Request(prompt=PROMPT, **self._settings), fresh=True)
        numbers = []
        for event in run.events():
            if isinstance(event, Step):
                numbers.append(event.number)
                run.cancel()
        return measure(f"{self._name}: steps after Stop", 1, numbers[-1] - numbers[0])

    def _grid_contest(self, name: str, target: float, studio: Studio) -> Contest:
        return Contest(
            name=f"{self._name}: {name}",
            target=target,
            plain=self._plain_side(lambda _: [PROMPT] * 4, range(4)),
            ours=Side(go=lambda _: studio.grid(PROMPT, fresh=True, **self._settings)),
        )

    def _plain_side(self, prompts: Callable[[int], list[str]], seeds: Sequence[int]) -> Side:
        return Side(
            go=lambda n: self._plain.paint(prompts(n), seeds, **self._plain_settings),
            cpu_s=self._plain.cpu_s,
        )

    def _quiet(self) -> Studio:
        return self._open("quiet", Placement(previews=False, threads=self._threads))

    def _open(self, name: str, placement: Placement) -> Studio:
        """Open a studio in place of the one before: only one may be there, as in the page.

        Two of them have two pools of OpenMP threads, together more than there are processors; then
        libgomp lets its threads sleep at every barrier, and all are slower by a quarter.
        """
        if self._studio is None or self._opened != name:
            if self._studio is not None:
                self._studio.close()
            tune_process()  # As the page and the command line do.
            self._studio = Studio(str(self._model), self._scratch / name, placement=placement)
            self._opened = name
        return self._studio
