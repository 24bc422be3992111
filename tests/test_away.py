"""Computing elsewhere: only plain things cross, the very pictures come back, Stop reaches it."""

from __future__ import annotations

import contextvars
import inspect
import json
import pickle
from collections.abc import Generator
from pathlib import Path

import pytest
from command import run_python
from painting import PLACEMENT
from refusing import refused
from stores import MakeRecipes, MemoryStore

from seedgrid.core import variables
from seedgrid.core.errors import (
    DeviceError,
    InputError,
    ModelError,
    RunCancelled,
    RunError,
    SeedGridError,
)
from seedgrid.core.events import Step
from seedgrid.core.picture import pixels_sha256
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.away import computing, ray_node
from seedgrid.diffusion.away.computing import (
    AwayBackend,
    Batch,
    Message,
    ZeroGpu,
    compute,
    seconds_for,
)
from seedgrid.diffusion.backend import Placement, Unwatched
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.engine import Engine
from seedgrid.testing.fake import FakeBackend, Fault
from seedgrid.web.launch import _painter

SOON_S = 60.0
WHO = contextvars.ContextVar("who", default="nobody")


class Pickling:
    """A remote worker in this process; all that crosses is pickled and made again."""

    def __init__(self) -> None:
        self.who: list[str] = []

    def compute(self, batch: Batch) -> Generator[Message]:
        self.who.append(WHO.get())
        news = compute(pickle.loads(pickle.dumps(batch)))  # noqa: S301 (our own)
        try:
            for each in news:
                yield pickle.loads(pickle.dumps(each))  # noqa: S301 (same)
        finally:
            news.close()

    def close(self) -> None:
        pass


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """What paints at the place."""
    fake = FakeBackend()
    monkeypatch.setattr(computing, "_backends", [fake])
    return fake


def test_the_very_pictures_come_back_with_every_step(
    painter: FakeBackend, make_recipes: MakeRecipes
) -> None:
    """The engine cannot tell a place from a backend of its own."""
    recipes = make_recipes(seeds=tuple(range(6)))
    shown = {}
    for backend in (FakeBackend(), AwayBackend(Pickling(), FakeBackend())):
        with Engine(backend, MemoryStore()) as engine:
            run = engine.submit(plan_grid(recipes), owner="me")
            entries = run.result(SOON_S)
        shown[type(backend)] = [entry.pixels_sha256 for entry in entries]
    assert shown[AwayBackend] == shown[FakeBackend]
    assert [len(call.recipes) for call in painter.calls] == [4, 2]


def test_stop_reaches_the_place_within_a_step(
    painter: FakeBackend, make_recipes: MakeRecipes
) -> None:
    """The batch at the place ends too: the next one is not behind it."""
    painter._step_delay_s = 0.05
    with Engine(AwayBackend(Pickling(), FakeBackend()), MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes(steps=150)), owner="me")
        run.wait_for(Step, timeout_s=SOON_S)
        run.cancel()
        with pytest.raises(RunCancelled):
            run.result(SOON_S)
        after = engine.submit(plan_grid(make_recipes(steps=1)), owner="me")
        assert len(after.result(SOON_S)) == 4


@pytest.mark.parametrize(
    "error",
    [
        RunError("picture_nan"),
        ModelError("model_missing", value="x"),
        DeviceError("device_missing", value="cuda", choices="cpu"),
        ValueError("strange"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_as_its_code(
    painter: FakeBackend, make_recipes: MakeRecipes, error: Exception
) -> None:
    """Its kind, sentence and data are those that were raised there; a bug of ours says so."""
    painter.faults.append(Fault(error=error))
    with Engine(AwayBackend(Pickling(), FakeBackend()), MemoryStore()) as engine:
        run = engine.submit(plan_grid(make_recipes()), owner="me")
        with pytest.raises(
            type(error) if isinstance(error, RunError | ModelError | DeviceError) else RunError
        ) as caught:
            run.result(SOON_S)
    assert str(error) in str(caught.value)
    assert type(caught.value) is (type(error) if isinstance(error, SeedGridError) else RunError)


def test_a_place_that_changed_is_not_believed(
    painter: FakeBackend, make_recipes: MakeRecipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine under the same name: its pictures get no passport of the first."""
    recipes = make_recipes(steps=1)
    backend = AwayBackend(Pickling(), FakeBackend())
    backend.prepare(recipes[0], Placement())
    passport = painter.prepare(recipes[0], Placement()).model_copy(update={"device": "other"})
    monkeypatch.setattr(painter, "prepare", lambda *_: passport)
    with refused(RunError, "remote_changed"):
        backend.paint(recipes, Placement(), Unwatched())
    assert backend.prepare(recipes[0], Placement()) == passport


@pytest.mark.usefixtures("painter")
def test_it_is_painted_in_the_context_of_who_asked(make_recipes: MakeRecipes) -> None:
    """A lent GPU is somebody's quota: who asked is read there, on the engine's thread."""
    place = Pickling()
    with Engine(AwayBackend(place, FakeBackend()), MemoryStore()) as engine:
        for who in ("one", "two"):
            token = WHO.set(who)
            run = engine.submit(plan_grid(make_recipes(steps=1)), owner=who, fresh=True)
            WHO.reset(token)
            run.result(SOON_S)
    assert place.who == ["one", "one", "two"]


def test_the_time_asked_for_is_what_was_measured(
    painter: FakeBackend, make_recipes: MakeRecipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second batch asks for what the first one took, with a margin."""
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    painter._step_delay_s = 0.02
    place, recipes = ZeroGpu(), make_recipes(steps=10)
    batch, asked = Batch(recipes=recipes, placement=Placement(), paint=True), []
    monkeypatch.setattr(place, "_lent", lambda *args: asked.append(args) or compute(args[0]))
    for _ in range(2):
        list(place.compute(batch))
    assert asked[-1][1] >= 0.2
    assert seconds_for(batch, 20.0) == seconds_for(batch, 0.0) + 30
    assert seconds_for(batch, 1e6) == 120


@pytest.mark.usefixtures("painter")
def test_spaces_leaves_the_function_alone_off_its_machines(
    make_recipes: MakeRecipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real package, as on a Space without ZeroGPU: the same pictures."""
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    place = ZeroGpu()
    assert inspect.isgeneratorfunction(place._lent)
    recipes = make_recipes(steps=1)
    away = AwayBackend(place, FakeBackend()).paint(recipes, Placement(), Unwatched())
    here = FakeBackend().paint(recipes, Placement(), Unwatched())
    assert all((one == other).all() for one, other in zip(away, here, strict=True))


def test_only_a_space_with_lent_gpus_paints_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everywhere else nothing stands between the engine and its backend."""
    own = FakeBackend()
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert _painter(own) is own
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert variables.is_zero_gpu()
    assert isinstance(_painter(own), AwayBackend)


@pytest.mark.parametrize("text", ["", "here", "ray://", "ray://host", "ray://a b:1", "ray://h:x"])
def test_what_is_no_cluster_is_said(text: str) -> None:
    """The option takes three kinds of words."""
    with pytest.raises(InputError, match="no cluster"):
        ray_node.read_address(text)


@pytest.mark.sweep
def test_the_fork_that_spaces_makes_gives_the_very_bits(sd: Path) -> None:
    """The real package lends it, with a lender of ours; its passport is the picture's."""
    done = run_python("-W", "ignore", "tests/zero_gpu.py", sd)
    told = json.loads(done.stdout.splitlines()[-1])
    recipes = [Recipe.model_validate_json(each) for each in told["recipes"]]
    own = DeferredBackend()
    assert own.prepare(recipes[0], PLACEMENT).digest == told["passport"]
    here = [pixels_sha256(each) for each in own.paint(recipes, PLACEMENT, Unwatched())]
    own.close()
    assert told["pictures"] == [here, here]
    assert told["forbidden"]
    assert told["steps"] == 2 * recipes[0].num_inference_steps
    assert [what for what, _ in told["asked"]] == ["schedule", "allow", "release"] + [
        "schedule",
        "release",
    ] * 2
    seconds = [each for what, each in told["asked"] if what == "schedule"]
    assert seconds[0] == 30  # To load and say under which passport.
    assert seconds[1] > 30


def test_the_token_of_a_cluster_is_its_owners_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray runs what whoever has it says: it is made private, and one that was not becomes so."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ray_node.SETTINGS.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / ".ray" / "auth_token"
    ray_node.set_up()
    token = path.read_text()
    assert (len(token), path.stat().st_mode & 0o777) == (64, 0o600)
    path.chmod(0o644)
    ray_node.set_up()
    assert (path.read_text(), path.stat().st_mode & 0o777) == (token, 0o600)
