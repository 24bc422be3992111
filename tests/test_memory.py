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

def work():
    for _ in range(40):
        bytearray(48 * 1024**2)

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only the GNU C library can be told")
def test_freed_blocks_are_used_again() -> None:
    """Forty times 48 MB on another thread costs the page faults of a few times, not of forty."""
    faults = {}
    for mode in ("given back", "kept"):
        done = subprocess.run(
            [sys.executable, "-c", CODE, mode], cwd=ROOT, capture_output=True, text=True, check=True
        )
        faults[mode] = int(done.stdout)
    assert faults["kept"] < faults["given back"] / 4
