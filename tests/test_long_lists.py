"""No line is too long to be read, and no forged tree is without end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pictures import as_entry, make_lineage, make_picture, make_recipe
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.picture import Entry
from seedgrid.core.variations import read_variation, refine
from seedgrid.export.sheets import blocks_of
from seedgrid.web.serializers.pictures import rounds_of, without_trashed


def entry_of(picture: int, parent: int | None, *, round_: int | None = None) -> Entry:
    """A picture as its file says: the numbers of itself, its parent and its round."""
    number = "{:032x}".format
    lineage = make_lineage(
        picture_id=number(picture),
        parent_id=None if parent is None else number(parent),
        round_id=number(1000 + picture if round_ is None else round_),
        work_id=number(0),
        change=f", word {picture}",
        created_at=f"{picture:09}",
    )
    return as_entry(make_picture(lineage=lineage))


@pytest.mark.parametrize("text", ["steps 8, " * 40_000, "lora 1, " * 700, "a" * 5001])
def test_a_variation_is_no_longer_than_a_prompt(text: str) -> None:
    """A line of settings once held the interpreter far longer than it was long."""
    with refused(InputError, "prompt_long", field="vary"):
        read_variation(text)


@pytest.mark.parametrize("text", ["lora: :::", "lora=\u3000:", "lora 0.5, lora : :"])
def test_a_scale_of_marks_alone_is_refused(text: str) -> None:
    """It ended in Python's own error, which the page can only call unknown."""
    with refused(InputError, "lora_scale"):
        refine(make_recipe(), [text], lambda _: pytest.fail("no card is needed"))


@pytest.mark.parametrize(
    ("entries", "num_rounds"),
    [
        ((entry_of(1, 1),), 1),
        ((entry_of(1, 2), entry_of(2, 1)), 2),
        ((entry_of(1, 2, round_=7), entry_of(2, None, round_=7)), 1),
        ((entry_of(1, 3), entry_of(2, 1), entry_of(3, 2), entry_of(4, 3), entry_of(5, None)), 5),
    ],
    ids=["its own parent", "each other's", "in one round", "three and who follows"],
)
def test_pictures_that_are_their_own_ancestors_are_shown(
    entries: Sequence[Entry], num_rounds: int
) -> None:
    """A file says who its parent is; a circle was not shown, and its tree was an error."""
    rounds = rounds_of(entries)

    assert sorted(e.id for each in rounds for e in each.entries) == sorted(e.id for e in entries)
    assert len(without_trashed(rounds, None)) == len(rounds) == num_rounds
    assert blocks_of(entries)


def test_branches_stand_from_left_to_right_below_their_parents() -> None:
    """A line goes straight down; each branch beside it begins one lane further to the right."""
    parents = {0: None, 1: 0, 2: 1, 3: 0, 4: 1, 5: 4}
    rounds = rounds_of([entry_of(picture, parent) for picture, parent in parents.items()])
    order = [int(each.entries[0].id, 16) for each in rounds]
    lanes = [(number, each.lane) for number, each in zip(order, rounds, strict=True)]
    assert lanes == [(0, 0), (1, 0), (2, 0), (4, 1), (5, 1), (3, 2)]
    assert all(order.index(p) < order.index(n) for n, p in parents.items() if p is not None)
