"""What the page shows of the studio: a model's options, the opening pictures, the lock badge."""

import contextlib
import logging
import sys
import threading
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from seedgrid.core.card import shapes
from seedgrid.core.errors import RunCancelled, SeedGridError
from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.core.picture import Entry
from seedgrid.core.request import Request, ask_again
from seedgrid.core.variables import is_offered
from seedgrid.diffusion.probe_results import ProbeReport, recall_report
from seedgrid.engine import Run
from seedgrid.formats import png
from seedgrid.storage.files import assets_folder
from seedgrid.studio import Studio
from seedgrid.web.serializers import stage
from seedgrid.web.server.page import say

logger = logging.getLogger(__name__)


def offered(studio: Studio, model: str | None, language: str) -> dict[str, Any]:
    """Return lists as [label, value] pairs, defaults of open fields, suggested words and sizes."""
    card, answers = studio.card(model or None), answers_of(studio, model or None)
    local_choices = {"model": _models(studio.card().ref.id), "device": _devices(studio)}
    vocabulary = card.vocabulary
    hints = {
        kind: [vocabulary.called(word, language) if vocabulary else word for word in words]
        for kind, words in card.hints.items()
    }
    lists: dict[str, Any] = {}
    for row in ON_PAGE:
        if row.widget != "choice":
            continue
        names = row.choices(card) if row.choices else local_choices[row.name]
        pairs = [[say(f"{row.name}_choice_{name}", language) or name, name] for name in names]
        if row.has_auto:
            auto = say("choice_auto", language)
            pairs = [[f"{auto} ({row.text(answers)})", AUTO], *pairs]
        lists[row.name] = pairs
    return {
        "lists": lists,
        "chosen": {"model": card.ref.id},
        "open": {row.name: row.text(answers) for row in ON_PAGE if row.widget == "number"},
        "hints": hints,
        "shapes": [vars(shape) | {"size": shape.text} for shape in shapes(card)],
    }


def answers_of(studio: Studio, model: str | None) -> Request:
    """Return the model's defaults as a request."""
    request = Request(prompt="a picture", seeds=(0,), model=model)
    return ask_again(studio.resolve(request)[0])


def _models(own: str) -> tuple[str, ...]:
    """Return the names of the models to choose from; on a public page those that it offers."""
    from seedgrid.models import registry

    installed = (model.id for model in registry.installed())
    return tuple(dict.fromkeys([own, *filter(is_offered, installed)]))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.placement.device]
    if "torch" in sys.modules and studio.engine.warmth.state == "ready":
        from seedgrid.diffusion.devices import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))


def opening_files() -> tuple[Path, ...]:
    """Return the files of the opening pictures, in the order of the page."""
    return tuple(sorted((assets_folder() / "opening").glob("*.png")))


def opening_cells(studio: Studio) -> list[dict[str, Any]]:
    """Return the opening pictures, if the model is bundled; a click takes them into the library."""
    records = _records()
    try:
        model = studio.card().ref
    except SeedGridError:  # Generate says what is wrong with the model.
        return []
    if not records or any(record.recipe.model != model for record in records):
        return []
    return [
        {
            "state": "empty",
            "seed": record.recipe.seed,
            "prompt": record.recipe.prompt,
            "words": record.recipe.prompt,
            "example": number,
        }
        for number, record in enumerate(records, 1)
    ]


def opening_size() -> tuple[int, int]:
    """Return the width and height of the opening pictures, in pixels."""
    first = _records()[0].recipe
    return first.width, first.height


@cache
def _records() -> tuple[png.PngRecord, ...]:
    try:
        return tuple(png.read(path) for path in opening_files())
    except SeedGridError:  # The page opens without a damaged asset too.
        return ()


class LockBadge:
    """What the page says about the lock, and when the probe runs. Safe from any thread."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._guard = threading.Lock()
        self._probing: Future[ProbeReport | None] | None = None

    def of(self, entry: Entry) -> stage.Json:
        """Return the sentence on what was tested of the lock for this picture, here, and when."""
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
        """Probe the settings of a finished run, unless they were probed before."""
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
