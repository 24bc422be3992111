"""Variations: suffixes glued to a prompt, and word-level differences."""

from __future__ import annotations

import pytest
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES, alternatives, append, compare_words
from seedgrid.studio import Studio


def test_the_guides_example() -> None:
    """The four prompts of the Diffusers guide, letter by letter."""
    assert [append(GUIDE_PROMPT, suffix) for suffix in GUIDE_SUFFIXES] == [
        "Labrador in the style of Vermeer, highly realistic",
        "Labrador in the style of Vermeer, artsy",
        "Labrador in the style of Vermeer, trending",
        "Labrador in the style of Vermeer, colorful",
    ]


@pytest.mark.parametrize(
    ("suffix", "prompt"),
    [
        (", artsy", "a fox, artsy"),
        ("at night", "a fox at night"),
        ("  at night  ", "a fox at night"),
        (". Snow.", "a fox. Snow."),
        (",雪", "a fox,雪"),
    ],
)
def test_suffixes_are_glued_as_one_writes(suffix: str, prompt: str) -> None:
    """Punctuation joins without a space, words with one."""
    assert append("a fox ", suffix) == prompt


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("a fox", "a fox, artsy", [("same", "a fox"), ("added", ", artsy")]),
        ("a red fox", "a fox", [("same", "a"), ("removed", " red"), ("same", " fox")]),
        (
            "a red fox",
            "a blue fox",
            [("same", "a"), ("removed", " red"), ("added", " blue"), ("same", " fox")],
        ),
        ("山の犬", "山の猫", [("same", "山の"), ("removed", "犬"), ("added", "猫")]),
        ("a fox", "a fox", [("same", "a fox")]),
        ("", "", []),
    ],
)
def test_differences_by_words(before: str, after: str, pieces: list[tuple[str, str]]) -> None:
    """Whole words are marked; scripts without spaces are compared by character."""
    assert [(piece.kind, piece.text) for piece in compare_words(before, after)] == pieces


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a fox", ["a fox"]),
        ("a {red|blue} fox", ["a red fox", "a blue fox"]),
        ("{a|the} {fox|owl}", ["a fox", "a owl", "the fox", "the owl"]),
        ("a {|red }fox", ["a fox", "a red fox"]),
        ("a {red|red} fox", ["a red fox"]),
        ("{{masterpiece}}, a {red} fox", ["{{masterpiece}}, a {red} fox"]),
        ("a {red|blue fox", ["a {red|blue fox"]),
    ],
)
def test_choices_in_braces_are_texts_of_their_own(text: str, found: list[str]) -> None:
    """Only what has a bar is a choice; other braces are words of other tools."""
    assert list(alternatives(text)) == found


def test_too_many_choices_are_refused() -> None:
    """Before any of them is made."""
    with refused(InputError, "pictures_count"):
        alternatives("{0|1|2|3|4|5|6|7|8|9}" * 5000)


def test_a_prompt_with_choices_is_a_matrix_and_a_variation_several(studio: Studio) -> None:
    """Each choice on every seed; recipes hold plain words."""
    grid = studio.grid("a {red|blue} fox", "0-1", width=64, height=64)
    assert [(e.recipe.prompt, e.recipe.seed) for e in grid] == [
        ("a red fox", 0),
        ("a red fox", 1),
        ("a blue fox", 0),
        ("a blue fox", 1),
    ]
    varied = studio.refine(grid[3], [", at {noon|night}", ", artsy"])
    words = ["at noon", "at night", "artsy"]
    assert [e.recipe.prompt for e in varied] == [f"a blue fox, {each}" for each in words]
    assert {e.recipe.seed for e in varied} == {1}
    assert studio.refine(grid[3], ["guidance 2"], prompt="a" * 5000)[0].lineage.change
    with pytest.raises(InputError, match="260 pictures are too many"):
        studio.start_refine(grid[0], [", at {0|1|2|3|4|5|6|7|8|9}"] * 13, also=grid[1:2])
