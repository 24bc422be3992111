"""The lock: at a fixed width a picture depends on its own recipe alone, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command import run_python
from painting import paint, recipes_for
from sweeping import rest_swept
from watches import SilentWatch

from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Recipe, canonical_json
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.diffusers_backend import DiffusersBackend

FAMILIES = ("sd", "sdxl", "sd3", "flux", "pixart", "sana", "lcm", "stable-unclip", "ddpm", "ddim")
NOISY_SCHEDULERS = ("Euler a", "DPM++ SDE Karras", "DDPM", "DPM2 a", "DPM++ 2M SDE", "LCM")
# At once: UNets, a transformer with packed latents, pixels; two of them in the second format.
FORMATS = rest_swept(
    product(FAMILIES, ("float32", "bfloat16")),
    [*product(("sd", "flux"), ("float32", "bfloat16")), ("sdxl", "float32"), ("ddpm", "float32")],
)
LONG = " ".join(["an enormous landscape with foxes"] * 60)  # 300 words


def arrangements(cell: Recipe, others: tuple[Recipe, ...]) -> dict[str, list[Recipe]]:
    """Batches of four that all hold the cell, by what is different about them."""
    one, two, three = others
    short = [other.replace(prompt=other.prompt and "fox") for other in others]
    long = [other.replace(prompt=other.prompt and LONG) for other in others]
    return {
        "last, in reverse order": [three, two, one, cell],
        "second, beside one-word prompts": [short[0], cell, *short[1:]],
        "beside prompts of 300 words": [*long, cell],
        "alone": [cell],
        "with one other": [one, cell],
    }


def picture_of(cell: Recipe, batch: list[Recipe], pictures: tuple[Pixels, ...]) -> Pixels:
    return pictures[next(i for i, recipe in enumerate(batch) if recipe is cell)]


def check_lock(painter: DiffusersBackend, recipes: tuple[Recipe, ...]) -> None:
    cell, *others = recipes
    reference = paint(painter, recipes)[0]
    for what, batch in arrangements(cell, tuple(others)).items():
        picture = picture_of(cell, batch, paint(painter, batch))
        np.testing.assert_array_equal(picture, reference, err_msg=what)


@pytest.mark.parametrize(("name", "dtype"), FORMATS)
def test_neither_slot_nor_neighbours_reach_a_picture(
    painter: DiffusersBackend, folder: Path, dtype: str
) -> None:
    """Slot, order, neighbours, their prompts' lengths and the padding change no bit."""
    recipes = recipes_for(painter, folder, dtype=dtype, num_inference_steps=2)
    check_lock(painter, recipes)


@pytest.mark.parametrize("scheduler", rest_swept(NOISY_SCHEDULERS, NOISY_SCHEDULERS[:2]))
def test_the_noise_of_every_step_is_the_pictures_own(
    painter: DiffusersBackend, sd: Path, scheduler: str
) -> None:
    """Schedulers that draw at every step draw from the picture's generator only."""
    check_lock(painter, recipes_for(painter, sd, scheduler=scheduler, num_inference_steps=4))


@pytest.mark.parametrize(
    "name", rest_swept(("sd", "sdxl", "sd3", "pixart", "sana", "stable-unclip"), ("sd", "sdxl"))
)
def test_a_neighbour_with_a_negative_prompt_changes_nothing(
    painter: DiffusersBackend, folder: Path
) -> None:
    """SDXL reads no negative prompt and an empty one differently, and only once a batch.

    A batch that mixes recipes with and without one is therefore painted in two calls; in one call,
    the recipe without would be painted as if it had the empty one.
    """
    recipes = recipes_for(painter, folder)
    alone = paint(painter, recipes[:1])[0]
    mixed = [recipes[0], *(other.replace(negative_prompt="blurry") for other in recipes[1:])]
    np.testing.assert_array_equal(paint(painter, mixed)[0], alone)


def test_another_width_may_be_another_picture(painter: DiffusersBackend, sd: Path) -> None:
    """The width is in the recipe, since kernels round differently at another batch size."""
    recipe = recipes_for(painter, sd)[0]
    narrow = recipe.replace(lock_width=1)
    assert narrow.id != recipe.id
    difference = np.abs(
        paint(painter, [recipe])[0].astype(int) - paint(painter, [narrow])[0].astype(int)
    )
    assert difference.max() <= 2


@pytest.mark.sweep
def test_a_new_process_gives_the_same_bits(painter: DiffusersBackend, sd: Path) -> None:
    """Nothing that a process remembers is part of a picture."""
    recipe = recipes_for(painter, sd, scheduler="Euler a")[2]
    here = pixels_sha256(paint(painter, [recipe])[0])
    program = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from painting import paint\n"
        "from seedgrid.diffusion.diffusers_backend import DiffusersBackend\n"
        "from seedgrid.core.picture import pixels_sha256\n"
        "from seedgrid.core.recipe import Recipe\n"
        "recipe = Recipe.model_validate_json(sys.argv[3])\n"
        "print(pixels_sha256(paint(DiffusersBackend(), [recipe])[0]))\n"
    )
    tests = Path(__file__).parent
    done = run_python("-c", program, tests, tests.parent, canonical_json(recipe))
    assert done.stdout.split()[-1] == here


def test_global_randomness_is_neither_read_nor_touched(painter: DiffusersBackend, sd: Path) -> None:
    """The process's own random state changes no picture and is left as it was."""
    import torch

    recipes = recipes_for(painter, sd, scheduler="Euler a")
    first = paint(painter, recipes)
    torch.randn(5)
    state = torch.get_rng_state()
    second = paint(painter, recipes)
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("available", [3, 6])
def test_an_odd_number_of_processors_does_not_break_the_lock(
    painter: DiffusersBackend, model_folder: Callable[[str], Path], available: int
) -> None:
    """Three threads would cut four pictures in different places; by itself it takes two."""
    import torch

    recipe = recipes_for(painter, model_folder("flux"))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(available)
        passport = painter.prepare(recipe[0], Placement())
        report = painter.probe(recipe[0], Placement(), SilentWatch())
    finally:
        torch.set_num_threads(before)
    assert passport.threads in {2, 4}
    assert report.holds


def test_unclip_takes_a_mix_of_noises_and_keeps_its_lock(
    painter: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """Its pipeline names all arguments where it draws its noise, which once ended the run."""
    plain, *others = recipes_for(painter, model_folder("stable-unclip"))
    mixed = plain.replace(noise_mix=({"seed": 5, "weight": 0.5},))
    alone = paint(painter, [mixed])[0]
    assert not np.array_equal(alone, paint(painter, [plain])[0])
    np.testing.assert_array_equal(paint(painter, [*others[:3], mixed])[3], alone)
