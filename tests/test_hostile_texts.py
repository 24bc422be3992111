"""Hostile words: whatever their length and their repetition, reading them takes one pass.

Growth is counted on the patterns (test_growth.py); here are the borders that let texts in, and the
meaning of a list of seeds, which must not have changed with the way it is read.
"""

from __future__ import annotations

import pytest
from refusing import refused

from seedgrid.core.checks import MAX_MIX_CHARACTERS, MAX_SEEDS_CHARACTERS
from seedgrid.core.errors import InputError
from seedgrid.core.prompts import MAX_COMPARISONS, compare_words
from seedgrid.formats.links import read_link
from seedgrid.web.serializers.form import FormPayload, read_request


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("seeds", "1," * MAX_SEEDS_CHARACTERS),
        ("size", "1" * 100_000),
        ("steps", "1" * 1_000_000),
        ("guidance", "0." + "0" * 1_000_000 + "1"),
        ("mix", "5:.1," * MAX_MIX_CHARACTERS),
    ],
)
def test_no_field_of_the_page_takes_a_text_without_end(field: str, text: str) -> None:
    """Each field has a length of its own, and its error shows only the beginning."""
    with refused(InputError, field=field) as caught:
        read_request(FormPayload(**{"seeds": "1", field: text}))

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("before", "after"), [("," * 5000, ",." * 2500), ("狐" * 5000, "狐犬" * 2500)]
)
def test_two_long_prompts_are_compared_within_a_bound(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two prompts of 5,000 characters in a stranger's picture kept the page busy for minutes."""
    asked: list[int] = []

    class Counted:
        def __init__(self, *, a: list[str], b: list[str], autojunk: bool) -> None:
            assert not autojunk
            asked.append(len(a) * len(b))

        def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:
            return []

    monkeypatch.setattr("seedgrid.core.prompts.difflib.SequenceMatcher", Counted)
    compare_words(before, after)

    assert all(count <= MAX_COMPARISONS for count in asked)


@pytest.mark.parametrize(
    "query",
    [
        "seeds=" + "1+++" * 2400 + "x",
        "mix=" + "5:0." + "1" * 60_000,
        "size=" + "1" * 60_000,
        "steps=" + "1" * 60_000,
        "guidance=1." + "1" * 60_000,
        "model=" + "a." * 30_000 + "/",
        "model=a/b@" + "c" * 60_000,
    ],
)
def test_no_link_takes_long(query: str) -> None:
    """A link is opened by a plain visit: each of these is refused in one pass."""
    with pytest.raises(InputError) as caught:
        read_link(query)

    assert len(str(caught.value)) < 300
