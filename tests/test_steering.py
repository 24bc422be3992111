"""Steering on real pipelines: hold as diffusers' callback does it, regions bit for bit, spread."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from painting import PLACEMENT, one_thread, paint, recipes_for
from sweeping import rest_swept
from test_parity import FAMILIES, SCHEDULERS
from watches import SilentWatch

from seedgrid.core.errors import RunCancelled
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.core.variations import Region, steer
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.storage import starts

BUNDLED = Path(__file__).resolve().parents[1] / "assets" / "model"
STEPS, HELD = 8, 3
SOLVERS = ("DDIM", "DPM++ 2M", "UniPC", "Euler a", "Heun")
SWITCHED = {
    "sd": ("prompt_embeds",),
    "lcm": ("prompt_embeds",),
    "sdxl": ("prompt_embeds", "add_text_embeds"),
    "sd3": ("prompt_embeds", "pooled_prompt_embeds"),
}
LINES = (", at night", ", a long and winding sentence about winter", ", x", ", neon")


@pytest.fixture
def backend() -> DiffusersBackend:
    return DiffusersBackend()


def parents_of(backend: DiffusersBackend, folder: Path, **changes: Any) -> tuple[Recipe, ...]:
    """Four seeds of one prompt, as a grid is."""
    prompts = ("a red fox",) * 4
    return recipes_for(backend, folder, prompts, **({"num_inference_steps": STEPS} | changes))


def held(parent: Recipe, hold: float = HELD / STEPS) -> tuple[Recipe, ...]:
    words = (parent.replace(prompt=parent.prompt + line) for line in LINES)
    return tuple(steer(parent, each, hold=hold) for each in words)


def callback_call(
    folder: Path, name: str, recipes: tuple[Recipe, ...], scheduler: Callable[[Any], Any] | None
) -> list[Pixels]:
    """Paint with diffusers' own callback, which gives the denoiser other words after some steps."""
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    if scheduler is not None:
        pipe.scheduler = scheduler(pipe.scheduler.config)
    first = recipes[0]
    assert first.parent
    seen: dict[str, torch.Tensor] = {}

    def look(*told: Any) -> dict[str, Any]:
        given: dict[str, Any] = told[-1]
        seen.update({key: given[key] for key in SWITCHED[name]})
        return given

    def switch(*told: Any) -> dict[str, Any]:
        _, step, _, given = told
        return given | seen if step + 1 == HELD * pipe.scheduler.order else given

    def call(prompts: list[str], callback: Any) -> Any:
        return pipe(
            prompts,
            width=first.width,
            height=first.height,
            num_inference_steps=STEPS,
            guidance_scale=first.guidance_scale,
            generator=[torch.Generator("cpu").manual_seed(each.seed) for each in recipes],
            callback_on_step_end=callback,
            callback_on_step_end_tensor_inputs=["latents", *SWITCHED[name]],
        ).images

    with one_thread():
        call([each.prompt for each in recipes], look)
        return [np.asarray(each) for each in call([first.parent.prompt] * 4, switch)]


WITH_WORDS = [each for each in FAMILIES if each not in ("ddpm", "ddim")]
CASES = [("sd", "DDIM", 5.0), ("sd", "Heun", 0.0), ("sdxl", None, 5.0)]
SWEPT = [
    *((name, None, 5.0) for name in ("sd3", "lcm")),
    *(("sd", solver, 5.0) for solver in SOLVERS[1:]),
    *(("sd", solver, 0.0) for solver in SOLVERS[:-1]),
    *((name, None, 0.0) for name in ("sdxl", "sd3", "lcm")),
    *(("sdxl", solver, 5.0) for solver in SOLVERS[1:]),
]


@pytest.mark.parametrize(("name", "solver", "guidance"), rest_swept([*CASES, *SWEPT], CASES))
def test_hold_equals_diffusers_own_callback(
    backend: DiffusersBackend, folder: Path, name: str, solver: str | None, guidance: float
) -> None:
    """The parent was painted beside other seeds; its first steps are given back, 0 bits differ."""
    changes = {"guidance_scale": guidance} | ({"scheduler": solver} if solver else {})
    grid = parents_of(backend, folder, **changes)
    recipes = held(grid[2])
    paint(backend, grid)
    expected = callback_call(folder, name, recipes, SCHEDULERS[solver] if solver else None)
    found = paint(backend, recipes)
    np.testing.assert_array_equal(found, expected)
    plain = paint(backend, [each.replace(parent=None, held_steps=0) for each in recipes])
    assert not np.array_equal(found, plain)


@pytest.mark.parametrize("name", rest_swept(WITH_WORDS, ["sd", "flux"]))
def test_the_memory_of_the_way_changes_no_bit(backend: DiffusersBackend, folder: Path) -> None:
    """Every family: with the parent's outputs in memory and painted anew, held and in a region."""
    grid = parents_of(backend, folder, num_inference_steps=5)
    children = (*held(grid[2], 0.4)[:2], *held(grid[1], 0.6)[:2])
    paint(backend, grid)
    calls = counted_calls(backend, children[0])
    remembered = paint(backend, children)
    assert calls() > 0
    alone = paint(DiffusersBackend(), children)
    np.testing.assert_array_equal(remembered, alone)
    assert len({each.tobytes() for each in remembered}) == 4


def counted_calls(backend: DiffusersBackend, recipe: Recipe) -> Callable[[], int]:
    """Count from now on how often the denoiser is really run."""
    pipe = backend.load(recipe, PLACEMENT)
    module = getattr(pipe, "transformer", None) or pipe.unet
    forward, count = module.forward, itertools.count()

    def counting(*args: Any, **kwargs: Any) -> Any:
        next(count)
        return forward(*args, **kwargs)

    module.forward = counting
    return lambda: int(repr(count)[6:-1])


@pytest.mark.parametrize("solver", ["DDIM", "Heun"])
def test_held_steps_do_not_run_the_denoiser(
    backend: DiffusersBackend, sd: Path, solver: str
) -> None:
    """Three of eight steps are held: they are run once for all when forgotten, and else never."""
    grid = parents_of(backend, sd, scheduler=solver)
    paint(backend, grid)
    calls = counted_calls(backend, grid[0])
    own = {"DDIM": 5, "Heun": 9}[solver]
    paint(backend, held(grid[2]))
    assert calls() == own
    backend._trajectories._entries.clear()
    paint(backend, held(grid[2]))
    assert calls() == 2 * own + {"DDIM": 3, "Heun": 6}[solver]


def test_the_memory_is_bounded(
    backend: DiffusersBackend, sd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for nothing the parent is painted anew, and the pictures are the same."""
    grid = parents_of(backend, sd)
    paint(backend, grid)
    expected = paint(backend, held(grid[2]))
    monkeypatch.setenv("SEEDGRID_WAY_MB", "0.0001")
    small = DiffusersBackend()
    paint(small, grid)
    np.testing.assert_array_equal(paint(small, held(grid[2])), expected)
    assert not small._trajectories._entries


def test_one_batch_holds_several_lengths_and_parents(backend: DiffusersBackend, sd: Path) -> None:
    """Four holds side by side are those of four rounds; a free picture sits beside them."""
    grid = parents_of(backend, sd)
    night = grid[1].replace(prompt="a red fox at night")
    mixed = (
        night,
        steer(grid[1], night, hold=0.25),
        steer(grid[1], night, hold=0.75),
        held(grid[3], 0.5)[0],
    )
    together = paint(backend, mixed)
    for place, recipe in enumerate(mixed):
        np.testing.assert_array_equal(paint(DiffusersBackend(), [recipe])[0], together[place])
    assert len({each.tobytes() for each in together}) == 4


def a_mask(folder: Path, seed: int, size: int = 64) -> str:
    """Keep a mask of random rectangles."""
    draws = np.random.default_rng(seed)
    mask = np.zeros((size, size, 3), np.uint8)
    for _ in range(2):
        top, left = draws.integers(0, size - 20, 2)
        height, width = draws.integers(9, 20, 2)
        mask[top : top + height, left : left + width] = 255
    return starts.write(folder / "starts", mask)


@pytest.mark.parametrize("name", rest_swept(WITH_WORDS, ["sd", "flux"]))
def test_outside_a_region_not_one_bit_differs(
    backend: DiffusersBackend, folder: Path, tmp_path: Path
) -> None:
    """In every family, with and without hold, with the parent in memory and without."""
    grid = parents_of(backend, folder, num_inference_steps=4)
    parent = paint(backend, grid)[2]
    words = grid[2].replace(prompt="a red fox, neon")
    masks = [a_mask(tmp_path, seed, len(parent)) for seed in range(2)]
    hows = [
        (mask, feather, hold)
        for mask, (feather, hold) in zip(masks, ((0, 0), (4, 0.5)), strict=True)
    ]
    children = [
        steer(grid[2], words, hold=hold, region=Region(mask=mask, feather=feather))
        for mask, feather, hold in hows
    ]
    found = paint(backend, children)
    for (mask, _, _), picture in zip(hows, found, strict=True):
        inside = starts.inside(mask, len(parent), len(parent))
        np.testing.assert_array_equal(picture[~inside], parent[~inside])
        assert np.any(picture[inside] != parent[inside])
    np.testing.assert_array_equal(paint(DiffusersBackend(), children), found)


def test_regions_one_after_another_make_a_chain(
    backend: DiffusersBackend, sd: Path, tmp_path: Path
) -> None:
    """Each keeps what the one before it made, also where it is held and painted by itself."""
    recipe = parents_of(backend, sd)[2]
    before = paint(backend, [recipe])[0]
    for number, line in enumerate(LINES[:3]):
        region = Region(mask=a_mask(tmp_path, number), feather=2)
        words = recipe.replace(prompt=f"a red fox{line}")
        recipe = steer(recipe, words, hold=0.25 * (number == 2), region=region)
        (picture,) = paint(backend, [recipe])
        inside = starts.inside(region.mask, 64, 64)
        np.testing.assert_array_equal(picture[~inside], before[~inside])
        assert np.any(picture != before)
        before = picture
    assert len(recipe.line) == 4
    np.testing.assert_array_equal(paint(DiffusersBackend(), [recipe])[0], before)


def test_a_held_picture_of_a_region_follows_all_of_it(
    backend: DiffusersBackend, sd: Path, tmp_path: Path
) -> None:
    """The same words, held, give the very picture that is followed, latents and pixels."""
    grandparent = parents_of(backend, sd)[1]
    words = grandparent.replace(prompt="a red fox, neon")
    region = Region(mask=a_mask(tmp_path, 5), feather=0)
    parent = steer(grandparent, words, region=region)
    again = steer(parent, parent, hold=0.5, region=region)
    both = paint(backend, [parent, again])
    np.testing.assert_array_equal(both[0], both[1])


def test_spread_is_a_pictures_own(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> None:
    """Noise on the words moves a picture, by its seed alone, whoever sits beside it."""
    for name, guidance in (("sd", 5.0), ("sd", 0.0), ("flux", 3.5), ("pixart", 4.5)):
        grid = parents_of(backend, model_folder(name), guidance_scale=guidance)
        spread = [each.replace(spread=0.25) for each in grid]
        found = paint(backend, spread)
        mixed = paint(backend, [grid[0], spread[1], grid[2], spread[3]])
        np.testing.assert_array_equal(mixed[1], found[1])
        np.testing.assert_array_equal(mixed[3], found[3])
        plain = paint(backend, grid)
        np.testing.assert_array_equal(mixed[0], plain[0])
        assert all(not np.array_equal(*pair) for pair in zip(plain, found, strict=True))


def test_spread_sets_seeds_apart_that_are_nearly_alike(
    backend: DiffusersBackend, tmp_path: Path
) -> None:
    """Begun from one picture, four seeds of the bundled model differ more with it than without."""
    start = starts.write(tmp_path / "starts", np.full((256, 256, 3), 150, np.uint8))
    settings = {"num_inference_steps": 8, "start": start, "strength": 0.4}
    for words in ("a lighthouse in winter", "a house at night, Van Gogh"):
        grid = recipes_for(backend, BUNDLED, (words,) * 4, width=256, height=256, **settings)
        spread = [each.replace(spread=0.5) for each in grid]
        assert distance(paint(backend, spread)) > 1.05 * distance(paint(backend, grid))


def distance(pictures: Sequence[Pixels]) -> float:
    """Return the mean distance of two pictures, in levels of 8 x 8 pixels together."""
    small = [each.reshape(32, 8, 32, 8, 3).mean((1, 3)) for each in pictures]
    pairs = itertools.combinations(small, 2)
    return float(np.mean([np.sqrt(np.square(one - other).mean()) for one, other in pairs]))


def test_a_stop_reaches_the_parent_that_is_painted_first(
    backend: DiffusersBackend, sd: Path
) -> None:
    """It tells of all steps together; one that is stopped leaves nothing behind in memory."""
    recipes = held(parents_of(backend, sd)[0])
    backend.prepare(recipes[0], PLACEMENT)
    watch = SilentWatch(stop_after=2)
    with pytest.raises(RunCancelled):
        backend.paint(recipes, PLACEMENT, watch)
    assert watch.steps == [(1, 11), (2, 11)]
    assert not backend._trajectories._entries
    watch = SilentWatch()
    backend.paint(recipes, PLACEMENT, watch)
    assert watch.steps == [(number, 11) for number in range(1, 12) if number != 3]
    watch = SilentWatch()
    backend.paint(recipes, PLACEMENT, watch)
    assert watch.steps == [(number, 8) for number in range(1, 9)]


@pytest.mark.parametrize("name", ["sd", "flux", "lcm"])
def test_a_start_can_be_held_too(backend: DiffusersBackend, folder: Path, tmp_path: Path) -> None:
    """From a picture fewer steps are run: the first of those are the parent's."""
    start = starts.write(tmp_path / "starts", np.full((64, 64, 3), 90, np.uint8))
    grid = parents_of(backend, folder, start=start, strength=0.75)
    parent = paint(backend, grid)[2]
    region = Region(mask=a_mask(tmp_path, 8), feather=0)
    words = grid[2].replace(prompt="a red fox, neon")
    children = [steer(grid[2], words, hold=0.5), steer(grid[2], words, hold=0.5, region=region)]
    found = paint(backend, children)
    np.testing.assert_array_equal(paint(DiffusersBackend(), children), found)
    inside = starts.inside(region.mask, 64, 64)
    np.testing.assert_array_equal(found[1][~inside], parent[~inside])
    assert np.any(found[0] != parent)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["sd", "sd3"])
def test_portable_pictures_are_steered_too(
    backend: DiffusersBackend, folder: Path, tmp_path: Path
) -> None:
    """With what is remembered and without, in batches of other widths."""
    grid = parents_of(backend, folder, portable=True, num_inference_steps=4)
    parent = paint(backend, grid[:2])[1]
    region = Region(mask=a_mask(tmp_path, 3), feather=3)
    child = steer(grid[1], grid[1].replace(prompt="fox, neon"), hold=0.5, region=region)
    spread = child.replace(spread=0.5)
    found = paint(backend, [child, spread])
    inside = starts.inside(region.mask, 64, 64)
    np.testing.assert_array_equal(found[0][~inside], parent[~inside])
    np.testing.assert_array_equal(paint(DiffusersBackend(), [child])[0], found[0])
