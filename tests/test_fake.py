"""The fake backend: a picture is its recipe's own, and steps, previews and Stop are real."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from stores import MakeRecipes
from watches import SilentWatch

from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.testing.fake import FakeBackend


def paint(backend: FakeBackend, recipes: Sequence[Recipe]) -> tuple[Pixels, ...]:
    return backend.paint(recipes, Placement(), SilentWatch())


def same(first: Sequence[Pixels], second: Sequence[Pixels]) -> list[bool]:
    return [bool((a == b).all()) for a, b in zip(first, second, strict=True)]


def test_a_picture_depends_on_its_recipe_only(make_recipes: MakeRecipes) -> None:
    """Neither the slot nor the neighbours nor earlier calls change a picture."""
    backend, recipes = FakeBackend(), make_recipes()
    together = paint(backend, recipes)
    reversed_ = paint(backend, recipes[::-1])[::-1]
    alone = [paint(FakeBackend(), [recipe])[0] for recipe in recipes]
    assert same(together, reversed_) == [True] * 4
    assert same(together, alone) == [True] * 4


def test_steps_and_previews_come_in_order(make_recipes: MakeRecipes) -> None:
    """Each step is told once, with one preview a recipe that gets nearer to the picture."""
    watcher = SilentWatch(with_previews=True)
    pictures = FakeBackend().paint(make_recipes(steps=4), Placement(), watcher)
    assert watcher.steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    small = pictures[0][::4, ::4].astype(int)
    distances = [np.abs(previews[0].astype(int) - small).mean() for previews in watcher.previews]
    assert distances[0] > distances[1] > distances[2]
    assert all(len(previews) == 4 for previews in watcher.previews)
