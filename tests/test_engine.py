"""The engine: events, the queue, stopping, failing, remembering. All on the fake backend."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import run_python
from gates import HeldBackend
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refused
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.events import (
    Cancelled,
    Done,
    Event,
    Finished,
    Noise,
    Queued,
    Started,
    Step,
    Terminal,
)
from seedgrid.core.plan import plan_grid
from seedgrid.core.request import Request, resolve
from seedgrid.diffusion.backend import Placement
from seedgrid.engine import Engine, Run
from seedgrid.library import Library
from seedgrid.testing.fake import FakeBackend, Fault

SOON_S = 120.0
"""Long enough for the busiest machine; a test that waits so long has failed."""


@pytest.fixture
def slow() -> Iterator[Engine]:
    """An engine whose steps take 20 ms."""
    with Engine(FakeBackend(step_delay_s=0.02), MemoryStore(), runs_per_owner=9) as engine:
        yield engine


@pytest.fixture
def may_go() -> threading.Event:
    """Lets the held engine go on."""
    return threading.Event()


@pytest.fixture
def held(may_go: threading.Event) -> Iterator[Engine]:
    """An engine that begins no step before it may."""
    backend = HeldBackend(lambda _recipes, _number: may_go.is_set())
    with Engine(backend, MemoryStore(), runs_per_owner=9) as engine:
        yield engine


def kinds(run: Run) -> list[str]:
    return [type(event).__name__ for event in run.events(SOON_S)]


def wait_for(run: Run, kind: type[Event]) -> Event:
    return next(event for event in run.events(SOON_S) if isinstance(event, kind))


def follow(run: Run, into: list[Event]) -> threading.Thread:
    thread = threading.Thread(target=lambda: into.extend(run.events(SOON_S)))
    thread.start()
    return thread


def test_a_grid_from_beginning_to_end(engine: Engine, make_recipes: MakeRecipes) -> None:
    """Four recipes become four pictures, each on its own seed, in one batch."""
    start_s = time.monotonic()
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    entries = run.result(SOON_S)
    assert [entry.recipe.seed for entry in entries] == [0, 1, 2, 3]
    assert len({entry.pixels_sha256 for entry in entries}) == 4
    run.announce(Queued(position=0))  # as by a thread that did not know of the end yet
    assert run.state == "done"
    names = kinds(run)
    assert names[:3] == ["Queued", "Loading", "Started"]
    assert names[3:] == ["Finished"] * 4 + ["Done"]
    (done,) = [event for event in run.events() if isinstance(event, Done)]
    assert 0.0 < done.elapsed_s <= time.monotonic() - start_s


def test_every_watcher_sees_everything(slow: Engine, make_recipes: MakeRecipes) -> None:
    """Watchers on several threads see the same, those who come late see it from the beginning."""
    run = slow.submit(plan_grid(make_recipes()), owner="me")
    seen: list[list[Event]] = [[], [], []]
    threads = [follow(run, events) for events in seen]
    for thread in threads:
        thread.join(SOON_S)
    late = list(run.events(SOON_S))
    for events in [*seen, late]:
        assert [e for e in events if not isinstance(e, Noise | Step | Queued)] == [
            e for e in late if not isinstance(e, Noise | Step | Queued)
        ]
        assert isinstance(events[-1], Done)


def test_steps_tell_how_long_the_rest_takes(slow: Engine, make_recipes: MakeRecipes) -> None:
    """From the second one on, of this batch and of those behind it."""
    for _ in range(9):  # A late reader is not told of each step: then it is painted again.
        run = slow.submit(plan_grid(make_recipes(seeds=tuple(range(8)))), owner="me", fresh=True)
        events: list[Event] = []
        follow(run, events).join(SOON_S)
        steps = [event for event in events if isinstance(event, Step)]
        if steps[-1].number == steps[-1].total:
            break
    assert {step.left_s for step in steps if step.number == 1} == {None}
    first = [step for step in steps if step.cells[0] == 0 and step.number > 1]
    assert all(step.left_s for step in first)  # another batch comes after its last step
    assert steps[-1].number == steps[-1].total
    assert steps[-1].left_s == 0


def test_the_noise_comes_before_the_first_step(
    held: Engine, may_go: threading.Event, make_recipes: MakeRecipes
) -> None:
    """Once, with a picture a cell; where previews are not wanted it is not told at all."""
    run = held.submit(plan_grid(make_recipes()), owner="me")
    events: list[Event] = []
    for event in run.events(SOON_S):
        if isinstance(event, Started | Noise | Step):
            events.append(event)
        if isinstance(event, Noise):
            may_go.set()
    assert isinstance(events[0], Started)
    assert isinstance(events[1], Noise)
    assert len(events[1].previews) == 4
    assert {type(event) for event in events[2:]} == {Step}
    run = held.submit(
        plan_grid(make_recipes()), owner="me", placement=Placement(previews=False), fresh=True
    )
    assert "Noise" not in kinds(run)


def test_polling_goes_on_where_it_stopped(engine: Engine, make_recipes: MakeRecipes) -> None:
    """A poller gets each event once, waits at most its timeout, and gets nothing after the end."""
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    events: list[Event] = []
    since = 0
    while not (events and isinstance(events[-1], Done)):
        new, since = run.next_events(since, SOON_S)
        events += new
    assert len([e for e in events if isinstance(e, Finished)]) == 4
    assert run.next_events(since, SOON_S) == ((), since)


def test_finished_means_safe(slow: Engine, make_recipes: MakeRecipes) -> None:
    """No picture is announced before the library has it."""
    slow.library.may_save.clear()
    run = slow.submit(plan_grid(make_recipes(steps=1)), owner="me")
    wait_for(run, Started)
    time.sleep(0.2)
    assert run.finished == {}
    slow.library.may_save.set()
    run.result(SOON_S)
    assert sorted(run.finished) == [0, 1, 2, 3]


def test_only_one_thread_touches_the_backend(
    backend: FakeBackend, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """Runs submitted from anywhere are painted on one thread, which is not the caller's."""
    threads = [
        threading.Thread(
            target=lambda seed=seed: engine.submit(
                plan_grid(make_recipes(seeds=(seed,))), owner=f"owner {seed}"
            ).result(SOON_S)
        )
        for seed in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert len({call.thread for call in backend.calls}) == 1
    assert backend.calls[0].thread != threading.get_ident()
    assert len(backend.calls) == 5


@pytest.mark.parametrize(
    ("asked", "used"), [(0, 1), (1, 1), (2, 2), (3, 2), (6, 4), (8, 8), (12, 8)]
)
def test_new_pictures_are_painted_on_a_power_of_two(
    backend: FakeBackend, make_recipes: MakeRecipes, asked: int, used: int
) -> None:
    """Three threads cut four pictures in different places, so the lock would not hold."""
    placement = Placement(threads=asked)
    with Engine(backend, MemoryStore(), placement=placement) as engine:
        own = engine.submit(plan_grid(make_recipes()), owner="a").result(SOON_S)
        jobs = plan_grid(make_recipes("a fox"))
        given = engine.submit(jobs, owner="a", placement=placement).result(SOON_S)
    assert {entry.passport.threads for entry in (*own, *given)} == {used}


def test_saving_goes_on_beside_the_next_batch(
    backend: FakeBackend, store: MemoryStore, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """While the first batch is being saved, the second is painted, but not the third."""
    store.may_save.clear()
    run = engine.submit(plan_grid(make_recipes(seeds=tuple(range(12)))), owner="me")
    deadline = time.monotonic() + SOON_S
    while len(backend.calls) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.2)
    assert len(backend.calls) == 2
    store.may_save.set()
    assert len(run.result(SOON_S)) == 12


# Stopping


def test_stop_within_one_step(make_recipes: MakeRecipes) -> None:
    """After Stop at most the step that is being done is finished."""
    backend = HeldBackend(lambda _recipes, number: number <= 3)
    events: list[Event] = []
    with Engine(backend, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(steps=100)), owner="me")
        for event in run.events(SOON_S):
            events.append(event)
            if isinstance(event, Step) and event.number == 3:
                run.cancel()
        assert isinstance(events[-1], Cancelled)
        assert max(event.number for event in events if isinstance(event, Step)) <= 4
        with pytest.raises(RunCancelled):
            run.result(SOON_S)


def test_stop_and_generate_at_once_runs_one_job_at_a_time(make_recipes: MakeRecipes) -> None:
    """Stop followed by Generate, ten times: never two paintings at once, the last one is whole."""
    painting = threading.Semaphore(1)

    class Alone(FakeBackend):
        def paint(self, *args: object, **kwargs: object) -> object:
            assert painting.acquire(blocking=False), "two paintings at once"
            try:
                return super().paint(*args, **kwargs)  # type: ignore[arg-type]
            finally:
                painting.release()

    with Engine(Alone(step_delay_s=0.005), MemoryStore()) as engine:
        for _ in range(10):
            run = engine.submit(plan_grid(make_recipes(steps=50)), owner="me")
            wait_for(run, Step)
            run.cancel()
        last = engine.submit(plan_grid(make_recipes(steps=2)), owner="me")
        assert len(last.result(SOON_S)) == 4


# Waiting


def test_an_owner_may_not_fill_the_queue(make_recipes: MakeRecipes) -> None:
    """The third run of one owner is refused; one that was stopped makes room at once."""
    with Engine(FakeBackend(step_delay_s=0.02), MemoryStore(), runs_per_owner=2) as engine:
        first = engine.submit(plan_grid(make_recipes(steps=100)), owner="me")
        engine.submit(plan_grid(make_recipes(steps=1)), owner="me")
        with refused(RunError, "too_many_runs"):
            engine.submit(plan_grid(make_recipes()), owner="me")
        engine.submit(plan_grid(make_recipes()), owner="you")
        first.cancel()
        engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)


# Failing


def test_one_picture_that_is_none_costs_the_others_nothing(
    backend: FakeBackend, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """Seven of eight pictures are kept, the eighth says why, and the run has failed."""
    backend.faults.extend([Fault(cell=2), None])
    run = engine.submit(plan_grid(make_recipes(seeds=tuple(range(8)))), owner="me")
    with refused(RunError, "picture_nan"):
        run.result(SOON_S)
    assert sorted(run.finished) == [0, 1, 3, 4, 5, 6, 7]
    assert set(run.missed) == {2}
    assert run.state == "failed"


def test_a_surprise_is_logged_and_told(
    backend: FakeBackend,
    engine: Engine,
    make_recipes: MakeRecipes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error nobody expected fails the run with its name, and its traceback is in the log."""
    backend.faults.append(Fault(step=1, error=ZeroDivisionError("by zero")))
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    with pytest.raises(RunError, match="ZeroDivisionError: by zero"):
        run.result(SOON_S)
    assert caplog.records[-1].exc_info is not None
    assert len(engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)) == 4


# Remembering


def test_a_known_recipe_is_not_painted_again(
    backend: FakeBackend, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """The same recipe comes from the library, marked, at its own new place in the lineage."""
    first = engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    again = run.result(SOON_S)
    assert len(backend.calls) == 1
    assert [e.pixels_sha256 for e in again] == [e.pixels_sha256 for e in first]
    assert {e.id for e in again}.isdisjoint(e.id for e in first)
    assert all(e.remembered for e in run.events() if isinstance(e, Finished))


def test_what_is_known_needs_no_painter_and_no_queue(make_recipes: MakeRecipes) -> None:
    """Behind somebody's long run, and beside one's own: known pictures come at once."""
    may_go = threading.Event()
    backend = HeldBackend(lambda recipes, _number: recipes[0].seed < 4 or may_go.is_set())
    with Engine(backend, MemoryStore(), runs_per_owner=1) as engine:
        engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)
        other = engine.submit(plan_grid(make_recipes(seeds=(90,))), owner="other")
        mixed = engine.submit(plan_grid(make_recipes(seeds=(80, 1))), owner="me")
        known = engine.submit(plan_grid(make_recipes()), owner="me")
        assert [entry.recipe.seed for entry in known.result(SOON_S)] == [0, 1, 2, 3]
        wait_for(mixed, Finished)
        assert sorted(mixed.finished) == [1]
        assert not other.has_ended
        may_go.set()
        assert len(mixed.result(SOON_S)) == 2
    assert [[recipe.seed for recipe in call.recipes] for call in backend.calls[1:]] == [[90], [80]]


def test_only_unknown_cells_are_painted(
    backend: FakeBackend, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """Two known seeds and two new ones: the new ones are painted, with their own bits."""
    engine.submit(plan_grid(make_recipes(seeds=(0, 1))), owner="me").result(SOON_S)
    run = engine.submit(plan_grid(make_recipes(seeds=(5, 0, 6, 1))), owner="me")
    entries = run.result(SOON_S)
    assert [r.seed for r in backend.calls[1].recipes] == [5, 6]
    with Engine(FakeBackend(), MemoryStore()) as other:
        expected = other.submit(plan_grid(make_recipes(seeds=(5, 0, 6, 1))), owner="me")
        hashes = [entry.pixels_sha256 for entry in expected.result(SOON_S)]
    assert [entry.pixels_sha256 for entry in entries] == hashes


# Tasks, warming, closing


def test_a_task_has_the_backend(
    backend: FakeBackend, engine: Engine, make_recipes: MakeRecipes
) -> None:
    """A task runs on the engine's thread, between runs; what it gives or raises comes back."""
    engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)
    lent, thread = engine.submit_task(lambda it: (it, threading.get_ident())).result(SOON_S)
    assert lent is backend
    assert thread == backend.calls[0].thread
    with pytest.raises(ZeroDivisionError):
        engine.submit_task(lambda _: 1 / 0).result(SOON_S)
    assert engine.submit_task(lambda _: "again").result(SOON_S) == "again"


def test_tasks_are_told_when_it_closes(make_recipes: MakeRecipes) -> None:
    """A task that did not get its turn is cancelled; later ones are refused."""
    engine = Engine(FakeBackend(step_delay_s=0.02), MemoryStore())
    run = engine.submit(plan_grid(make_recipes(steps=100)), owner="me")
    wait_for(run, Step)
    future = engine.submit_task(lambda _: None)
    engine.close()
    assert future.cancelled()
    with pytest.raises(RunError):
        engine.submit_task(lambda _: None)


def test_warming_loads_beside_the_page(make_recipes: MakeRecipes) -> None:
    """`warm` returns at once and says how far it is; the first run does not load again."""
    with Engine(FakeBackend(load_delay_s=0.1), MemoryStore()) as engine:
        assert engine.warmth.state == "cold"
        engine.warm()
        assert engine.warmth.state == "loading"
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        run.result(SOON_S)
        wait_until(lambda: engine.warmth.state == "ready")
        again = engine.submit(plan_grid(make_recipes()), owner="me", fresh=True)
        assert "Loading" not in kinds(again)


def test_closing_stops_everything(make_recipes: MakeRecipes) -> None:
    """Close ends the running and the waiting runs, closes the backend, and refuses new ones."""
    backend = FakeBackend(step_delay_s=0.02)
    engine = Engine(backend, MemoryStore())
    running = engine.submit(plan_grid(make_recipes(steps=100)), owner="a")
    waiting = engine.submit(plan_grid(make_recipes(steps=100)), owner="b")
    wait_for(running, Step)
    engine.close()
    assert (running.state, waiting.state, backend.closed) == ("cancelled", "cancelled", True)
    with refused(RunError, "engine_closed"):
        engine.submit(plan_grid(make_recipes()), owner="a")


def test_beginning_to_close_ends_what_waits(held: Engine, make_recipes: MakeRecipes) -> None:
    """The command line follows its run to the end before it closes: nothing else would end it."""
    running, waiting = (held.submit(plan_grid(make_recipes()), owner=who) for who in "ab")
    wait_for(running, Started)
    held.begin_to_close()
    assert isinstance(list(waiting.events(SOON_S))[-1], Cancelled)
    with pytest.raises(RunError):
        held.submit(plan_grid(make_recipes()), owner="c")


def test_a_forgotten_engine_does_not_keep_the_program_alive() -> None:
    """A script that ends without closing ends, and with a run in progress it ends soon, too."""
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from seedgrid.testing.fake import FakeBackend\n"
        "from seedgrid.engine import Engine\n"
        "from seedgrid.core.plan import plan_grid\n"
        "from seedgrid.core.request import Request, resolve\n"
        "from stores import MemoryStore\n"
        "b = FakeBackend(step_delay_s=0.05)\n"
        "e = Engine(b, MemoryStore())\n"
        "r = resolve(Request(prompt='a', num_inference_steps=150), b.card(None))\n"
        "run = e.submit(plan_grid(r), owner='me', fresh=True)\n"
        "next(x for x in run.events() if type(x).__name__ == 'Step')\n"
    )
    assert run_python("-c", code).stderr == ""


def test_what_is_painted_when_the_program_ends_is_saved(tmp_path: Path) -> None:
    """Python starts no thread any more then: the pictures are encoded one after the other."""
    code = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from seedgrid.core.plan import plan_grid\n"
        "from seedgrid.core.request import Request, resolve\n"
        "from seedgrid.engine import Engine\n"
        "from seedgrid.library import Library\n"
        "from seedgrid.testing.fake import FakeBackend\n"
        "painted = threading.Event()\n"
        "class Late(Library):\n"
        "    def add_together(self, pictures):\n"
        "        painted.set()\n"
        "        threading.main_thread().join()\n"
        "        return super().add_together(pictures)\n"
        "b = FakeBackend()\n"
        "e = Engine(b, Late(Path(sys.argv[1])))\n"
        "e.submit(plan_grid(resolve(Request(prompt='a'), b.card(None))), owner='me')\n"
        f"painted.wait({SOON_S})\n"
    )
    assert run_python("-c", code, str(tmp_path)).stderr == ""
    assert [work.num_pictures for work in Library(tmp_path).works().works] == [4]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@settings(max_examples=40)
@given(
    actions=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),  # owner
            st.integers(1, 9),  # cells
            st.sampled_from(["", "cancel", "fail"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_each_run_ends_exactly_once(actions: list[tuple[str, int, str]]) -> None:
    """Whatever is submitted, stopped or broken: one last event each, and it is the last."""
    backend = FakeBackend(step_delay_s=0.0005)
    with Engine(backend, MemoryStore(), runs_per_owner=9) as engine:
        runs = []
        for owner, cells, what in actions:
            request = Request(
                prompt="a", seeds=tuple(range(cells)), width=32, height=32, num_inference_steps=3
            )
            if what == "fail":
                backend.faults.append(Fault(step=2))
            recipes = resolve(request, backend.card(None))
            runs.append(engine.submit(plan_grid(recipes), owner=owner, fresh=True))
            if what == "cancel":
                runs[-1].cancel()
        for run in runs:
            events = list(run.events(SOON_S))
            assert [isinstance(e, Terminal) for e in events] == [False] * (len(events) - 1) + [True]
            finished = [e.cell for e in events if isinstance(e, Finished)]
            assert sorted(finished) == sorted(set(finished))
            if isinstance(events[-1], Done):
                assert len(finished) == len(run.jobs)
