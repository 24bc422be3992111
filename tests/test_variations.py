"""Variations: suffixes glued to a prompt, and word-level differences."""

from __future__ import annotations

import pytest

from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES, append, compare_words


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
