"""Words in a file's name: safe everywhere, whatever the words are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedgrid.core.text import picture_filename, unique_names


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        (
            "Labrador in the style of Vermeer, artsy",
            "labrador-in-the-style-of-vermeer-artsy-seed-2.png",
        ),
        ("Café “Größe” №5", "cafe-gro-e-no5-seed-2.png"),
        ("猫，水彩", "seedgrid-seed-2.png"),
        ("../../etc/passwd", "etc-passwd-seed-2.png"),
        ("CON", "con-seed-2.png"),
        ("", "seedgrid-seed-2.png"),
    ],
)
def test_words_are_in_the_name(prompt: str, name: str) -> None:
    """Folded to ASCII; what no letter is left of is not there."""
    assert picture_filename(prompt, 2) == name


@pytest.mark.parametrize(
    ("prompt", "change", "name"),
    [
        ("a fox, at night", ", at night", "a-fox-at-night-seed-2.png"),
        ("a fox", "1024x1024, bundled-4x", "a-fox-1024x1024-bundled-4x-seed-2.png"),
        ("a fox", "10% of seed 7", "a-fox-10-of-seed-7-seed-2.png"),
        (f"{'fox ' * 40}, artsy", ", artsy", f"{'fox-' * 18}artsy-seed-2.png"),
    ],
)
def test_variations_of_one_seed_have_names_of_their_own(
    prompt: str, change: str, name: str
) -> None:
    """What was changed is there once, however long the words are."""
    assert picture_filename(prompt, 2, change) == name


@given(prompt=st.text(max_size=400), change=st.text(max_size=400), seed=st.integers(0, 2**32 - 1))
def test_every_name_is_safe_on_every_system(prompt: str, change: str, seed: int) -> None:
    """Small letters, digits and hyphens, an ending, and at most a hundred characters."""
    name = picture_filename(prompt, seed, change)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*\.png", name)
    assert len(name) <= 100


@given(names=st.lists(st.sampled_from(["fox.png", "fox-2.png", "cat.png"]), max_size=8))
def test_no_two_files_have_one_name(names: list[str]) -> None:
    """As many as there were, in their order, each once."""
    found = unique_names(names)
    assert len(found) == len(set(found)) == len(names)
