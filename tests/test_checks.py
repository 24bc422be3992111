"""Verify and the lock badge on the page, on the fake backend."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from gates import GatedBackend
from reports import report_for

from seedgrid.core.errors import RunCancelled
from seedgrid.core.events import Started
from seedgrid.core.picture import Entry, Picture
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement, Watch
from seedgrid.diffusion.probe_results import ProbeReport, keep_report
from seedgrid.formats import png
from seedgrid.studio import Studio
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState
from seedgrid.web.state.snapshot import LockBadge

pytestmark = pytest.mark.usefixtures("forgetful")
ME = PageState(visitor="0" * 32)
SOON_S = 120.0


class ProbingBackend(GatedBackend):
    """Proves every lock, and remembers as the real one does."""

    num_probes = 0

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        if watch.cancelled:
            raise RunCancelled("run_cancelled")
        self.num_probes += 1
        report = report_for(recipe, tested=recipe.lock_width)
        keep_report(recipe, self.prepare(recipe, placement), report)
        return report


def verdicts(studio: Studio, picture_id: str | None, state: PageState) -> list[dict[str, Any]]:
    """What the Verify button services, one after the other."""

    async def collect() -> list[dict[str, Any]]:
        handlers = PageServices(studio).handlers
        return [news.verdict async for news in handlers.on_verify(picture_id, state)]

    return asyncio.run(collect())


@pytest.fixture
def backend() -> ProbingBackend:
    return ProbingBackend()


@pytest.fixture
def entry(studio: Studio) -> Entry:
    return studio.grid("a fox", "5", width=64, height=64, num_inference_steps=4)[0]


def test_an_altered_recipe_is_found_out_with_a_picture_of_the_difference(
    studio: Studio, entry: Entry
) -> None:
    """Pixels that the recipe does not give are drifted; where, is shown."""
    liar = Picture(
        pixels=png.read_pixels(entry.path),
        recipe=entry.recipe.replace(seed=6),
        passport=entry.passport,
        lineage=entry.lineage.model_copy(update={"picture_id": "a" * 32}),
    )
    kept = studio.library.add(liar)
    *_, verdict = verdicts(studio, kept.id, ME)
    assert verdict["verdict"] == "altered"
    assert verdict["difference"].startswith("data:image/jpeg;base64,")
    assert verdict["reasons"][0]["key"] == "reason_same_passport"


@pytest.mark.parametrize(
    ("tested", "key"), [(4, "lock_tested"), (1, "lock_fails"), (0, "lock_never")]
)
def test_the_badge_says_what_was_measured(
    studio: Studio, entry: Entry, tested: int, key: str
) -> None:
    """The probe's result for this model, size and machine, and no other."""
    keep_report(entry.recipe, entry.passport, report_for(entry.recipe, tested=tested))
    badge = LockBadge(studio).sentence_on(entry)
    assert badge["key"] == key
    assert badge["data"] == {"width": tested, "asked": 4, "steps": 4, "date": "2026-11-21"}


def test_on_apples_graphics_chips_the_badge_says_why_nothing_counts_untested(
    studio: Studio, entry: Entry
) -> None:
    """Torch computed all pictures of a batch but the first one wrong there."""
    there = replace(entry, passport=entry.passport.model_copy(update={"device": "mps"}))
    assert LockBadge(studio).sentence_on(there)["key"] == "lock_untested_mps"


def test_the_lock_is_probed_once_by_itself(
    studio: Studio, backend: ProbingBackend, entry: Entry
) -> None:
    """After a finished run, and never again for the like of it."""
    badge = LockBadge(studio)
    for seed in (7, 8):
        run = studio.start_grid(
            Request(prompt="a fox", seeds=(seed,), width=64, height=64, num_inference_steps=4)
        )
        run.result(SOON_S)
        badge.probe_if_untested(run)
        studio.engine.submit_task(lambda _: None).result(SOON_S)
    assert backend.num_probes == 1
    said = badge.sentence_on(entry)
    assert said["key"] == "lock_tested"


def test_a_probe_makes_way(studio: Studio, backend: ProbingBackend) -> None:
    """When anybody wants to paint, a probe that waits is given up, and tried again later."""
    badge = LockBadge(studio)
    first = studio.start_grid(
        Request(prompt="a fox", seeds=(7,), width=64, height=64, num_inference_steps=1)
    )
    first.result(SOON_S)
    backend.may_go.clear()
    blocker = studio.start_grid(Request(prompt="busy", seeds=(1,), width=64, height=64))
    next(event for event in blocker.events(SOON_S) if isinstance(event, Started))
    badge.probe_if_untested(first)
    studio.start_grid(Request(prompt="me too", seeds=(2,), width=64, height=64), owner="api")
    backend.may_go.set()
    blocker.result(SOON_S)
    studio.engine.submit_task(lambda _: None).result(SOON_S)
    assert backend.num_probes == 0
    badge.probe_if_untested(first)
    studio.engine.submit_task(lambda _: None).result(SOON_S)
    assert backend.num_probes == 1
