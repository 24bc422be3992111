"""The lock badge: what the probe found for pictures like this one, and when to probe.

A probe costs two grids of four steps, once for a model and setting. So it runs by itself after the
first grid, on the engine's thread, and makes way at once when somebody paints.
"""

import logging
import threading
from concurrent.futures import Future

from seedgrid.core.errors import RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.probe_results import ProbeReport, recall_report
from seedgrid.engine import Run
from seedgrid.studio import Studio
from seedgrid.web.serializers import stage

logger = logging.getLogger(__name__)


class LockBadge:
    """What the page says about the lock. Safe from any thread."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._busy = threading.Lock()

    def of(self, entry: Entry) -> stage.Json:
        """Say in one sentence what was tested of the lock for this picture, here, and when."""
        if entry.recipe.is_portable:  # Neighbours cannot reach it by definition.
            return {"key": "lock_portable", "data": {}}
        if entry.recipe.upscaler is not None:
            return {"key": "lock_alone", "data": {}}
        report = recall_report(entry.recipe, entry.passport)
        if report is None:
            key = "lock_untested_mps" if entry.passport.device == "mps" else "lock_untested"
            return {"key": key, "data": {"asked": entry.recipe.lock_width}}
        if report.holds:
            key = "lock_tested" if report.asked_width > 1 else "lock_repeats"
        else:
            key = "lock_fails" if report.tested_width else "lock_never"
        data = {
            "width": report.tested_width,
            "asked": report.asked_width,
            "steps": report.num_inference_steps,
            "date": report.tested_at[:10],
        }
        return {"key": key, "data": data}

    def consider(self, run: Run) -> None:
        """Probe what a finished run painted, unless it was probed before."""
        entries = run.finished
        if run.state != "done" or not entries or not self._busy.acquire(blocking=False):
            return
        entry = next(iter(entries.values()))
        recipe = entry.recipe
        needs_none = recipe.is_portable or recipe.upscaler is not None
        if needs_none or recall_report(recipe, entry.passport) is not None:
            self._busy.release()
            return
        self._probe(recipe, run.placement)

    def _probe(self, recipe: Recipe, placement: Placement) -> None:
        def settle(future: Future[ProbeReport | None]) -> None:
            self._busy.release()
            error = None if future.cancelled() else future.exception()
            if error is not None and not isinstance(error, RunCancelled):
                logger.warning("the lock could not be probed: %s", error)

        try:
            self._studio.verifier.probe(recipe, placement).add_done_callback(settle)
        except SeedGridError:  # The engine closes.
            self._busy.release()
