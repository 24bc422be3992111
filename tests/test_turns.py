"""Long runs give way between two batches; what strangers may ask for is bounded."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from refusing import refused
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import InputError, RunError
from seedgrid.core.events import Cancelled, Done, Finished
from seedgrid.core.picture import Pixels
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Lora, Recipe, Upscaler
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Placement, Watch
from seedgrid.engine import Bounds, Engine
from seedgrid.testing.fake import FakeBackend

SOON_S = 120.0


class Gated(FakeBackend):
    """Paints a batch each time that it is let, and remembers whose seeds came when."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, ...]] = []
        self.begun = threading.Semaphore(0)
        self.may_paint = threading.Semaphore(0)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Pixels, ...]:
        self.batches.append(tuple(recipe.seed for recipe in recipes))
        self.begun.release()
        assert self.may_paint.acquire(timeout=SOON_S)
        return super().paint(recipes, placement, watch)


def test_a_grid_comes_between_two_batches_of_a_long_run(make_recipes: MakeRecipes) -> None:
    """Once a matrix of one visitor held the engine until it was done, for everybody.

    Verify, too, waits for one batch and not for a hundred.
    """
    backend = Gated()
    with Engine(backend, MemoryStore()) as engine:
        long = engine.submit(plan_grid(make_recipes(seeds=tuple(range(12)), steps=1)), owner="a")
        assert backend.begun.acquire(timeout=SOON_S)
        short = engine.submit(plan_grid(make_recipes(seeds=(50, 51), steps=1)), owner="b")
        task = engine.submit_task(lambda _: len(backend.batches), owner="c")
        backend.may_paint.release(9)
        assert [entry.recipe.seed for entry in short.result(SOON_S)] == [50, 51]
        assert [entry.recipe.seed for entry in long.result(SOON_S)] == list(range(12))
        assert task.result(SOON_S) == 2
    assert [batch[0] for batch in backend.batches] == [0, 50, 4, 8]


def test_a_run_alone_is_not_interrupted(make_recipes: MakeRecipes) -> None:
    """Nobody is told of a turn that nobody else wanted."""
    backend = Gated()
    backend.may_paint.release(9)
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=tuple(range(12)), steps=1)), owner="a")
        run.result(SOON_S)
        kinds = [type(event).__name__ for event in run.events(SOON_S)]
    assert kinds.count("Queued") == 1


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_run_that_is_stopped_between_two_turns_keeps_its_pictures(
    make_recipes: MakeRecipes, how: str
) -> None:
    """What it had painted is saved and announced before its end is."""
    backend, store = Gated(), MemoryStore()
    with Engine(backend, store) as engine:
        long = engine.submit(plan_grid(make_recipes(seeds=tuple(range(8)), steps=1)), owner="a")
        assert backend.begun.acquire(timeout=SOON_S)
        short = engine.submit(plan_grid(make_recipes(seeds=(50,), steps=1)), owner="b")
        store.may_save.clear()
        backend.may_paint.release()
        assert backend.begun.acquire(timeout=SOON_S)  # now the short one is painted
        if how == "stop":
            long.cancel()
        else:
            threading.Thread(target=engine.close).start()
        store.may_save.set()
        backend.may_paint.release(9)
        events = list(long.events(SOON_S))
        assert isinstance(list(short.events(SOON_S))[-1], Done if how == "stop" else Cancelled)
    assert isinstance(events[-1], Cancelled)
    assert sum(isinstance(event, Finished) for event in events) == 4
    assert len([entry for entry in store.entries if entry.recipe.seed < 8]) == 4


def bounded(backend: FakeBackend, **bounds: float) -> Engine:
    return Engine(backend, MemoryStore(), runs_per_owner=2, bounds=Bounds(**bounds))


def test_forged_ids_do_not_lengthen_the_queue(make_recipes: MakeRecipes) -> None:
    """150 visitors who are one address once queued hundreds of hours."""
    backend = Gated()
    with bounded(backend, runs_per_address=3) as engine:
        for owner in "abc":
            engine.submit(plan_grid(make_recipes()), owner=owner, address="192.0.2.7")
        with refused(RunError, "too_many_here") as caught:
            engine.submit(plan_grid(make_recipes()), owner="d", address="192.0.2.7")
        assert caught.value.data["limit"] == 3
        assert int(str(caught.value.data["seconds"])) >= 1
        engine.submit(plan_grid(make_recipes()), owner="e", address="192.0.2.8")
        backend.may_paint.release(99)


def test_the_whole_queue_is_bounded_in_seconds(make_recipes: MakeRecipes) -> None:
    """Whoever they are and wherever from; the refusal says how long to wait."""
    backend = Gated()
    with bounded(backend, queue_s=10.0) as engine:
        engine.speeds.record(make_recipes()[0], 4.0)  # what one batch took
        for owner in "ab":
            engine.submit(plan_grid(make_recipes()), owner=owner, address=owner)
        with refused(RunError) as caught:
            engine.submit(plan_grid(make_recipes()), owner="c", address="c")
        assert caught.value.data == {"value": 8, "seconds": 2}
        backend.may_paint.release(99)


def test_one_request_is_bounded(make_recipes: MakeRecipes) -> None:
    """In estimated seconds; nothing of it is started."""
    with bounded(FakeBackend(), run_s=5.0) as engine:
        few = make_recipes(seeds=(1,), steps=1)
        engine.speeds.record(few[0], 6.0)
        with refused(InputError, "run_long") as caught:
            engine.submit(plan_grid(few), owner="a")
        assert caught.value.data == {"field": "seeds", "value": "6", "limit": "5"}


def test_verify_is_counted_like_a_run(make_recipes: MakeRecipes) -> None:
    """Two runs and a verify are three; the engine's own tasks are nobody's."""
    backend = Gated()
    with bounded(backend) as engine:
        engine.submit(plan_grid(make_recipes()), owner="a")
        check = engine.submit_task(lambda _: None, owner="a")
        with refused(RunError, "too_many_runs"):
            engine.submit_task(lambda _: None, owner="a")
        engine.submit_task(lambda _: None)
        check.cancel()
        engine.submit_task(lambda _: None, owner="a")
        backend.may_paint.release(99)


def test_the_speed_is_learnt_by_model_and_size(make_recipes: MakeRecipes) -> None:
    """A batch teaches its own size; another size of the model takes it by its pixels."""
    speeds, (small, *_) = Speeds(), make_recipes()
    large = small.model_copy(update={"width": 512, "height": 512})
    first_guess = speeds.estimate_s([small])
    speeds.record(small, 2.0)
    assert speeds.estimate_s([small]) == pytest.approx(2.0)
    assert speeds.estimate_s([small] * 5) == pytest.approx(4.0), "two batches of four"
    double = small.model_copy(update={"width": 2 * small.width})
    assert speeds.estimate_s([double]) == pytest.approx(4.0)
    speeds.record(large, 1.0)
    assert speeds.estimate_s([large]) == pytest.approx(1.0)
    assert speeds.estimate_s([small]) == pytest.approx(2.0)
    portable = small.replace(arithmetic="portable-1", dtype="float32")
    speeds.record(portable, 7.0)
    assert speeds.estimate_s([portable]) == pytest.approx(7.0), "slower, and not the others' speed"
    assert speeds.estimate_s([small]) == pytest.approx(2.0)
    assert speeds.known_s([small.replace(dtype="float16")]) is None
    assert first_guess > 0


@pytest.mark.parametrize(
    "few",
    [
        {"start": "a" * 64, "strength": 0.01},
        {"upscaler": Upscaler(id="2x", weights_sha256="b" * 64), "start": "a" * 64},
    ],
)
def test_steps_that_are_not_run_teach_nothing(
    make_recipes: MakeRecipes, few: dict[str, object]
) -> None:
    """A hundred steps of which one is run once made everything that follows look a hundredth."""
    speeds, plain = Speeds(), make_recipes(steps=100)[0]
    short = plain.replace(**few)
    one = short.replace(num_inference_steps=1, strength=1.0)
    speeds.record(short, 2.0)
    assert speeds.estimate_s([one]) == pytest.approx(2.0)
    if short.upscaler is None:
        assert speeds.estimate_s([plain]) == pytest.approx(200.0)


def test_what_has_to_be_loaded_counts(make_recipes: MakeRecipes) -> None:
    """Another LoRA each time had the model loaded anew for what looked like a moment."""
    speeds, plain = Speeds(), make_recipes(steps=1)[0]
    foxes, cats = (
        plain.replace(loras=(Lora(id=name, weights_sha256=name[0] * 64, scale=1.0),))
        for name in ("foxes", "cats")
    )
    speeds.record_loading(plain, 20.0)
    speeds.record(plain, 1.0)
    assert speeds.estimate_s([plain]) == pytest.approx(1.0), "it is loaded"
    assert speeds.estimate_s([foxes, cats]) == pytest.approx(42.0)
    speeds.record_loading(foxes, 20.0)
    assert speeds.estimate_s([foxes]) == pytest.approx(1.0)
    assert speeds.estimate_s([plain]) == pytest.approx(21.0)
