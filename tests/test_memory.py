"""Freed memory stays with the process: fewer pages are asked of the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CODE = """
import resource, sys, threading
if sys.argv[1] == "kept":
    from seedgrid import tune_process
    tune_process()

def work(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        bytearray(48 * 1024**2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def twice():
    print(work(1), work(40))

thread = threading.Thread(target=twice)
thread.start()
thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only the GNU C library can be told")
def test_freed_blocks_are_used_again() -> None:
    """Forty times 48 MB on another thread costs the page faults of a few times, not of forty.

    How large a page is, the system decides; so what one time costs is counted as well.
    """
    faults = {}
    for mode in ("given back", "kept"):
        done = subprocess.run(
            [sys.executable, "-c", CODE, mode], cwd=ROOT, capture_output=True, text=True, check=True
        )
        faults[mode] = [int(number) for number in done.stdout.split()]
    (_, kept), (once, given_back) = faults["kept"], faults["given back"]
    assert kept < 10 * once < given_back
