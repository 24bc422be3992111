"""The programs of tools/ start, and a short run of the fuzzers finds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.fuzz.fuzzing import Finding, fuzz
from tools.fuzz.targets import CONTROL, TARGETS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("benchmarks", "benchmarks.gpu", "container", "fuzz", "limited", "load")
NUM_INPUTS = 400


@pytest.mark.parametrize("program", [*PROGRAMS, "session", "training"])
def test_a_program_says_what_it_takes(program: str) -> None:
    """`python -m tools.PROGRAM --help` imports all that it needs at its start."""
    command = [sys.executable, "-W", "ignore", "-m", f"tools.{program}", "--help"]
    assert "usage:" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", TARGETS)
def test_strange_inputs_are_read_or_refused(name: str) -> None:
    """No crash, no error that is not ours, nothing above a second or 256 MB."""
    *found, tried = fuzz(TARGETS[name], seed=1, count=NUM_INPUTS)
    assert [finding.what for finding in found if isinstance(finding, Finding)] == []
    assert tried == NUM_INPUTS


def test_a_reader_with_faults_is_found_out() -> None:
    """The control: an error, and an input that is slow and large at once, are all told."""
    found = [one for one in fuzz(CONTROL, seed=1, count=2) if isinstance(one, Finding)]
    told = " ".join(finding.what for finding in found)
    assert all(word in told for word in ("RecursionError", "slow:", "large:"))
