"""Generators: one fresh CPU generator for each picture, and noise mixes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stores import MakeRecipes

from seedgrid.core.errors import RunCancelled
from seedgrid.core.recipe import MAX_SEED, NoiseShare
from seedgrid.diffusion.backend import Unwatched
from seedgrid.diffusion.noise import fresh_generators, mix_noise, mixed_noise

SHAPE = (4, 8, 8)


def noise(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(SHAPE, generator=generator)


def test_equal_seeds_give_separate_generators_with_equal_noise() -> None:
    """Four generators of one seed draw four equal noises; `[g] * 4` would draw four different."""
    first, *others = [noise(generator) for generator in fresh_generators((7, 7, 7, 7))]
    for other in others:
        assert torch.equal(other, first)


@given(st.floats(0.01, 1), st.integers(0, MAX_SEED - 1))
def test_a_mix_keeps_the_strength_of_the_noise(weight: float, seed: int) -> None:
    """On the sphere, mixed noise is as strong as what it is mixed from; a plain mean is weaker."""
    start, end = (noise(generator) for generator in fresh_generators((seed, seed + 1)))
    norm = mix_noise(start, end, weight).norm()
    assert min(start.norm(), end.norm()) * 0.98 <= norm <= max(start.norm(), end.norm()) * 1.02


def test_a_mix_of_a_seed_with_itself_is_that_seed() -> None:
    """The angle between equal noises is zero, which must not become a division by zero."""
    (generator,) = fresh_generators((1,))
    start = noise(generator)
    assert torch.equal(mix_noise(start, start.clone(), 0.5), start)


def test_a_long_mix_hears_stop(make_recipes: MakeRecipes) -> None:
    """Each share of a start encodes that anew, and Stop waited for all of them."""
    shares = tuple(NoiseShare(seed=seed, weight=0.5) for seed in range(200))
    (recipe,) = make_recipes(seeds=(1,))
    watch, drawn = Unwatched(), []

    def prepare_latents(generator: list[torch.Generator]) -> torch.Tensor:
        drawn.append(generator)
        watch.cancelled = len(drawn) == 3
        return torch.stack([noise(each) for each in generator])

    pipeline = SimpleNamespace(prepare_latents=prepare_latents)
    cells = [recipe.replace(noise_mix=shares)]
    with mixed_noise(pipeline, cells, watch), pytest.raises(RunCancelled):
        pipeline.prepare_latents(generator=fresh_generators([1]))
    assert len(drawn) == 3
