"""Live runs: nothing is kept, the newest question waits, others come first, kept bits are equal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import numpy as np
import pytest
from gates import GatedBackend, HeldBackend
from refusing import refused
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import RunError
from seedgrid.core.events import Finished, Started
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.speeds import Speeds
from seedgrid.diffusion.backend import Placement
from seedgrid.engine import Engine, Run
from seedgrid.engine.saver import LivePictures
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.serializers.stage import status_of
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import PageState, PageUpdate

SOON_S = 120.0
ASKED = FormPayload(prompt="a red fox", seeds="5-8", steps="3", size="64x64")
ME = PageState(visitor="a" * 32)


class Held:
    """An engine that begins no step before it may, with room for two runs an owner."""

    def __init__(self) -> None:
        self.backend = GatedBackend()
        self.may_go = self.backend.may_go
        self.may_go.clear()
        self.store = MemoryStore()
        self.engine = Engine(self.backend, self.store)

    def live(self, recipes: Sequence[Recipe], owner: str = "me") -> Run:
        return self.engine.submit(plan_grid(recipes), owner=owner, live=True)

    def ask(self, recipes: Sequence[Recipe], owner: str = "me") -> Run:
        return self.engine.submit(plan_grid(recipes), owner=owner)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    with held.engine:
        yield held
        held.may_go.set()


def test_what_is_painted_live_is_kept_by_an_ordinary_run(
    engine: Engine, backend: FakeBackend, store: MemoryStore, make_recipes: MakeRecipes
) -> None:
    """Nothing is saved before it; then the very bits, which nobody paints again.

    It was painted, only earlier: it is no memory of the library's.
    """
    live = engine.submit(plan_grid(make_recipes()), owner="me", live=True).result(SOON_S)
    assert [entry.seed for entry in live] == [0, 1, 2, 3]
    assert store.entries == []
    assert engine.painted_live("me", live[0].recipe.id) is not None
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    kept = run.result(SOON_S)
    assert len(backend.calls) == 1
    assert [e.pixels_sha256 for e in kept] == [e.pixels_sha256 for e in live]
    assert [store.pictures[e.id].pixels_sha256 for e in kept] == [e.pixels_sha256 for e in live]
    finished = [event for event in run.events() if isinstance(event, Finished)]
    assert [event.remembered for event in finished] == [False] * 4
    assert run.last_event is not None
    assert status_of(1, run.last_event, run)["key"] == "status_kept"
    fresh = engine.submit(plan_grid(make_recipes()), owner="me", fresh=True).result(SOON_S)
    assert len(backend.calls) == 2
    assert [e.pixels_sha256 for e in fresh] == [e.pixels_sha256 for e in live]


def test_nobody_is_given_what_another_had_painted_live(
    engine: Engine, backend: FakeBackend, make_recipes: MakeRecipes
) -> None:
    """Else how long a grid takes would tell what others type."""
    live = engine.submit(plan_grid(make_recipes()), owner="me", live=True).result(SOON_S)
    assert engine.painted_live("another", live[0].recipe.id) is None
    engine.submit(plan_grid(make_recipes()), owner="another").result(SOON_S)
    assert len(backend.calls) == 2


def test_only_the_picture_whose_words_changed_is_painted(
    engine: Engine, backend: FakeBackend, store: MemoryStore, make_recipes: MakeRecipes
) -> None:
    """The others are known: from the library, which gives its own, or from memory."""
    first = make_recipes()
    kept = engine.submit(plan_grid(first[:2]), owner="me").result(SOON_S)
    engine.submit(plan_grid(first), owner="me", live=True).result(SOON_S)
    changed = (*first[:3], first[3].replace(prompt="a blue fox"))
    run = engine.submit(plan_grid(changed), owner="me", live=True)
    entries = run.result(SOON_S)
    assert [len(call.recipes) for call in backend.calls] == [2, 2, 1]
    assert [entry.id for entry in entries[:2]] == [entry.id for entry in kept]
    assert len(store.entries) == 2


def test_a_newer_question_replaces_the_one_that_waits(
    held: Held, make_recipes: MakeRecipes
) -> None:
    """One is painted and one waits, however fast somebody types."""
    first = held.live(make_recipes(prompt="a"))
    first.wait_for(Started, timeout_s=SOON_S)
    later = [held.live(make_recipes(prompt=words)) for words in ("ab", "abc", "abcd")]
    assert [run.cancelled for run in [first, *later]] == [False, True, True, False]
    assert held.engine.load.num_waiting == 2
    held.may_go.set()
    later[-1].result(SOON_S)
    assert [call.recipes[0].prompt for call in held.backend.calls] == ["a", "abcd"]
    assert held.store.entries == []


def test_live_gives_way_to_what_others_ask_for(held: Held, make_recipes: MakeRecipes) -> None:
    """Their grids come first, though they asked later; and a page hears that it should wait."""
    first = held.live(make_recipes(prompt="a"))
    first.wait_for(Started, timeout_s=SOON_S)
    waiting = held.live(make_recipes(prompt="ab"))
    assert not held.engine.is_busy_for_others("me")
    others = [held.ask(make_recipes(prompt=f"grid {n}"), owner=f"{n}") for n in range(3)]
    assert held.engine.is_busy_for_others("me")
    held.may_go.set()
    for run in (waiting, *others):
        run.result(SOON_S)
    painted = [call.recipes[0].prompt for call in held.backend.calls]
    assert painted == ["a", "grid 0", "grid 1", "grid 2", "ab"]


def test_live_counts_in_its_owner_s_share(make_recipes: MakeRecipes) -> None:
    """What one has asked for in earnest leaves no room for live questions beside it."""
    held = Held()
    with held.engine:
        runs = [held.ask(make_recipes(prompt=words)) for words in ("a", "b")]
        with refused(RunError, "too_many_runs"):
            held.live(make_recipes(prompt="c"))
        for run in runs:
            run.cancel()
        held.may_go.set()


def test_a_click_stops_live_questions_for_other_words_alone(
    held: Held, make_recipes: MakeRecipes
) -> None:
    """Generate waits for the batch that paints its own words: nothing is painted twice."""
    live = held.live(make_recipes(prompt="a"))
    live.wait_for(Started, timeout_s=SOON_S)
    same = held.ask(make_recipes(prompt="a"))
    assert not live.cancelled
    held.may_go.set()
    assert len(same.result(SOON_S)) == len(held.store.entries) == 4
    assert len(held.backend.calls) == 1
    held.may_go.clear()
    other = held.live(make_recipes(prompt="b"))
    other.wait_for(Started, timeout_s=SOON_S)
    held.ask(make_recipes(prompt="c"))
    assert other.cancelled


def test_the_memory_is_bounded(make_recipes: MakeRecipes) -> None:
    """Those that nobody asked for longest make room; a picture that comes again counts once."""
    recipes, passport = make_recipes(), Passport.model_construct(digest="x")
    pixels = np.zeros((64, 64, 3), np.uint8)
    pictures = LivePictures(most_bytes=2 * pixels.nbytes)
    for recipe in (recipes[0], recipes[1], recipes[1]):
        pictures.put("me", recipe, passport, pixels)
    assert pictures.get("me", recipes[0].id) is not None
    pictures.put("me", recipes[2], passport, pixels)
    there = [pictures.get("me", recipe.id) is not None for recipe in recipes]
    assert there == [True, False, True, False]
    assert pictures.get("me", recipes[0].id, "another passport") is None


def test_ended_live_runs_push_out_no_others(engine: Engine, make_recipes: MakeRecipes) -> None:
    """A page that follows its last grid finds it after an hour of typing."""
    run = engine.submit(plan_grid(make_recipes()), owner="me")
    run.result(SOON_S)
    for number in range(70):
        words = make_recipes(prompt=f"a {number}")
        engine.submit(plan_grid(words), owner="me", live=True).result(SOON_S)
    assert engine.run(run.id) is run


def test_decoding_is_known_only_where_steps_were_told(make_recipes: MakeRecipes) -> None:
    """A network tells tiles and no steps: nothing is learnt of it, least of all a share above 1."""
    (recipe, *_), speeds = make_recipes(steps=1), Speeds()
    speeds.record(recipe, 2.0, None, None)
    assert speeds.decoding_share(recipe) == 0.0
    speeds.record(recipe, 2.0, None, 1.5)
    assert speeds.decoding_share(recipe) == 0.75


def test_how_long_four_take_is_looked_at_again_and_again(make_recipes: MakeRecipes) -> None:
    """Of one step none is seen alone, and the first batch may be a slow one."""
    (recipe, *_), speeds = make_recipes(steps=1), Speeds()
    assert speeds.known_s([recipe] * 4) is None
    for elapsed_s in (9.0, 0.4, 0.6):
        speeds.record(recipe, elapsed_s)
    assert 0.4 < (speeds.known_s([recipe] * 4) or 0) < 0.6
    assert speeds.known_s([recipe] * 8) == 2 * (speeds.known_s([recipe] * 4) or 0)


def told(services: PageServices, action: str, number: int = 1, **asked: object) -> list[PageUpdate]:
    async def listen() -> list[PageUpdate]:
        news = getattr(services.handlers, f"on_live_{action}")(
            number=number, **({"state": ME} | asked)
        )
        async with aclosing(news):
            return [each async for each in news]

    return anyio.run(listen)


def test_an_answer_names_its_question_and_moves_nobody(services: PageServices) -> None:
    """No place, no rail, no card: a stage of pictures that are in memory alone.

    In the browser the greatest epoch wins, so an older answer covers no newer one.
    """
    updates = told(services, "generate", number=7, fields=ASKED)
    assert all(each.live is not None and each.live["number"] == 7 for each in updates)
    assert all(not (each.place or each.rail or each.picked) for each in updates)
    shown = [each.stage for each in updates if each.stage][-1]
    assert [cell["state"] for cell in shown["cells"]] == ["live"] * 4
    assert all(cell["source"] == f"live/{cell['recipe']}.png" for cell in shown["cells"])
    assert not shown["busy"]
    assert updates[-1].live is not None
    assert updates[-1].live["key"] == "live_shown"
    assert list(services.studio.library_folder.rglob("*.png")) == []
    later = told(services, "generate", fields=FormPayload(prompt="a", seeds="0-3"))
    assert all(each.stage["epoch"] > shown["epoch"] for each in later if each.stage)
    (refused,) = told(services, "generate", fields=FormPayload(prompt="a", seeds="0-7"))
    assert refused.live["key"] == "error_live_many"


def test_a_round_is_followed_around_the_pick(services: PageServices) -> None:
    """Its captions are the variations'; what is half typed is said at no field."""
    made = services.handlers.on_generate(fields=ASKED, state=ME)
    run = services.studio.engine.run(made.state.run or "")
    parent = run.result(SOON_S)[1]
    picked = made.state.move(picked=parent.id)
    around = RoundPayload(vary=(", artsy", ", at night", ", neon", ", vintage"))
    shown = [e.stage for e in told(services, "refine", around=around, state=picked) if e.stage][-1]
    assert [cell["words"] for cell in shown["cells"]] == ["artsy", "at night", "neon", "vintage"]
    assert {cell["seed"] for cell in shown["cells"]} == {parent.seed}
    wrong = told(services, "refine", around=RoundPayload(vary=("steps 0",)), state=picked)
    assert wrong[-1].status is None
    assert str(wrong[-1].live["key"]).startswith("error_")  # type: ignore[index] # it is there
    lost = told(services, "refine", around=around, state=ME)
    assert lost[-1].live == {
        "number": 1,
        "key": "error_picture_unknown",
        "data": lost[-1].live["data"],
    }  # type: ignore[index]


def test_a_page_hears_whether_live_can_follow(services: PageServices) -> None:
    """How long four take is known once some were painted."""
    around = RoundPayload()
    before = services.handlers.advise(fields=ASKED, around=around)
    assert before.live == {"took_s": None}
    run = told(services, "generate", fields=ASKED)
    assert run
    after = services.handlers.advise(fields=FormPayload(size="64x64"), around=around)  # no words
    assert after.live["took_s"] > 0.0


def test_who_hangs_up_stops_the_run(tmp_path: Path) -> None:
    """Within a step: a page that asks something newer, or is gone, keeps no painter busy."""
    started = threading.Event()

    def may_go(_recipes: Sequence[Recipe], _number: int) -> bool:
        started.set()
        return False

    backend = HeldBackend(may_go)

    async def hang_up(services: PageServices) -> None:
        news = services.handlers.on_live_generate(fields=ASKED, number=1, state=ME)
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async with aclosing(news):
                    async for _ in news:
                        pass

            group.start_soon(listen)
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()

    with Studio(library=tmp_path, backend=backend, placement=Placement()) as studio:
        anyio.run(hang_up, PageServices(studio))
        assert studio.engine.load.num_waiting == 0


def test_a_question_that_another_page_replaced_is_asked_again(tmp_path: Path) -> None:
    """Of one visitor's pages only the newest question waits; the other page hears that it waits."""
    backend = GatedBackend()
    backend.may_go.clear()
    heard: dict[int, object] = {}

    async def listen(services: PageServices, number: int) -> None:
        fields = FormPayload(prompt=f"a fox {number}", seeds="0-3")
        async with aclosing(services.handlers.on_live_generate(fields, number, ME)) as news:
            async for each in news:
                heard[number] = (each.live or {}).get("key")

    async def ask(services: PageServices) -> None:
        async with anyio.create_task_group() as group:
            for number, num_waiting in enumerate((1, 2, 2), 1):
                group.start_soon(listen, services, number)
                # One that is not painted yet would be replaced by the next.
                while not backend.calls or services.studio.engine.load.num_waiting < num_waiting:
                    await anyio.sleep(0.01)
            while heard.get(2) is None:
                await anyio.sleep(0.01)
            backend.may_go.set()

    with Studio(library=tmp_path, backend=backend, placement=Placement()) as studio:
        anyio.run(ask, PageServices(studio))
    assert heard == {1: "live_shown", 2: "live_paused_queue", 3: "live_shown"}
