"""Seeds: what people write, what is refused, and that nothing is changed in silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from seedgrid.core.checks import MAX_SEEDS_AT_ONCE, format_seeds, parse_seeds
from seedgrid.core.errors import InputError
from seedgrid.core.recipe import MAX_SEED

SEEDS = st.integers(0, MAX_SEED)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("7", (7,)),
        ("0-3", (0, 1, 2, 3)),
        ("7, 11, 42", (7, 11, 42)),
        ("7 11 42", (7, 11, 42)),
        ("7;11,", (7, 11)),
        ("0–1, 9", (0, 1, 9)),
        (" 5 - 6 ", (5, 6)),
        ("3, 3, 1", (3, 3, 1)),
        ("007", (7,)),
        ("4294967295", (MAX_SEED,)),
        ("4294967294-4294967295", (MAX_SEED - 1, MAX_SEED)),
    ],
)
def test_seeds_as_people_write_them(text: str, seeds: tuple[int, ...]) -> None:
    """Single ones, lists and ranges are read; order and repeats are kept."""
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "seed_text"),
        ("abc", "seed_text"),
        ("1.5", "seed_text"),
        ("3-0", "seed_text"),
        ("1-", "seed_text"),
        ("1,,2", "seed_text"),
        ("9" * 5000, "seed_text"),
        ("-1", "seed_range"),
        ("4294967296", "seed_range"),
        ("0-4294967295", "seed_count"),
        (f"0-{MAX_SEEDS_AT_ONCE}", "seed_count"),
    ],
)
def test_what_is_no_list_of_seeds(text: str, code: str) -> None:
    """Each mistake has its own code, at the field of the seeds, without counting to the end."""
    with refused(InputError, code, field="seeds"):
        parse_seeds(text)


@pytest.mark.parametrize("text", ["random", " Random "])
def test_random_draws_four_seeds_each_time(text: str) -> None:
    """The word stands for seeds that nobody chose; alone, it is no item of a list."""
    first, second = parse_seeds(text), parse_seeds(text)
    assert len(first) == len(second) == 4
    assert first != second
    assert parse_seeds(format_seeds(first)) == first
    with pytest.raises(InputError):
        parse_seeds("1, random")


@given(st.lists(SEEDS, min_size=1, max_size=40))
def test_what_is_written_is_read_again(seeds: list[int]) -> None:
    """`format_seeds` and `parse_seeds` are each other's inverse."""
    assert parse_seeds(format_seeds(tuple(seeds))) == tuple(seeds)


@given(st.text(max_size=40))
def test_any_text_is_seeds_or_one_clear_error(text: str) -> None:
    """Whatever is typed gives seeds in the range, or an InputError; never anything else."""
    try:
        seeds = parse_seeds(text)
    except InputError:
        return
    assert seeds
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
