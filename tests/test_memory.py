"""Freed memory stays with the process: fewer pages are asked of the system."""

from __future__ import annotations

import sys

import pytest
from command import run_python

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
        done = run_python("-c", CODE, mode)
        faults[mode] = [int(number) for number in done.stdout.split()]
    (_, kept), (once, given_back) = faults["kept"], faults["given back"]
    assert kept < 10 * once < given_back
