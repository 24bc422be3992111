"""The probe: it proves the lock where it holds, finds out where it does not, and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from painting import PLACEMENT, SilentWatch, one_thread, paint, recipes_for

from seedgrid.core.errors import RunCancelled
from seedgrid.core.recipe import Recipe
from seedgrid.core.request import Request
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.probe import run_probe
from seedgrid.studio import Studio


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def recipe(backend: DiffusersBackend, model_folder: Callable[[str], Path]) -> Recipe:
    return recipes_for(backend, model_folder("sd"))[0]


def row(recipe: Recipe) -> torch.Tensor:
    """Return what an ideal model makes of a recipe: a function of words and seed alone."""
    generator = torch.Generator("cpu").manual_seed(recipe.seed)
    return torch.randn(3, 4, 4, generator=generator) + len(recipe.prompt)


def locked(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    latents = torch.stack([row(recipe) for recipe in recipes])
    return [latents, latents / 2] if decode else [latents]


def slot_matters(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    outputs = locked(recipes, decode=decode)
    outputs[0][-1] += 1e-6
    return outputs


def longest_prompt_matters(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    longest = max(len(recipe.prompt) for recipe in recipes)
    return [tensor + longest * 1e-6 for tensor in locked(recipes, decode=decode)]


def one_generator_for_all(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    generator = torch.Generator("cpu").manual_seed(recipes[0].seed)
    latents = torch.randn(len(recipes), 3, 4, 4, generator=generator)
    return [latents, latents] if decode else [latents]


def decoder_mixes_slots(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    outputs = locked(recipes, decode=decode)
    if decode:
        outputs[1] = outputs[1] + outputs[1][0] * 1e-6
    return outputs


def works_in_pairs(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    return (locked if len(recipes) <= 2 else slot_matters)(recipes, decode=decode)


def never_the_same(recipes: Sequence[Recipe], *, decode: bool) -> list[torch.Tensor]:
    return [tensor + torch.rand(1) for tensor in locked(recipes, decode=decode)]


def test_a_function_of_the_recipe_is_proven(recipe: Recipe) -> None:
    """Where nothing but the recipe counts, every check holds at the full width."""
    report = run_probe(recipe, locked)
    assert report.holds
    assert report.tested_width == 4
    assert {check.lock_width for check in report.checks} == {4}
    assert all(check.compared > 0 for check in report.checks)


@pytest.mark.parametrize(
    "leak", [slot_matters, longest_prompt_matters, one_generator_for_all, decoder_mixes_slots]
)
def test_a_leak_of_a_millionth_is_found(
    recipe: Recipe, leak: Callable[..., list[torch.Tensor]]
) -> None:
    """Differences far below one step of 255 still show: bits are compared before rounding."""
    report = run_probe(recipe, leak)
    assert not report.holds
    assert report.tested_width == 1


def test_the_greatest_width_that_holds_is_found(recipe: Recipe) -> None:
    """4 and 3 fail, 2 holds, and 1 is not tried any more."""
    report = run_probe(recipe, works_in_pairs)
    assert report.tested_width == 2
    assert {check.lock_width for check in report.checks} == {4, 3, 2}


def test_what_never_repeats_is_told(recipe: Recipe) -> None:
    """At width 1 what is left to check is that a picture repeats."""
    report = run_probe(recipe, never_the_same)
    assert report.tested_width == 1
    assert not report.checks[-1].holds


@pytest.mark.parametrize("name", ["sd", "sdxl", "sd3", "flux", "pixart", "lcm", "ddpm", "ddim"])
def test_the_lock_holds_for_every_family(
    backend: DiffusersBackend, model_folder: Callable[[str], Path], name: str
) -> None:
    """The real probe on real pipelines, one of each family."""
    recipe = recipes_for(backend, model_folder(name))[0]
    assert backend.probe(recipe, PLACEMENT, SilentWatch()).holds


def test_where_the_lock_does_not_hold_the_probe_says_so_and_one_is_safe(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """A text encoder of odd width computes its last values another way: the last slot differs."""
    recipes = recipes_for(backend, model_folder("sd-odd"), lock_width=4)
    report = backend.probe(recipes[0], PLACEMENT, SilentWatch())
    assert not report.holds
    safe = [recipe.replace(lock_width=report.tested_width) for recipe in recipes]
    assert report.tested_width == 1
    for recipe in safe:
        np.testing.assert_array_equal(paint(backend, [recipe]), paint(backend, [recipe]))


def test_it_is_remembered_by_passport(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """The second time nothing is computed; under another passport it is."""
    recipe = recipes_for(backend, model_folder("sd"), scheduler="Euler a")[0]
    first = backend.probe(recipe, PLACEMENT, SilentWatch())
    watch = SilentWatch()
    second = backend.probe(recipe, PLACEMENT, watch)
    assert (first.remembered, second.remembered) == (False, True)
    assert watch.steps == []
    assert second.checks == first.checks
    other = backend.probe(recipe, Placement(threads=1, attention="math"), SilentWatch())
    assert not other.remembered


def test_words_and_seed_do_not_matter_for_the_memory(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """A probe is about the model and the machine, so one serves every prompt."""
    one, two, *_ = recipes_for(backend, model_folder("sd"), scheduler="Heun")
    backend.probe(one, PLACEMENT, SilentWatch())
    assert backend.probe(two, PLACEMENT, SilentWatch()).remembered


def test_it_costs_less_than_a_grid(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """Three batches of two steps: as many as a grid of six."""
    recipe = recipes_for(backend, model_folder("sd"), scheduler="DDPM")[0]
    watch = SilentWatch()
    backend.probe(recipe, PLACEMENT, watch)
    assert len(watch.steps) == 6


def test_it_can_be_stopped_and_then_nothing_is_remembered(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """Half a probe proves nothing."""
    recipe = recipes_for(backend, model_folder("sd"), scheduler="UniPC")[0]
    with pytest.raises(RunCancelled):
        backend.probe(recipe, PLACEMENT, SilentWatch(stop_after=2))
    assert not backend.probe(recipe, PLACEMENT, SilentWatch()).remembered


def test_after_a_no_the_model_is_offered_with_a_smaller_batch(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """What the probe found is not only told: the next request is made with the width that holds."""
    folder = model_folder("sd-odd")
    recipe = recipes_for(backend, folder, lock_width=4)[0]
    backend.probe(recipe, PLACEMENT, SilentWatch())
    assert _usual_width(backend, folder) == 4  # An unusual placement is no reason.
    with one_thread():
        report = backend.probe(recipe, Placement(), SilentWatch())
    assert _usual_width(backend, folder) == report.tested_width == 1
    assert _usual_width(backend, model_folder("sd")) == 4


def _usual_width(backend: DiffusersBackend, folder: Path) -> int:
    """The width of new pictures, when nobody asks for one."""
    request = Request(prompt="a fox", seeds=(1,))
    return Studio(str(folder), backend=backend).resolve(request)[0].lock_width
