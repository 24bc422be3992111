"""The probe: it finds whatever mixes rows, refuses no sound model, and remembers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from leaks import LEAKS, WITHOUT_GUIDANCE, on_output
from leaks_again import LEAKS_AGAIN
from leaks_between import MORE_LEAKS
from leaks_hidden import HIDDEN_LEAKS
from leaks_of_some import LEAKS_OF_SOME
from leaks_of_weights import LEAKS_OF_WEIGHTS
from leaks_strange import STRANGE_LEAKS
from painting import PLACEMENT, SilentWatch, one_thread, paint, recipes_for
from pictures import FAMILIES
from sweeping import first_of_each_place, rest_swept

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.prompts import read_weights
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.poison import KINDS, Batch
from seedgrid.diffusion.probe import _reversed
from seedgrid.diffusion.probe_results import ProbeReport, lock_notice, recall_report
from seedgrid.studio import Studio

ALL_LEAKS = LEAKS | MORE_LEAKS | STRANGE_LEAKS | LEAKS_AGAIN

AFTER_A_GRID = ALL_LEAKS | HIDDEN_LEAKS

_QUIETLY = (PLACEMENT, SilentWatch())

NOT_ALONE = {
    "denoiser: alike rows computed once",
    "decoder: a short way on ordinary numbers",
}
"""What shows only in calls that a probe alone runs once, or at more steps."""

SEEN_ALONE = {name: plant for name, plant in AFTER_A_GRID.items() if name not in NOT_ALONE}


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No probe remembers one before it."""
    monkeypatch.setenv("SEEDGRID_CACHE", str(tmp_path))


@pytest.fixture
def recipe(backend: DiffusersBackend, model_folder: Callable[[str], Path]) -> Recipe:
    return recipes_for(backend, model_folder("sd"), num_inference_steps=6)[0]


def probed(
    backend: DiffusersBackend, recipe: Recipe, placement: Placement = PLACEMENT
) -> ProbeReport:
    return backend.probe(recipe, placement, SilentWatch())


def after_a_grid(backend: DiffusersBackend, recipes: Sequence[Recipe]) -> ProbeReport:
    """Probe as the page does: what was painted just before is one side of each comparison."""
    backend.prepare(recipes[0], PLACEMENT)
    backend.paint(recipes, PLACEMENT, SilentWatch())  # Some may be withheld by what leaks.
    return probed(backend, recipes[0])


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", rest_swept(AFTER_A_GRID, first_of_each_place(ALL_LEAKS, 2)))
def test_a_planted_leak_is_found_after_a_grid(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """However small, at one step, in one head, in any part: the lock is not said to hold."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=4)
    AFTER_A_GRID[name](backend.load(recipes[0], PLACEMENT), monkeypatch)
    report = after_a_grid(backend, recipes)
    assert any(not check.holds for check in report.checks if check.lock_width == 4)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", rest_swept(SEEN_ALONE, first_of_each_place(SEEN_ALONE, 1)))
def test_a_planted_leak_is_found_when_nothing_was_painted(
    backend: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Who asks for a probe alone has the comparisons run for it."""
    SEEN_ALONE[name](backend.load(recipe, PLACEMENT), monkeypatch)
    report = probed(backend, recipe)
    assert any(not check.holds for check in report.checks if check.lock_width == 4)


@pytest.mark.usefixtures("forgetful")
def test_a_picture_without_numbers_proves_nothing(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leaks into NaN is NaN: a grid whose last picture was none hid every leak."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=4)
    pipeline = backend.load(recipes[0], PLACEMENT)
    letter = pipeline.tokenizer.convert_tokens_to_ids("w")

    def without_numbers(_module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        is_bad = ((args[0] if args else kwargs["input_ids"]) == letter).any(dim=1)
        states = output["last_hidden_state"].clone()
        states[is_bad] = torch.nan
        output["last_hidden_state"] = states
        return output

    on_output(pipeline.text_encoder, monkeypatch, without_numbers)
    with pytest.raises(RunError, match="NaN"):  # Alone it is no test either.
        backend._run_probe(recipes[3], *_QUIETLY)
    ALL_LEAKS["denoiser: mean that passes over NaN"](pipeline, monkeypatch)
    assert not backend._run_probe(recipes[3], *_QUIETLY).holds
    backend.paint(recipes, *_QUIETLY)
    report = probed(backend, recipes[0])
    assert any(not check.holds for check in report.checks if check.lock_width == 4)


@pytest.mark.usefixtures("forgetful")
def test_a_leak_without_guidance_is_not_covered_by_a_test_with_it(
    backend: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guidance decides how many rows there are, so each is a test of its own."""
    WITHOUT_GUIDANCE["denoiser: without guidance"](backend.load(recipe, PLACEMENT), monkeypatch)
    assert probed(backend, recipe).holds
    assert not probed(backend, recipe.replace(guidance_scale=1.0)).holds


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", LEAKS_OF_SOME)
def test_a_leak_that_waits_for_a_neighbour_of_another_kind_is_found(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Who has no mix, no negative words, or has words, was tested beside its like only."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=2, lock_width=2)[:2]
    LEAKS_OF_SOME[name](backend.load(recipes[0], PLACEMENT), monkeypatch)
    assert not after_a_grid(backend, recipes).holds


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", rest_swept(LEAKS_OF_WEIGHTS, ["above 3", "among the weighed"]))
def test_a_leak_of_a_neighbours_weights_is_found(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Words that weigh nothing here were tested beside 1.2 only, and weighed ones beside none."""
    settings = {"num_inference_steps": 2, "lock_width": 2, "weights": True}
    recipes = recipes_for(backend, model_folder("sd"), **settings)[:2]
    LEAKS_OF_WEIGHTS[name](backend.load(recipes[0], PLACEMENT), monkeypatch)
    assert not after_a_grid(backend, recipes).holds


def test_the_words_turned_round_weigh_nothing_that_is_refused() -> None:
    """Read backwards, these would count 99 times."""
    assert read_weights(_reversed(")99:fox (sleeping")) == (("gnipeels  xof:99)", 1.0),)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_sound_family_is_refused(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], name: str, dtype: str
) -> None:
    """The real probe on real pipelines, one of each family: after a grid, then alone."""
    recipes = recipes_for(backend, model_folder(name), dtype=dtype)
    for report in (after_a_grid(backend, recipes), backend._run_probe(recipes[0], *_QUIETLY)):
        assert report.holds, report.checks
        assert all(check.compared > 0 for check in report.checks)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("scheduler", "width"),
    [
        *(("Euler a", 1), ("DPM++ 2M SDE", 2), ("Heun", 2), ("UniPC", 8)),
        *(
            pytest.param(scheduler, width, marks=pytest.mark.sweep)
            for scheduler, width in itertools.product(
                ("Euler a", "DPM++ 2M SDE", "Heun", "UniPC"), (1, 2, 8)
            )
        ),
    ],
)
def test_other_widths_and_schedulers_are_tested_as_they_are(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], width: int, scheduler: str
) -> None:
    """Schedulers with a state, with draws of their own and with two calls a step."""
    folder = model_folder("sd")
    recipe = recipes_for(
        backend, folder, lock_width=width, scheduler=scheduler, num_inference_steps=4
    )[0]
    report = probed(backend, recipe.replace(negative_prompt="blurry"))
    assert (report.holds, report.tested_width) == (True, width)


@pytest.mark.usefixtures("forgetful")
def test_the_probe_leaves_no_trace(backend: DiffusersBackend, recipe: Recipe) -> None:
    """Pictures after it are those before it."""
    before = paint(backend, [recipe])[0]
    probed(backend, recipe)
    np.testing.assert_array_equal(paint(backend, [recipe])[0], before)
    pipeline = backend.load(recipe, PLACEMENT)
    assert "decode" not in vars(pipeline.vae)
    assert type(pipeline.unet).__module__.startswith("diffusers")


@pytest.mark.usefixtures("forgetful")
def test_where_the_lock_does_not_hold_the_probe_says_so_and_one_is_safe(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last slot is rounded otherwise, as where a layer's numbers do not fill the vectors.

    Whether a real layer of odd width does so depends on the processor, so it is planted.
    """
    recipes = recipes_for(backend, model_folder("sd"), lock_width=4)
    LEAKS["denoiser: the last slot"](backend.load(recipes[0], PLACEMENT), monkeypatch)
    report = probed(backend, recipes[0])
    assert not report.holds
    assert report.tested_width == 1
    for recipe in recipes:
        safe = recipe.replace(lock_width=report.tested_width)
        np.testing.assert_array_equal(paint(backend, [safe]), paint(backend, [safe]))


@pytest.mark.usefixtures("forgetful")
def test_what_never_repeats_is_told(
    backend: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At width 1 what is left to check is that a picture repeats; width 0 says that it does not."""
    LEAKS["noise: the process's own"](backend.load(recipe, PLACEMENT), monkeypatch)
    assert probed(backend, recipe).tested_width == 0


@pytest.fixture
def rows(
    backend: DiffusersBackend, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> dict[str, int]:
    """Counts what the denoiser and the decoder of the small SD computed."""
    counts = {"denoised": 0, "decoded": 0}

    def count(name: str, _module: object, args: Sequence[torch.Tensor], *_: object) -> None:
        counts[name] += len(args[0])

    pipeline = backend.load(recipe, PLACEMENT)
    for name, part in (("denoised", pipeline.unet), ("decoded", pipeline.vae.decoder)):
        on_output(part, monkeypatch, functools.partial(count, name))
    return counts


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("steps", [1, 4, pytest.param(20, marks=pytest.mark.sweep)])
def test_after_a_grid_it_costs_one_more(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    rows: dict[str, int],
    steps: int,
) -> None:
    """However few steps: the grid that was painted anyway is the other side of the comparison."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=steps)
    paint(backend, recipes)
    rows.update(denoised=0, decoded=0)
    assert probed(backend, recipes[1].replace(prompt="another")).holds
    assert rows == {"denoised": steps * 8, "decoded": 4}  # A guided batch has eight rows a step.


@pytest.mark.usefixtures("forgetful")
def test_alone_it_costs_at_most_one_and_a_half_grids_of_denoising(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], rows: dict[str, int]
) -> None:
    """Counted for a grid of twenty steps; and one more decoding."""
    recipe = recipes_for(backend, model_folder("sd"), num_inference_steps=20)[0]
    backend._run_probe(recipe, *_QUIETLY)
    assert rows["denoised"] <= 1.5 * 20 * 8
    assert rows["decoded"] == 2 * 4


@pytest.mark.usefixtures("forgetful")
def test_only_what_was_painted_last_and_alike_is_a_witness(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], rows: dict[str, int]
) -> None:
    """Other settings, and another batch since: then the probe runs its comparisons itself."""
    folder = model_folder("sd")
    mine, other = (
        recipes_for(backend, folder, num_inference_steps=steps, lock_width=2) for steps in (1, 2)
    )
    for painted in (other, mine), (other,), (mine, other):
        for recipes in painted:
            paint(backend, recipes[:2])
        before = rows["decoded"]
        backend._run_probe(mine[0], *_QUIETLY)
        assert rows["decoded"] - before == (2 if painted[-1] is mine else 4)


@pytest.mark.usefixtures("forgetful")
def test_what_was_tested_is_not_watched_again(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], rows: dict[str, int]
) -> None:
    """A witness is memory, and nobody needs it where a report is kept."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=1, lock_width=2)[:2]
    probed(backend, recipes[0])
    for _ in range(2):
        paint(backend, recipes)
        before = rows["decoded"]
        backend._run_probe(recipes[0], *_QUIETLY)
        assert rows["decoded"] - before == 4


@pytest.mark.usefixtures("forgetful")
def test_it_gives_way_between_two_calls_of_the_denoiser(
    backend: DiffusersBackend, recipe: Recipe
) -> None:
    """Somebody wants to paint: nothing is computed any more, and half a test is not remembered."""

    class Wish(SilentWatch):
        def __init__(self) -> None:
            super().__init__()
            self.num_asked = 0

        @property
        def cancelled(self) -> bool:
            self.num_asked += 1
            return self.num_asked > 6

    calls: list[int] = []
    handle = backend.load(recipe, PLACEMENT).unet.register_forward_hook(lambda *_: calls.append(1))
    watch = Wish()
    try:
        with pytest.raises(RunCancelled):
            backend.probe(recipe, PLACEMENT, watch)
    finally:
        handle.remove()
    assert watch.num_asked == 7
    assert len(calls) < 7
    assert not probed(backend, recipe).remembered


@pytest.mark.usefixtures("forgetful")
def test_it_is_remembered_under_everything_that_changes_shapes_or_code(
    backend: DiffusersBackend, recipe: Recipe
) -> None:
    """Other words and seeds change neither; all the rest is a test of its own."""
    first = probed(backend, recipe)
    watch = SilentWatch()
    again = backend.probe(recipe.replace(prompt="two foxes", seed=99), PLACEMENT, watch)
    assert (first.remembered, again.remembered) == (False, True)
    assert watch.steps == []
    assert again.checks == first.checks
    passport = backend.prepare(recipe, PLACEMENT)
    for change in (
        {"guidance_scale": 1.0},
        {"num_inference_steps": 7},
        {"width": 72},
        {"lock_width": 2},
        {"dtype": "bfloat16"},
        {"scheduler": "Euler"},
        {"determinism": "seeded"},
        {"negative_prompt": "blurry"},
        {"noise_mix": ({"seed": 3, "weight": 0.1},)},
    ):
        assert recall_report(recipe.replace(**change), passport) is None, change
    other = backend.prepare(recipe, Placement(threads=2))
    assert recall_report(recipe, other) is None
    assert recall_report(recipe.replace(guidance_scale=3.0), passport) is not None


@pytest.mark.usefixtures("forgetful")
def test_what_was_not_tested_is_said(backend: DiffusersBackend, recipe: Recipe) -> None:
    """Before a test, that there was none; after it, nothing; the report says when and how."""
    passport = backend.prepare(recipe, PLACEMENT)
    notice = lock_notice(recipe, passport)
    assert notice is not None
    assert "not tested here" in str(notice)
    report = probed(backend, recipe)
    assert lock_notice(recipe, passport) is None
    assert report.tested_at.startswith("20")
    assert "poisoned" in report.method


@pytest.mark.usefixtures("forgetful")
def test_after_a_no_the_model_is_offered_with_a_smaller_batch(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the probe found is not only told: the next request has a width that is tight."""
    folder = model_folder("sd")
    recipe = recipes_for(backend, folder, lock_width=4)[0]
    LEAKS["denoiser: the last slot"](backend.load(recipe, PLACEMENT), monkeypatch)
    probed(backend, recipe)
    assert _usual_width(backend, folder) == 4  # An unusual placement is no reason.
    with one_thread():
        LEAKS["denoiser: the last slot"](backend.load(recipe, Placement()), monkeypatch)
        report = probed(backend, recipe, Placement())
    assert _usual_width(backend, folder) == report.tested_width == 1
    assert _usual_width(backend, model_folder("lcm")) == 4


def _usual_width(backend: DiffusersBackend, folder: Path) -> int:
    """The width of new pictures, when nobody asks for one."""
    request = Request(prompt="a fox", seeds=(1,))
    return Studio(str(folder), backend=backend).resolve(request)[0].lock_width


def test_poison_leaves_the_own_rows_alone_and_no_neighbour() -> None:
    """Rows r of a guided batch belong to cell r % W; every neighbour meets every kind in turn."""
    batch = Batch(width=4, own=1)
    rows = torch.arange(8 * 3, dtype=torch.float32).reshape(8, 3)
    seen: dict[int, set[str]] = {0: set(), 2: set(), 3: set()}
    for turn in range(len(KINDS)):
        bad = batch.poisoned(rows, turn)
        assert torch.equal(bad[1::4], rows[1::4])
        for cell, kinds in seen.items():
            assert not torch.equal(bad[cell::4], rows[cell::4])
            kinds.add(str(bad[cell::4].tolist()))
    assert all(len(kinds) == len(KINDS) for kinds in seen.values())


def test_moving_there_and_back_changes_nothing() -> None:
    """Slots go round and round, both halves of a guided batch alike."""
    batch = Batch(width=4, own=0)
    rows = torch.arange(8.0).reshape(8, 1)
    moved = batch.moved(rows, 3)
    assert moved[3::4].flatten().tolist() == [0.0, 4.0]
    assert torch.equal(batch.moved(moved, -3), rows)
