"""A short run of every fuzzer, and the control: planted faults are found."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzzing import Finding, fuzz
from tests.fuzz.targets import CONTROL, TARGETS

NUM_INPUTS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_strange_inputs_are_read_or_refused(name: str) -> None:
    """No crash, no error that is not ours, nothing above a second or 256 MB."""
    *found, tried = fuzz(TARGETS[name], seed=1, count=NUM_INPUTS)
    assert [finding.what for finding in found if isinstance(finding, Finding)] == []
    assert tried == NUM_INPUTS


def test_a_reader_with_faults_is_found_out() -> None:
    """An error, and an input that is slow and large at once: nothing hides behind another.

    Filling memory takes long on a busy machine: what was told as slow was once not told as large.
    """
    found = [one for one in fuzz(CONTROL, seed=1, count=2) if isinstance(one, Finding)]
    told = " ".join(finding.what for finding in found)
    for word in ("RecursionError", "slow:", "large:"):
        assert word in told


def test_the_good_inputs_are_good() -> None:
    """Each fuzzer begins from inputs that its reader does not refuse."""
    for target in TARGETS.values():
        for data in target.seeds:
            target.read(data)
