"""Loading: said to whoever waits for a model, and Stop heard between its parts."""

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
from seedgrid.diffusion.backend import LoadWatch, Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.engine import Engine
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.server.routes import PageServices

SOON_S = 120.0


class Large(FakeBackend):
    """Loads four parts, of which the last comes when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()
        self.is_waiting = threading.Event()

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        for number in (1, 2, 3, 4):
            if watch is not None and not self.is_ready(recipe, placement):
                watch()
            if number == 3:
                self.is_waiting.set()
                assert self.may_end.wait(SOON_S)
        return super().prepare(recipe, placement, watch)


@pytest.mark.parametrize("name", ["sd", "sdxl", "flux"])
def test_who_watches_is_called_before_each_part_and_changes_nothing(folder: Path) -> None:
    """The picture is that of a model nobody watched."""
    called: list[None] = []
    pictures = []
    for watch in (None, lambda: called.append(None)):
        backend = DiffusersBackend()
        (recipe,) = recipes_for(backend, folder, prompts=("a fox",))
        backend.prepare(recipe, PLACEMENT, watch)
        pictures.append(backend.paint([recipe], PLACEMENT, SilentWatch())[0])
    assert len(called) >= 4  # text encoder, tokenizer, denoiser, decoder
    assert (pictures[0] == pictures[1]).all()


def test_stop_is_heard_while_a_model_is_loaded(sd: Path) -> None:
    """Nothing of it stays, and the next one loads it whole."""
    backend = DiffusersBackend()
    (recipe,) = recipes_for(backend, sd, prompts=("a fox",))
    called: list[None] = []

    def stop() -> None:
        called.append(None)
        if len(called) == 3:
            raise RunCancelled("run_cancelled")

    with pytest.raises(RunCancelled):
        backend.prepare(recipe, PLACEMENT, stop)
    assert not backend.is_ready(recipe, PLACEMENT)
    backend.prepare(recipe, PLACEMENT)
    assert backend.is_ready(recipe, PLACEMENT)


def test_a_run_says_that_its_model_is_loaded(
    make_recipes: Callable[..., tuple[Recipe, ...]],
) -> None:
    """Once, and it stays in what the run tells."""
    backend = Large()
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        assert backend.is_waiting.wait(SOON_S)
        loading = [each for each in run.next_events(0)[0] if isinstance(each, Loading)]
        assert loading == [Loading(model=run.jobs[0].recipe.model.id)]
        backend.may_end.set()
        run.result(SOON_S)
        assert [each for each in run.next_events(0)[0] if isinstance(each, Loading)] == loading


def test_a_stopped_run_lets_its_model_be(make_recipes: Callable[..., tuple[Recipe, ...]]) -> None:
    """At the next part; the next run loads it."""
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


def test_who_waits_for_a_model_that_loads_ahead_hears_of_it(tmp_path: Path) -> None:
    """Generate pressed while the page's own model still loads: not only that one is next."""
    from test_handlers import ASKED

    backend = Large()
    with Studio(library=tmp_path, backend=backend, placement=Placement()) as studio:
        handlers = PageServices(studio).handlers
        studio.engine.warm(studio.model)
        assert backend.is_waiting.wait(SOON_S)
        asked = handlers.on_generate(ASKED, following.nowhere())

        def is_told(news: Any) -> bool:
            return bool(news.status) and news.status["key"] == "status_loading"

        following.follow(handlers, asked.state, is_told)
        backend.may_end.set()
        *_, last = following.follow(handlers, asked.state)
        assert last.status["key"] == "status_done"
