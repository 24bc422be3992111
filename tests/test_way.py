"""Steering: which recipes follow their parent's way, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pictures import make_recipe
from pydantic import ValidationError
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.plan import describe_change
from seedgrid.core.recipe import MAX_PARENTS, NoiseShare, Recipe, canonical_json
from seedgrid.core.speeds import pixel_steps
from seedgrid.core.variations import (
    Region,
    check_feather,
    noise_variations,
    read_variation,
    refine,
    steer,
)
from seedgrid.testing.fake import FAKE_CARD

PARENT = make_recipe(num_inference_steps=10, prompt="a fox", model=FAKE_CARD.ref)
REGION = Region(mask="a" * 64, feather=3)


def refined(lines: list[str], **how: Any) -> tuple[Any, ...]:
    return refine(PARENT, lines, lambda _: FAKE_CARD, **how)


def test_a_line_says_how_much_is_held() -> None:
    """Beside others in one round, which share a batch; the dial holds where no line speaks."""
    lines = ["hold 0.2, at night", "hold 0.6, at night", ", at night", "hold hands, at night"]
    found = refined(lines, hold=0.4)
    assert [each.held_steps for each in found] == [2, 6, 4, 4]
    assert {each.parent for each in found} == {PARENT}
    assert len({each.batch_key for each in found}) == 1
    assert [each.prompt for each in found[:2]] == ["a fox, at night"] * 2
    assert found[3].prompt.endswith("hold hands, at night")
    assert read_variation("hold: 0,5").hold == 0.5


def test_a_recipe_that_follows_is_complete() -> None:
    """It is read from its own JSON, and names the whole of its parent; others keep their ids."""
    (held,) = refined([", at night"], hold=0.4)
    assert Recipe.model_validate_json(canonical_json(held)) == held
    assert "parent" not in canonical_json(PARENT)
    assert held.id != PARENT.id


def test_a_second_hold_follows_the_first_parent() -> None:
    """Where the first steps are those of the grandparent anyway: the shorter recipe is the same."""
    (held,) = refined([", at night"], hold=0.4)
    shorter = steer(held, held.replace(prompt="snow"), hold=0.3)
    longer = steer(held, held.replace(prompt="snow"), hold=0.5)
    assert (shorter.parent, shorter.held_steps) == (PARENT, 3)
    assert (longer.parent, longer.held_steps) == (held, 5)


def test_a_hold_of_nothing_ends_the_hold_of_the_pick() -> None:
    """Without one it goes on."""
    (held,) = refined([", at night"], hold=0.4)
    lines = [", snow", "hold 0, snow"]
    assert [each.parent for each in refine(held, lines, lambda _: FAKE_CARD)] == [PARENT, None]
    assert refine(held, [", snow"], lambda _: FAKE_CARD, hold=0.0)[0].parent is None


def test_other_noise_reaches_the_whole_line() -> None:
    """A variation of the noise of a picture that follows another one is still a recipe."""
    (held,) = refined([", at night"], hold=0.4)
    (other,) = noise_variations(held, [7], weight=0.1)
    assert other.parent is not None
    assert other.noise_mix == other.parent.noise_mix == (NoiseShare(seed=7, weight=0.1),)


@pytest.mark.parametrize(
    ("lines", "how", "code"),
    [
        (["hold 0.9, x"], {}, "hold_range"),
        ([", x"], {"hold": float("nan")}, "hold_range"),
        (["hold 0.4, steps 8, x"], {}, "way_settings"),
        (["scheduler Euler"], {"hold": 0.4}, "way_settings"),
        (["steps 8"], {"region": REGION}, "way_settings"),
    ],
)
def test_what_cannot_be_held_is_refused(lines: list[str], how: dict[str, Any], code: str) -> None:
    """In a sentence, at the field where it was written."""
    with refused(InputError, code) as caught:
        refined(lines, **how)
    assert len(str(caught.value)) > 20


def test_few_steps_have_nothing_to_hold() -> None:
    """Three steps are refused, four are not."""
    for steps, code in ((3, "hold_steps"), (4, None)):
        parent = PARENT.replace(num_inference_steps=steps)
        try:
            steer(parent, parent, hold=0.3)
            found = None
        except InputError as error:
            found = error.code
        assert found == code


def test_regions_make_a_chain_that_ends() -> None:
    """Each region's parent is the picture before it; eight one after another, not nine."""
    recipe = PARENT
    for _ in range(MAX_PARENTS):
        recipe = steer(recipe, recipe, region=REGION)
    assert len(recipe.line) == MAX_PARENTS + 1
    with pytest.raises(InputError, match="follows 8 others"):
        steer(recipe, recipe, region=REGION)


@pytest.mark.parametrize(
    "changes",
    [
        {"held_steps": 2},
        {"mask": "a" * 64},
        {"feather": 2},
        {"parent": PARENT},
        {"parent": PARENT, "held_steps": 10},
        {"parent": PARENT.replace(seed=5), "held_steps": 2},
        {"spread": 0.6},
    ],
)
def test_a_recipe_from_elsewhere_must_make_sense(changes: dict[str, Any]) -> None:
    """A hold without a parent, a parent of another seed and the like are no recipes."""
    with refused(InputError, "recipe_invalid"):
        PARENT.replace(**changes)


def test_long_words_follow_fewer_parents() -> None:
    """All of it has to find room in a PNG: refused before it is painted, not after."""
    recipe = PARENT.replace(prompt="狐" * 5000, negative_prompt="雾" * 5000)
    for _ in range(3):
        recipe = steer(recipe, recipe, region=REGION)
    with pytest.raises(InputError, match="follows 3 others"):
        steer(recipe, recipe, region=REGION)


def test_what_was_steered_is_said_of_the_picture() -> None:
    """As a line of a refinement is written."""
    held, here = steer(PARENT, PARENT, hold=0.4), steer(PARENT, PARENT, region=REGION)
    assert describe_change(PARENT, held) == "hold 0.4"
    assert describe_change(PARENT, here) == "only here"
    begun = PARENT.replace(start="b" * 64, strength=0.75)
    assert describe_change(begun, steer(begun, begun, hold=0.43)) == "hold 0.429"
    assert describe_change(held, held.replace(prompt="a fox, artsy")) == ", artsy"


def test_the_usual_feather_follows_the_size() -> None:
    """A sixteenth of the shorter side; one that no recipe can hold is refused."""
    assert check_feather(None, PARENT.replace(width=512, height=256)) == 16
    with pytest.raises(InputError):
        check_feather(-1, PARENT)


def test_a_recipe_with_a_thousand_parents_is_refused() -> None:
    """A stranger's file may nest as deep as it likes: it is no recipe, and nothing else happens."""
    for depth in (MAX_PARENTS + 1, 100, 1000):
        text = canonical_json(PARENT)
        held = f',"held_steps":1,"parent":{text}' + "}"
        for _ in range(depth):
            held = f',"held_steps":1,"parent":{text[:-1]}{held}' + "}"
        with pytest.raises(ValidationError):
            Recipe.model_validate_json(text[:-1] + held)


def test_what_is_followed_counts_as_work() -> None:
    """Else a file whose parents take an hour looks as short as its last picture."""
    (held,) = refined([", x"], hold=0.4)
    assert pixel_steps(held) == 2 * pixel_steps(PARENT)
