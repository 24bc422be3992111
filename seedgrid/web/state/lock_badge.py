"""The lock badge: the probe's result for pictures like this one, and when to probe.

A probe costs two grids of four steps, once for a model and setting. It starts by itself after the
first grid, on the engine's thread, and is cancelled when a run is submitted.
"""

import contextlib
import logging
import threading
from concurrent.futures import Future

from seedgrid.core.errors import RunCancelled, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.diffusion.probe_results import ProbeReport, recall_report
from seedgrid.engine import Run
from seedgrid.studio import Studio
from seedgrid.web.serializers import stage

logger = logging.getLogger(__name__)


class LockBadge:
    """The page's sentence on the lock. Safe to use from any thread."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._guard = threading.Lock()
        self._probing: Future[ProbeReport | None] | None = None

    def of(self, entry: Entry) -> stage.Json:
        """Return the sentence on what was tested here for pictures like this one, and when."""
        if entry.recipe.is_portable:  # Independent of the batch by definition.
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
        """Probe the recipe of a finished run, unless there is a report."""
        entry = next(iter(run.finished.values()), None)
        if run.state != "done" or entry is None:
            return
        recipe = entry.recipe
        needs_none = recipe.is_portable or recipe.upscaler is not None
        if needs_none or recall_report(recipe, entry.passport) is not None:
            return
        # One at a time; a closing engine refuses it.
        with self._guard, contextlib.suppress(SeedGridError):
            if self._probing is None or self._probing.done():
                self._probing = self._studio.verifier.probe(recipe, run.placement)
                self._probing.add_done_callback(_note_failure)


def _note_failure(probing: Future[ProbeReport | None]) -> None:
    error = None if probing.cancelled() else probing.exception()
    if error is not None and not isinstance(error, RunCancelled):
        logger.warning("the lock could not be probed: %s", error)
