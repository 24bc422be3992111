"""Several painters at once: fair shares, equals only, nothing lost with a worker. Without Ray."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from cluster_painters import DyingBackend, OtherBackend, Several
from gates import HeldBackend
from refusing import refused
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.events import Started
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Recipe
from seedgrid.engine import Engine, Patience
from seedgrid.testing.fake import FakeBackend

SOON_S = 60.0
SIXTEEN = tuple(range(16))


class Gate:
    """Opens for all batches at once; knows who stands before it."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.begun: list[tuple[str, int]] = []
        self._changed = threading.Condition()

    def may_go(self, recipes: Sequence[Recipe], number: int) -> bool:
        with self._changed:
            who = (recipes[0].prompt, recipes[0].seed)
            if number == 1 and who not in self.begun:
                self.begun.append(who)
                self._changed.notify_all()
        return self.is_open.is_set()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, SOON_S)


def _hashes(entries: Sequence[object]) -> list[str]:
    return [entry.pixels_sha256 for entry in entries]  # type: ignore[attr-defined]


def test_a_run_is_painted_by_all_and_is_the_same(make_recipes: MakeRecipes) -> None:
    """Four batches, four painters at once, in the order of the cells, the bits of one painter."""
    recipes, gate = make_recipes(seeds=SIXTEEN), Gate()
    with Engine(FakeBackend(), MemoryStore()) as engine:
        alone = engine.submit(plan_grid(recipes), owner="me").result(SOON_S)
    painters = {name: HeldBackend(gate.may_go) for name in "abcd"}
    cluster = Several(**painters)
    with Engine(cluster, MemoryStore()) as engine:
        run = engine.submit(plan_grid(recipes), owner="me")
        gate.wait_for(4)
        gate.is_open.set()
        entries = run.result(SOON_S)
    assert _hashes(entries) == _hashes(alone)
    assert [entry.passport for entry in entries] == [entry.passport for entry in alone]
    assert [len(painter.calls) for painter in painters.values()] == [1, 1, 1, 1]
    assert all(painter.closed for painter in painters.values())
    assert cluster.is_closed


def test_visitors_share_batch_by_batch(make_recipes: MakeRecipes) -> None:
    """One asks for sixteen, then another for four: the four are not behind the sixteen."""
    gate = Gate()
    with Engine(Several(a=HeldBackend(gate.may_go)), MemoryStore()) as engine:
        large = engine.submit(plan_grid(make_recipes("large", SIXTEEN)), owner="one")
        gate.wait_for(1)
        small = engine.submit(plan_grid(make_recipes("small")), owner="two")
        gate.is_open.set()
        small.result(SOON_S)
        large.result(SOON_S)
    assert [prompt for prompt, _ in gate.begun].index("small") <= 2


def test_only_equals_paint_one_run(make_recipes: MakeRecipes) -> None:
    """A painter with another passport gives its batch back, and takes other runs."""
    gate = Gate()
    equals = {"a": HeldBackend(gate.may_go)}
    cluster = Several(**equals)
    with Engine(cluster, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes("first", SIXTEEN)), owner="me")
        gate.wait_for(1)
        cluster.join(other=(other := OtherBackend()))
        alone = engine.submit(plan_grid(make_recipes("second")), owner="me").result(SOON_S)
        gate.is_open.set()
        entries = run.result(SOON_S)
    assert {entry.passport.device for entry in entries} == {"fake"}
    assert {entry.passport.device for entry in alone} == {"other"}
    assert {recipe.prompt for call in other.calls for recipe in call.recipes} == {"second"}


def test_a_lost_painters_batch_is_painted_elsewhere(make_recipes: MakeRecipes) -> None:
    """It leaves no gap, and the lost one gets nothing more."""
    cluster = Several(a=DyingBackend())
    with Engine(cluster, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(seeds=SIXTEEN)), owner="me")
        run.wait_for(Started, timeout_s=SOON_S)
        cluster.leave("a")
        cluster.join(b=FakeBackend())
        assert len(run.result(SOON_S)) == 16


def test_a_batch_that_kills_workers_ends_its_run(make_recipes: MakeRecipes) -> None:
    """It is not handed on for ever, and costs no other run."""
    cluster = Several(a=DyingBackend(), b=DyingBackend(), c=DyingBackend())
    with Engine(cluster, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        with refused(RunError, "worker_lost"):
            run.result(SOON_S)
        cluster.join(d=FakeBackend())
        assert len(engine.submit(plan_grid(make_recipes()), owner="me").result(SOON_S)) == 4


def test_stop_frees_all_painters(make_recipes: MakeRecipes) -> None:
    """What waited is forgotten, what was painted is kept, the next run has all of them."""
    gate = Gate()
    cluster = Several(a=HeldBackend(gate.may_go), b=HeldBackend(gate.may_go))
    with Engine(cluster, MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes("stopped", SIXTEEN)), owner="me")
        gate.wait_for(2)
        run.cancel()
        with pytest.raises(RunCancelled):
            run.result(SOON_S)
        engine.submit(plan_grid(make_recipes("next", SIXTEEN)), owner="me")
        gate.wait_for(4)
        assert [prompt for prompt, _ in gate.begun] == ["stopped"] * 2 + ["next"] * 2


def test_a_painter_that_hangs_in_a_task_is_closed() -> None:
    """That ends its process, and so the task; nobody has to ask it to stop."""

    class Hanging(FakeBackend):
        def __init__(self) -> None:
            super().__init__()
            self.ends = threading.Event()

        def close(self) -> None:
            self.ends.set()

    painter, silent = Hanging(), Patience(silence_s=0.1, check_s=0.02)
    with Engine(Several(a=painter), MemoryStore(), patience=silent) as engine:
        assert engine.submit_task(lambda _: painter.ends.wait(SOON_S)).result(SOON_S)
