"""Where a browser is: what it kept is checked, and its epochs only grow."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from seedgrid.web.state.page_state import NOBODY, PageState, read_state

HOUR_NS = 3600 * 10**9


def test_a_clock_that_steps_back_does_not_freeze_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer has a greater epoch than the one before, also where the clock stands still."""
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    first = PageState(visitor="0" * 32).move()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns - HOUR_NS)
    second = first.move()
    error = first.move()
    assert first.epoch < second.epoch < error.epoch


@pytest.mark.parametrize("epoch", [-1, 2**53, 1.5, "7", None])
def test_an_epoch_that_no_browser_counts_with_is_not_ours(epoch: object) -> None:
    """Beyond 2**53 two numbers are one in JavaScript, and the page would stand still."""
    sender = replace(NOBODY, visitor="0" * 32)
    assert read_state({"work": "1" * 32, "epoch": 3}, sender).work == "1" * 32
    assert read_state({"work": "1" * 32, "epoch": epoch}, sender) == PageState(visitor="0" * 32)
