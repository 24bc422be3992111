"""Which cases of a wide test always run, and which are left to the sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_swept(cases: Iterable[Any], kept: Iterable[Any]) -> list[Any]:
    """Give all cases, each a value or a tuple; those that are not kept have the mark of a sweep."""
    all_cases, kept_cases = list(cases), set(kept)
    assert kept_cases <= set(all_cases), kept_cases - set(all_cases)
    return [
        case
        if case in kept_cases
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.sweep)
        for case in all_cases
    ]
