"""Compiled denoisers: the recipe says so, the lock holds, and nobody waits who did not ask."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from painting import PLACEMENT, SilentWatch, paint, recipes_for
from pictures import make_lineage, make_recipe
from stores import MakeRecipes, MemoryStore

from seedgrid.core.errors import CompileError, InputError, RunCancelled
from seedgrid.core.events import Loading, Started
from seedgrid.core.picture import Picture
from seedgrid.core.plan import plan_grid
from seedgrid.core.recipe import Passport, Recipe, canonical_json, read_recipe
from seedgrid.core.request import Request
from seedgrid.diffusion.accel import compiling
from seedgrid.diffusion.accel.compiling import (
    UNFINISHED,
    AheadOfTime,
    compile_denoiser,
    is_compiled,
    package_path,
)
from seedgrid.diffusion.accel.denoiser import compile_call
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.engine import Engine
from seedgrid.export.bundle import script
from seedgrid.formats.links import link_query, read_link
from seedgrid.library import Library
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.verify.claim import claim_of
from seedgrid.verify.verifying import verify_each
from seedgrid.web.actions.form import write_fields

ANSWER_S = 30.0


@pytest.fixture(scope="module")
def real() -> Iterator[DiffusersBackend]:
    """One backend for the module; compiled denoisers are kept by its session's cache folder."""
    backend = DiffusersBackend()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def compiled(real: DiffusersBackend, model_folder: Callable[[str], Path]) -> tuple[Recipe, ...]:
    """Four recipes of a small pipeline whose denoiser is compiled."""
    recipes = recipes_for(real, model_folder("sd"), dtype="bfloat16")
    return tuple(recipe.replace(compiled=True) for recipe in recipes)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a C++ compiler."""
    monkeypatch.setenv("CXX", "/nowhere/g++")
    compiling.compiler.cache_clear()
    yield
    monkeypatch.undo()
    compiling.compiler.cache_clear()


class CompilingBackend(FakeBackend):
    """Pretends to compile, and writes down when it was asked to."""

    def __init__(self, *, is_ready: bool) -> None:
        super().__init__()
        self.is_ready_to_run = is_ready
        self.compiled: list[str] = []
        self.ahead: list[str] = []

    def is_compiled(self, recipe: Recipe, placement: Placement) -> bool:
        assert placement.device in ("auto", "cpu")
        return self.is_ready_to_run and recipe.compiled

    def compile(
        self, recipe: Recipe, placement: Placement, *, is_unwanted: Callable[[], bool]
    ) -> None:
        assert not is_unwanted()
        assert placement is not None
        self.compiled.append(recipe.id)
        self.is_ready_to_run = True

    def compile_ahead(self, recipe: Recipe, placement: Placement) -> None:
        assert placement is not None
        self.ahead.append(recipe.id)


def test_the_id_of_what_is_not_compiled_is_what_it_was() -> None:
    """No word about it in the JSON; a compiled twin has another id and comes back from its own."""
    plain = make_recipe()
    twin = plain.replace(compiled=True)

    assert "compiled" not in canonical_json(plain)
    assert twin.id != plain.id
    assert twin.batch_key != plain.batch_key
    assert read_recipe(canonical_json(twin)) == twin
    assert read_recipe(canonical_json(plain)) == plain
    assert twin.replace(compiled=False).id == plain.id


def test_a_link_says_compiled() -> None:
    """The page's field is filled in by it; anything but yes is refused."""
    request = read_link(link_query(make_recipe(compiled=True)))
    assert request is not None
    assert request.compiled is True
    assert write_fields(request)["compiled"] is True
    plain = read_link(link_query(make_recipe()))
    assert plain is not None
    assert write_fields(plain)["compiled"] is False
    with pytest.raises(InputError, match="it is yes"):
        read_link("prompt=fox&compiled=perhaps")


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"prompt": "a dog", "seed": 9, "num_inference_steps": 7}, True),
        ({"determinism": "off"}, True),
        ({"guidance_scale": 3.0}, True),
        ({"guidance_scale": 1.0}, False),
        ({"width": 128}, False),
        ({"lock_width": 2}, False),
        ({"dtype": "bfloat16"}, False),
    ],
)
def test_one_package_for_all_that_runs_the_same_code(
    changes: dict[str, object], is_same: bool
) -> None:
    """Words, seeds and steps do not matter; size, width, format and guidance or none do."""
    first = make_recipe(guidance_scale=5.0, dtype="float32", compiled=True)
    other = first.replace(**changes)
    paths = {package_path(each, Placement()) for each in (first, other)}
    assert (len(paths) == 1) is is_same


def test_turbo_takes_what_is_compiled(tmp_path: Path) -> None:
    """The recipe says so; nothing is compiled for it."""
    painter = CompilingBackend(is_ready=True)
    with Studio(library=tmp_path, backend=painter, compiles_ahead=True) as studio:
        recipes = studio.resolve(Request(prompt="a fox"), turbo=True)
        said = studio.resolve(Request(prompt="a fox", compiled=False), turbo=True)
    assert all(recipe.compiled for recipe in recipes)
    assert not any(recipe.compiled for recipe in said)
    assert (painter.compiled, painter.ahead) == ([], [])


def test_turbo_never_waits_for_a_compiler(tmp_path: Path) -> None:
    """The first grid is painted without; the page compiles behind it, a script does not."""
    painter = CompilingBackend(is_ready=False)
    with Studio(library=tmp_path, backend=painter, compiles_ahead=True) as studio:
        recipes = studio.resolve(Request(prompt="a fox"), turbo=True)
        assert not any(recipe.compiled for recipe in recipes)
        assert len(painter.ahead) == 1
        studio.resolve(Request(prompt="a fox"))
    with Studio(library=tmp_path, backend=painter) as studio:
        studio.resolve(Request(prompt="a fox"), turbo=True)
    assert len(painter.ahead) == 1
    assert painter.compiled == []


def test_who_asks_is_told_that_it_is_compiled(make_recipes: MakeRecipes) -> None:
    """Compiling comes before painting and is told; the second time there is nothing to tell."""
    painter = CompilingBackend(is_ready=False)
    recipes = [recipe.replace(compiled=True) for recipe in make_recipes()]
    with Engine(painter, MemoryStore()) as engine:
        first = list(engine.submit(plan_grid(recipes), owner="a").events(ANSWER_S))
        again = list(engine.submit(plan_grid(recipes), owner="a", fresh=True).events(ANSWER_S))
    kinds = [event for event in first if isinstance(event, Loading | Started)]
    assert [getattr(event, "is_compiling", None) for event in kinds][-2:] == [True, None]
    assert painter.compiled == [recipes[0].id]
    assert not [event for event in again if isinstance(event, Loading)]


def test_the_lock_holds_compiled(real: DiffusersBackend, compiled: tuple[Recipe, ...]) -> None:
    """Each picture is the same in any slot, beside any neighbours, alone, and in a new backend."""
    pictures = paint(real, compiled)
    turned = paint(real, compiled[::-1])[::-1]
    alone = [paint(real, [recipe])[0] for recipe in compiled[:2]]
    other = DiffusersBackend()
    afresh = paint(other, compiled)
    other.close()

    for first, second in zip(pictures, turned, strict=True):
        assert (first == second).all()
    for first, second in zip(pictures, afresh, strict=True):
        assert (first == second).all()
    assert all((first == second).all() for first, second in zip(pictures, alone, strict=False))
    assert real.probe(compiled[0], PLACEMENT, SilentWatch()).holds
    folder = package_path(compiled[0], PLACEMENT).parent
    assert not [left for left in folder.iterdir() if left.name.startswith(UNFINISHED)]
    plain = paint(real, [recipe.replace(compiled=False) for recipe in compiled])
    assert any((first != second).any() for first, second in zip(pictures, plain, strict=True))


def test_a_compiled_picture_verifies(real: DiffusersBackend, compiled: tuple[Recipe, ...]) -> None:
    """Its passport names the compiler, and it is made again bit for bit."""
    passport = real.prepare(compiled[0], PLACEMENT)
    assert passport.model_dump()["compiler"] == compiling.compiler()
    plain = real.prepare(compiled[0].replace(compiled=False), PLACEMENT)
    assert "compiler" not in plain.model_dump()
    claims = [
        claim_of(str(number), pixels, recipe, passport)
        for number, (recipe, pixels) in enumerate(zip(compiled, paint(real, compiled), strict=True))
    ]
    verdicts = [verdict.verdict for _, verdict in verify_each(claims, real)]
    assert verdicts == ["identical"] * 4


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_it_is_said(
    real: DiffusersBackend, compiled: tuple[Recipe, ...]
) -> None:
    """An error with advice, before anything is painted; in the background nothing is tried."""
    recipe = compiled[0].replace(width=32, height=32)
    with pytest.raises(CompileError) as caught:
        real.prepare(recipe, PLACEMENT)
    assert caught.value.code == "compiler_missing"
    pixels = np.zeros((32, 32, 3), np.uint8)
    claim = claim_of("a", pixels, recipe, Passport())
    plain = claim_of("b", pixels, recipe.replace(compiled=False), Passport())
    verdicts = {place: verdict.verdict for place, verdict in verify_each([claim, plain], real)}
    assert verdicts == {0: "impossible", 1: "drifted"}
    ahead = AheadOfTime()
    ahead.begin(recipe, PLACEMENT)
    ahead.close()
    assert not is_compiled(recipe, PLACEMENT)


def test_what_cannot_be_compiled_is_said_in_its_own_words(
    compiled: tuple[Recipe, ...],
) -> None:
    """The child's last words are the reason, and nothing is left behind."""
    model = compiled[0].model.model_copy(update={"id": "not/here", "weights_sha256": "0" * 64})
    recipe = compiled[0].replace(model=model)
    with pytest.raises(CompileError) as caught:
        compile_denoiser(recipe, PLACEMENT)
    assert caught.value.code == "compile_failed"
    assert "not/here" in str(caught.value)
    path = package_path(recipe, PLACEMENT)
    assert not [left for left in path.parent.iterdir() if left.name.startswith(UNFINISHED)]


def test_a_number_that_would_freeze_is_refused(tmp_path: Path) -> None:
    """A timestep that is no tensor would be the same at every step: better no compiled code."""
    with pytest.raises(CompileError, match="999 is given to it outside a tensor"):
        compile_call(torch.nn.Identity(), (torch.zeros(1), 999), {}, tmp_path / "none.pt2")
    assert not list(tmp_path.iterdir())


def test_stop_ends_the_compiler(compiled: tuple[Recipe, ...]) -> None:
    """Stop is heard while it works, and its unfinished folder goes."""
    recipe = compiled[0].replace(width=96)
    path = package_path(recipe, PLACEMENT)
    start_s = time.monotonic()
    with pytest.raises(RunCancelled):
        compile_denoiser(recipe, PLACEMENT, is_unwanted=lambda: time.monotonic() - start_s > 1.0)
    assert not path.exists()
    assert not [left for left in path.parent.iterdir() if left.name.startswith(UNFINISHED)]


def test_closing_ends_what_goes_on_behind(compiled: tuple[Recipe, ...]) -> None:
    """Nothing is left running, or lying about, when the studio closes."""
    recipe = compiled[0].replace(height=96)
    ahead = AheadOfTime()
    ahead.begin(recipe, PLACEMENT)
    ahead.close()
    path = package_path(recipe, PLACEMENT)
    assert not path.exists()
    assert not [left for left in path.parent.iterdir() if left.name.startswith(UNFINISHED)]


def test_a_damaged_package_is_made_again(
    real: DiffusersBackend, compiled: tuple[Recipe, ...]
) -> None:
    """It is an error once, in one sentence, and the file goes out of the way."""
    whole = compile_denoiser(compiled[0], PLACEMENT)
    recipe = compiled[0].replace(lock_width=3)
    path = package_path(recipe, PLACEMENT)
    path.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(CompileError) as caught:
        real.paint([recipe], PLACEMENT, SilentWatch())
    assert caught.value.code == "compile_failed"
    assert not path.exists()


def test_the_exported_script_compiles_as_well(
    real: DiffusersBackend,
    compiled: tuple[Recipe, ...],
    model_folder: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """With plain diffusers and a compiler the very pictures come out again."""
    passport = real.prepare(compiled[0], PLACEMENT)
    pictures = [
        Picture(pixels=pixels, recipe=recipe, passport=passport, lineage=make_lineage())
        for recipe, pixels in zip(compiled, paint(real, compiled), strict=True)
    ]
    with Library(tmp_path / "library") as library:
        (tmp_path / "make.py").write_text(script(library.add_together(pictures)))
    done = subprocess.run(
        [sys.executable, "make.py", "--model", str(model_folder("sd"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all identical\n")
