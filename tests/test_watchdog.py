"""A thread that dies or does not come back is noticed, told, replaced, and at last given up."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import RunCancelled, RunError, told_of
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Backend, Outcome, Placement, Watch
from seedgrid.engine import Engine, Patience
from seedgrid.engine.saving import Saver
from seedgrid.engine.watchdog import Pulse, Watchdog
from seedgrid.testing.fake import FakeBackend, Fault

SOON_S = 20.0
SHORT = Patience(stop_s=0.1, load_s=0.1, close_s=0.1, silence_s=60.0, check_s=0.02)
SILENT = Patience(stop_s=60.0, silence_s=0.1, check_s=0.02)
ENDS = (SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError())


class Hanging(FakeBackend):
    """Does not come back from its first `num_hangs` batches until it is let."""

    def __init__(self, num_hangs: int = 1) -> None:
        super().__init__()
        self.hangs = threading.Semaphore(num_hangs)
        self.is_hanging = threading.Semaphore(0)
        self.may_return = threading.Event()
        self.returned = threading.Semaphore(0)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        if not self.hangs.acquire(blocking=False):
            return super().paint(recipes, placement, watch)
        self.is_hanging.release()
        self.may_return.wait()
        try:
            return super().paint(recipes, placement, watch)
        finally:
            self.returned.release()


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
def test_what_ends_a_thread_ends_only_the_run(
    make_recipes: MakeRecipes, error: BaseException
) -> None:
    """SystemExit in a backend once ended the engine's thread: everybody waited for ever."""
    backend = FakeBackend()
    backend.faults.append(Fault(error=error))
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        with pytest.raises(RunError, match=re.escape(str(told_of(error)))):
            run.result(SOON_S)
        after = engine.submit(plan_grid(make_recipes(seeds=(2,))), owner="a")
        assert len(after.result(SOON_S)) == 1


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
def test_what_ends_a_thread_ends_only_the_errand(
    make_recipes: MakeRecipes, error: BaseException
) -> None:
    def fail(_: Backend) -> None:
        raise error

    with Engine(FakeBackend(), MemoryStore()) as engine:
        with pytest.raises((type(error), RunError)):
            engine.borrow(fail).result(SOON_S)
        run = engine.submit(plan_grid(make_recipes(seeds=(2,))), owner="a")
        assert len(run.result(SOON_S)) == 1


def test_what_ends_a_thread_in_the_library_ends_only_the_run(make_recipes: MakeRecipes) -> None:
    """Saving has a thread of its own, and the same promise."""
    store = MemoryStore()
    store.error = SystemExit()  # type: ignore[assignment] # what no thread should raise
    with Engine(FakeBackend(), store) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        with pytest.raises(RunError):
            run.result(SOON_S)
        store.error = None
        after = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        assert len(after.result(SOON_S)) == 1


def test_what_ends_a_thread_while_it_saves_several_batches_is_told_to_each(
    make_recipes: MakeRecipes,
) -> None:
    """Saved together they were told nothing, and whoever painted them waited for ever."""
    store, saver, may_save = MemoryStore(), Saver(), threading.Event()
    store.error = SystemExit()  # type: ignore[assignment] # as above
    jobs = plan_grid(make_recipes(seeds=(1, 2)))
    run: Any = SimpleNamespace(library=store, jobs=jobs)
    pixels = np.zeros((64, 64, 3), np.uint8)
    saver.submit(may_save.wait)
    saved = [saver.save(run, [(cell, pixels)], Passport()) for cell in (0, 1)]
    may_save.set()

    assert [type(each.exception(SOON_S)) for each in saved] == [SystemExit, SystemExit]
    saver.close()


def test_a_backend_that_ignores_stop_is_left_behind(make_recipes: MakeRecipes) -> None:
    """Stop ends the run, and the next one is painted by another thread."""
    backend = Hanging()
    with Engine(backend, MemoryStore(), patience=SHORT) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        waiting = engine.submit(plan_grid(make_recipes(seeds=(2,))), owner="b")
        assert backend.is_hanging.acquire(timeout=SOON_S)
        run.cancel()
        with pytest.raises(RunCancelled):
            run.result(SOON_S)
        assert len(waiting.result(SOON_S)) == 1
    backend.may_return.set()


def test_a_silent_backend_is_left_behind(make_recipes: MakeRecipes) -> None:
    """Nobody needs to press Stop: whoever waits is told what happened."""
    backend = Hanging()
    with Engine(backend, MemoryStore(), patience=SILENT) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        with pytest.raises(RunError) as caught:
            run.result(SOON_S)
        assert caught.value.code == "engine_hung"
        after = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        assert len(after.result(SOON_S)) == 1
        backend.may_return.set()


def test_a_hanging_errand_is_left_behind(make_recipes: MakeRecipes) -> None:
    may_return = threading.Event()
    with Engine(FakeBackend(), MemoryStore(), patience=SILENT) as engine:
        future = engine.borrow(lambda _: may_return.wait())
        with pytest.raises(RunError) as caught:
            future.result(SOON_S)
        assert caught.value.code == "engine_hung"
        run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        assert len(run.result(SOON_S)) == 1
        may_return.set()


def test_closing_does_not_wait_for_a_backend_that_hangs(make_recipes: MakeRecipes) -> None:
    """It once hung with it, and only `kill -9` helped."""
    backend = Hanging()
    engine = Engine(backend, MemoryStore(), patience=SHORT)
    run = engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
    assert backend.is_hanging.acquire(timeout=SOON_S)
    closing = threading.Thread(target=engine.close)
    closing.start()
    closing.join(SOON_S)
    assert not closing.is_alive()
    assert run.has_ended
    backend.may_return.set()


class Watched:
    """A thread as its watchdog sees it."""

    def __init__(self) -> None:
        self.pulse = Pulse()
        self.gone = threading.Event()
        self.stopping = self.is_closing = False

    def is_alive(self) -> bool:
        return True

    def is_stopping(self) -> bool:
        return self.stopping


@pytest.mark.parametrize(("is_loading", "loss"), [(True, "engine_hung"), (False, None)])
def test_only_painting_says_how_slow_a_backend_is(is_loading: bool, loss: str | None) -> None:
    """After a step of 50 seconds a Stop may take three times as long; after a load it may not."""
    watched = Watched()
    patience = Patience(stop_s=10, silence_s=1000, check_s=3600)  # Its own thread never looks.
    watchdog = Watchdog(watched, patience, lambda _: None)
    watched.pulse.begin("a run")
    watched.pulse.beat(is_loading=is_loading)
    for passed_s in (1, 50):
        watchdog._look(passed_s)
    watched.pulse.beat()
    watchdog._look(1)
    watched.stopping = True
    assert watchdog._look(9) is None
    assert watchdog._look(9) == loss
    watched.gone.set()


@pytest.mark.parametrize("is_loading", [True, False])
def test_who_closes_waits_for_no_step_and_no_load(is_loading: bool) -> None:
    """A supervisor ends what it has stopped after ten seconds; a busy step took twenty."""
    watched = Watched()
    patience = Patience(stop_s=100, load_s=100, close_s=3, silence_s=1000, check_s=3600)
    watchdog = Watchdog(watched, patience, lambda _: None)
    watched.pulse.begin("a run")
    watched.pulse.beat(is_loading=is_loading)
    watchdog._look(50)
    watched.stopping = watched.is_closing = True
    assert watchdog._look(2) is None
    assert watchdog._look(2) == "engine_hung"
    watched.gone.set()


def test_an_engine_that_is_lost_says_so(make_recipes: MakeRecipes) -> None:
    """Three threads that hang are enough: all are told, and so is who can end the process.

    An errand that was done by then once kept everybody from being told.
    """
    backend = Hanging(num_hangs=9)
    lost = threading.Event()
    with Engine(backend, MemoryStore(), patience=SILENT, on_lost=lost.set) as engine:
        done = engine.borrow(lambda _: "done")
        assert done.result(SOON_S) == "done"
        runs = [
            engine.submit(plan_grid(make_recipes(seeds=(seed,))), owner=str(seed))
            for seed in range(5)
        ]
        codes = []
        for run in runs:
            with pytest.raises(RunError) as caught:
                run.result(SOON_S)
            codes.append(caught.value.code)
        assert codes == ["engine_hung"] * 3 + ["engine_lost"] * 2
        assert lost.wait(SOON_S)
        with pytest.raises(RunError) as caught:
            engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a")
        assert caught.value.code == "engine_lost"
    assert done.result() == "done"
    backend.may_return.set()


class Disturbed(Hanging):
    """Lets the hanging thread come back in the middle of the next one's first batch."""

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        pictures = super().paint(recipes, placement, watch)
        if not self.may_return.is_set():
            self.may_return.set()
            for thread in threading.enumerate():
                if thread.name == "seedgrid-worker" and thread is not threading.current_thread():
                    thread.join(SOON_S)
        return pictures


def test_a_batch_beside_which_a_lost_thread_came_back_is_painted_again(
    make_recipes: MakeRecipes,
) -> None:
    """The returning thread sets torch's process-wide switches: the batch cannot be trusted."""
    backend = Disturbed()
    with Engine(backend, MemoryStore(), patience=SILENT) as engine:
        with pytest.raises(RunError):
            engine.submit(plan_grid(make_recipes(seeds=(1,))), owner="a").result(SOON_S)
        run = engine.submit(plan_grid(make_recipes(seeds=(2,))), owner="a")
        assert len(run.result(SOON_S)) == 1
    painted = [call.recipes[0].seed for call in backend.calls]
    assert painted.count(2) == 2


class Mistaken(FakeBackend):
    """Gives the same thing in place of its first picture."""

    def __init__(self, wrong: object) -> None:
        super().__init__()
        self._wrong = wrong

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        return (self._wrong, *super().paint(recipes, placement, watch)[1:])  # type: ignore[return-value] # the mistake


@pytest.mark.parametrize(
    "wrong",
    [
        np.full((256, 256, 3), np.nan, np.float32),
        np.zeros((256, 256), np.uint8),
        np.zeros((8, 256, 3), np.uint8),
        np.zeros((256, 256, 4), np.uint8),
        np.zeros((0,), np.uint8),
    ],
    ids=["nan", "grey", "low", "alpha", "empty"],
)
def test_what_is_no_picture_of_its_recipe_is_told_and_not_kept(
    make_recipes: MakeRecipes, wrong: object
) -> None:
    """NaN or a wrong shape ends in a sentence, and the picture beside it is kept."""
    store = MemoryStore()
    with Engine(Mistaken(wrong), store) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=(1, 2))), owner="a")
        with pytest.raises(RunError) as caught:
            run.result(SOON_S)
    assert caught.value.code == "picture_shape"
    assert [entry.recipe.seed for entry in store.entries] == [2]
