"""A painter that hangs is noticed and told; an error ends a run and never the painter."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from refusing import refused
from stores import MakeRecipes, MemoryStore
from watches import SilentWatch

from seedgrid.core.errors import RunError, as_ours
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Placement, Watch
from seedgrid.engine import Engine, Patience
from seedgrid.testing.fake import FakeBackend, Fault

SOON_S = 20.0
SHORT = Patience(stop_s=0.1, close_s=0.1, check_s=0.02)
SILENT = Patience(silence_s=0.1, check_s=0.02)
ENDS = (SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError())


class Hanging(FakeBackend):
    """Does not come back from its batch after `num_steps` steps, until it may."""

    def __init__(self, num_steps: int = 0) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.is_hanging = threading.Event()
        self.may_return = threading.Event()

    def pause(self, recipes: Sequence[Recipe], number: int, watch: Watch) -> None:
        super().pause(recipes, number, watch)
        if number > self.num_steps:
            self.is_hanging.set()
            self.may_return.wait()


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
def test_what_ends_a_thread_ends_only_the_run(
    make_recipes: MakeRecipes, error: BaseException
) -> None:
    """SystemExit in a backend once ended the engine's thread: everybody waited for ever."""
    backend = FakeBackend()
    backend.faults.append(Fault(error=error))
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        with pytest.raises(RunError, match=re.escape(str(as_ours(error)))):
            run.result(SOON_S)
        after = engine.submit(plan_grid(make_recipes(seeds=(2,))), owner="a")
        assert len(after.result(SOON_S)) == 1


@pytest.mark.parametrize(("num_steps", "patience"), [(2, SHORT), (0, SILENT)])
def test_a_painter_that_hangs_is_told_to_all_who_wait(
    make_recipes: MakeRecipes, num_steps: int, patience: Patience
) -> None:
    """After Stop, or when it is silent for too long; who can end the process is told last."""
    backend, lost = Hanging(num_steps), threading.Event()
    with Engine(backend, MemoryStore(), patience=patience, on_lost=lost.set) as engine:
        done = engine.submit_task(lambda _: "done")
        assert done.result(SOON_S) == "done"
        run, other = (
            engine.submit(plan_grid(make_recipes(seeds=(1,), steps=9)), owner=owner)
            for owner in "ab"
        )
        task = engine.submit_task(lambda _: None)
        assert backend.is_hanging.wait(SOON_S)
        if num_steps:
            run.cancel()
        assert lost.wait(SOON_S)
        for result in (other.result, task.result):
            with refused(RunError, "engine_lost"):
                result(SOON_S)
        assert run.state == ("cancelled" if num_steps else "failed")
        assert engine.load.is_lost
        with pytest.raises(RunError, match="start SeedGrid again"):
            engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        backend.may_return.set()


def test_what_is_no_picture_of_its_recipe_is_told_and_not_kept(
    make_recipes: MakeRecipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong shape ends in a sentence, and the picture beside it is kept."""
    store, backend, (one, two) = MemoryStore(), FakeBackend(), make_recipes(seeds=(1, 2))
    (good,) = backend.paint([two], Placement(), SilentWatch())
    monkeypatch.setattr(backend, "paint", lambda *_: (np.zeros((8, 64, 3), np.uint8), good))
    with Engine(backend, store) as engine:
        run = engine.submit(plan_grid((one, two)), owner="a")
        with refused(RunError, "picture_shape"):
            run.result(SOON_S)
    assert [entry.recipe.seed for entry in store.entries] == [2]


def test_a_task_that_hangs_is_told(make_recipes: MakeRecipes) -> None:
    """A task of pictures never painted here may take any time, as large models on a processor."""
    may_return = threading.Event()
    with Engine(FakeBackend(), MemoryStore(), patience=SILENT) as engine:
        unknown = engine.submit_task(lambda _: may_return.wait(1), recipes=make_recipes())
        assert not unknown.result(SOON_S)
        future = engine.submit_task(lambda _: may_return.wait())
        with pytest.raises(RunError):
            future.result(SOON_S)
        may_return.set()


def test_closing_does_not_wait_for_a_painter_that_hangs(make_recipes: MakeRecipes) -> None:
    """It is left behind after the patience for closing."""
    backend = Hanging()
    engine = Engine(backend, MemoryStore(), patience=SHORT)
    run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
    assert backend.is_hanging.wait(SOON_S)
    closing = threading.Thread(target=engine.close)
    closing.start()
    closing.join(SOON_S)
    assert not closing.is_alive()
    assert run.state == "cancelled"
    backend.may_return.set()
