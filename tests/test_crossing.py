"""A slice of the crossing: `python -m tests.crossing` goes through all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seedgrid.core.errors import SeedGridError
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from tests import crossing


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def cards(backend: DiffusersBackend, model_folder: Callable[[str], Path]) -> dict[str, Any]:
    return {name: backend.card(str(model_folder(name))) for name in crossing.FAMILIES}


@pytest.fixture(scope="module")
def few(cards: dict[str, Any]) -> list[crossing.Case]:
    return crossing.pairwise(cards)


# Plain diffusers warns of what SeedGrid keeps quiet: cut prompts, NaN at one step.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("num_cases", [3, pytest.param(24, marks=pytest.mark.sweep)])
def test_a_slice_of_everything_is_plain_and_locked(
    backend: DiffusersBackend,
    model_folder: Callable[[str], Path],
    cards: dict[str, Any],
    few: list[crossing.Case],
    num_cases: int,
) -> None:
    """The first cases of the covering: the plain call's bits, and the same beside others."""
    num_painted = 0
    for case in few[:num_cases]:
        card = cards[case.family]
        try:
            ours = crossing.paint_ours(case, backend, card)
        except SeedGridError:
            continue  # Too few steps for this scheduler, for example.
        plain = crossing.paint_plain(case, model_folder(case.family), card, {})
        assert ours["ours"] == plain["plain"], case
        assert ours["cell"] == ours["moved"], case
        num_painted += 1
    assert num_painted > num_cases / 2


def test_every_two_values_of_two_axes_meet(cards: dict[str, Any], few: list[crossing.Case]) -> None:
    """In a few hundred of some hundred thousand cases."""
    everything = crossing.cases(cards)
    assert len(set(few)) == len(few) < 600 < 100_000 < len(set(everything))
    assert crossing.num_pairs(few) == crossing.num_pairs(everything) > 900
