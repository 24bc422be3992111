"""Loading: how far a large model is, told to whoever waits, and Stop heard between its weights."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import following
import pytest
from painting import PLACEMENT, recipes_for
from stores import MemoryStore
from watches import SilentWatch

from seedgrid.core.errors import RunCancelled
from seedgrid.core.events import Loading
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion import loading
from seedgrid.diffusion.backend import LoadWatch, Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.engine import Engine
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.serializers.stage import status_of
from seedgrid.web.server.routes import make_answers

SOON_S = 120.0


class Large(FakeBackend):
    """Loads four gigabytes, of which the last comes when it may; tells of each."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()
        self.is_waiting = threading.Event()

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        for number in (1, 2, 3, 4):
            if watch is not None and not self.is_ready(recipe, placement):
                watch(number * 10**9, 4 * 10**9)
            if number == 3:
                self.is_waiting.set()
                assert self.may_end.wait(SOON_S)
        return super().prepare(recipe, placement, watch)


@pytest.mark.parametrize("name", ["sd", "sdxl", "flux"])
def test_every_weight_is_counted_and_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rising up to all of them; the picture is that of a model nobody looked at."""
    monkeypatch.setattr(loading, "LEAST_BYTES", 4)
    told: list[tuple[int, int]] = []
    pictures = []
    for watch in (None, lambda done, total: told.append((done, total))):
        backend = DiffusersBackend()
        (recipe,) = recipes_for(backend, folder, prompts=("a fox",))
        backend.prepare(recipe, PLACEMENT, watch)
        pictures.append(backend.paint([recipe], PLACEMENT, SilentWatch())[0])
    assert told == sorted(told)
    assert len(told) > 10
    (total,) = {total for _, total in told}
    assert 0.98 * total < told[-1][0] <= total
    assert (pictures[0] == pictures[1]).all()


def test_stop_is_heard_while_a_model_is_loaded(sd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it stays, and the next one loads it whole."""
    monkeypatch.setattr(loading, "LEAST_BYTES", 4)
    backend = DiffusersBackend()
    (recipe,) = recipes_for(backend, sd, prompts=("a fox",))

    def stop(done: int, total: int) -> None:
        if 2 * done > total:
            raise RunCancelled("run_cancelled")

    with pytest.raises(RunCancelled):
        backend.prepare(recipe, PLACEMENT, stop)
    assert not backend.is_ready(recipe, PLACEMENT)
    backend.prepare(recipe, PLACEMENT)
    assert backend.is_ready(recipe, PLACEMENT)


def test_a_run_says_how_far_its_model_is(make_recipes: Callable[..., tuple[Recipe, ...]]) -> None:
    """In gigabytes; of what was told before the newest is kept, and at the end nothing."""
    backend = Large()
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        assert backend.is_waiting.wait(SOON_S)
        told = [each for each in run.next_events(0)[0] if isinstance(each, Loading)]
        assert [each.num_bytes for each in told] == [0, 3 * 10**9]
        status = status_of(0, told[-1], run)
        assert status["key"] == "status_loading_part"
        assert (status["data"]["done"], status["data"]["total"]) == ("3.0", "4.0")
        backend.may_end.set()
        run.result(SOON_S)
        assert [e.total for e in run.next_events(0)[0] if isinstance(e, Loading)] == [0]


def test_a_stopped_run_lets_its_model_be(make_recipes: Callable[..., tuple[Recipe, ...]]) -> None:
    """At the next piece; the next run loads it."""
    backend = Large()
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        assert backend.is_waiting.wait(SOON_S)
        run.cancel()
        backend.may_end.set()
        with pytest.raises(RunCancelled):
            run.result(SOON_S)
        assert not backend.calls
        assert len(engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)) == 4


def test_who_waits_for_a_model_that_loads_ahead_hears_how_far_it_is(tmp_path: Path) -> None:
    """Generate pressed while the page's own model still loads: not only that one is next."""
    from test_handlers import ASKED, kept

    backend = Large()
    with Studio(library=tmp_path, backend=backend, placement=Placement()) as studio:
        handlers = make_answers(studio).handlers
        studio.engine.warm(studio.model)
        assert backend.is_waiting.wait(SOON_S)
        asked = handlers.on_generate(ASKED, {})

        def is_told(news: Any) -> bool:
            return bool(news.status) and news.status["key"] == "status_loading_part"

        *_, last = following.follow(handlers, kept(asked), is_told)
        assert last.status["data"]["done"] == "3.0"
        backend.may_end.set()
        *_, last = following.follow(handlers, kept(asked))
        assert last.status["key"] == "status_done"
