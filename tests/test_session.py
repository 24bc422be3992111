"""A slice of the long session: `python -m tests.session` lives through all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import session


@pytest.mark.filterwarnings("ignore")  # Cut prompts: plain diffusers warns of them.
def test_a_session_is_the_same_in_another_order(
    tmp_path: Path, model_folder: Callable[[str], Path]
) -> None:
    """A dozen mixed requests, then every recipe once more, shuffled and beside others."""
    models = [str(model_folder(name)) for name in ("sd", "lcm", "ddim")]
    before = session.first(tmp_path, models, 12, seed=3)
    session.again(tmp_path, 1)
    assert len(before.pictures) > 15
    assert len(before.kinds) > 4
    assert before.differing == session.differing(tmp_path, 1) == []
