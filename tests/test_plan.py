"""Recipes become jobs with a position in the tree of choices."""

from __future__ import annotations

from stores import MakeRecipes, MemoryStore

from seedgrid.core.card import ModelCard
from seedgrid.core.plan import describe_change, plan_again, plan_grid, plan_refine
from seedgrid.core.recipe import ModelRef, NoiseShare, Upscaler
from seedgrid.core.variations import refine, steer
from seedgrid.engine import Engine
from seedgrid.testing.fake import FAKE_CARD, FakeBackend


def card(name: str | None) -> ModelCard:  # noqa: ARG001 (whatever its name)
    """The one card of the fake backend."""
    return FAKE_CARD


def test_a_round_of_several_pictures_has_a_row_for_each(make_recipes: MakeRecipes) -> None:
    """Each child names its own parent; planned once more, it does so again, beside it."""
    with Engine(FakeBackend(), MemoryStore()) as engine:
        made = engine.submit(plan_grid(make_recipes("a fox")), owner="a").result(20)
        rows = [(each, refine(each.recipe, [", artsy", " red"], card)) for each in made[1:3]]
        jobs = plan_refine(rows)
        again = plan_again(engine.submit(jobs, owner="a").result(20))
    parents = [made[1].id] * 2 + [made[2].id] * 2
    for planned in (jobs, again):
        places = [job.lineage for job in planned]
        assert [place.parent_id for place in places] == parents
        assert {place.work_id for place in places} == {made[0].lineage.work_id}
        assert len({place.round_id for place in places} | {made[0].lineage.round_id}) == 2
        assert [place.change for place in places] == [", artsy", "red"] * 2
        assert [place.cell for place in places] == [0, 1, 2, 3]
        assert {place.work_id for place in places} == {made[0].lineage.work_id}
    assert jobs[0].lineage.round_id != again[0].lineage.round_id


def test_a_change_is_told_in_the_words_that_were_typed(make_recipes: MakeRecipes) -> None:
    """A suffix, another prompt, another seed, some of another seed's noise, or a setting."""
    recipe = make_recipes("a fox", seeds=(3,))[0]
    changed = {
        "a hen": {"prompt": "a hen"},
        "seed 8": {"seed": 8},
        "25% of seed 9": {"noise_mix": (NoiseShare(seed=9, weight=0.25),)},
        "guidance 2.5": {"guidance_scale": 2.5},
        "steps 9, guidance 2.5": {"guidance_scale": 2.5, "num_inference_steps": 9},
        ", artsy, scheduler Euler": {"prompt": "a fox, artsy", "scheduler": "Euler"},
        " a hen": {"prompt": " a hen"},
        "width 2": {"lock_width": 2},
        ", artsy": {"prompt": "a fox, artsy", "lock_width": 2},
    }
    for words, update in changed.items():
        assert describe_change(recipe, recipe.replace(**update)) == words
    assert describe_change(recipe.replace(spread=0.3), recipe) == "spread 0"
    assert describe_change(recipe, recipe) == ""
    seven = recipe.replace(num_inference_steps=7)
    assert describe_change(seven, steer(seven, seven, hold=0.8)) == "hold 0.8"  # six of seven
    foxes = recipe.replace(model=ModelRef(id="a/foxes", revision="1" * 40, weights_sha256="0" * 64))
    assert describe_change(recipe, foxes) == "model a/foxes"  # a commit says nothing to an artist
    newer = foxes.replace(model=foxes.model.model_copy(update={"revision": "2" * 40}))
    assert describe_change(foxes, newer) == f"model a/foxes@{'2' * 40}"


def test_a_final_is_told_by_its_size_and_what_is_varied_of_it_by_its_words(
    make_recipes: MakeRecipes,
) -> None:
    """Another start is told by size and strength; the same start is no change."""
    recipe = make_recipes("a fox", seeds=(3,))[0]
    final = recipe.replace(start="f" * 64, strength=0.3, width=512, height=768)
    assert describe_change(recipe, final) == "512x768, strength 0.3"
    network = Upscaler(id="2x-foxes", weights_sha256="0" * 64)
    assert describe_change(recipe, final.replace(upscaler=network)) == "512x768, 2x-foxes"
    assert describe_change(final, final.replace(prompt="a fox, artsy")) == ", artsy"
