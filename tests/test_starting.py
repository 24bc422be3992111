"""The start of the page: what is not needed for the first answer is neither imported nor made."""

from __future__ import annotations

import json
import os

import pytest
from command import run_python

from seedgrid.diffusion.process import SPIN_COUNT

GUEST = """
import gc, json, os
before = dict(os.environ), gc.get_threshold()
touched = []
gc.disable = lambda: touched.append("gc.disable")
gc.freeze = lambda: touched.append("gc.freeze")
import ctypes
load = ctypes.CDLL.__getattr__
ctypes.CDLL.__getattr__ = lambda library, name: touched.append(name) or load(library, name)

from seedgrid import Studio
import seedgrid.web.launch
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.diffusion import process
from seedgrid.diffusion.process import SPIN_COUNT

DeferredBackend()._painter
after = dict(os.environ), gc.get_threshold()
changed = sorted(name for name in after[0] if before[0].get(name) != after[0][name])
names = ("gc.disable", "gc.freeze", "mallopt")
print(json.dumps([[name for name in names if name in touched], changed, before[1] == after[1]]))
"""


def test_whoever_imports_us_keeps_their_process() -> None:
    """A library leaves allocator, collector and environment of its host alone."""
    clean = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    done = run_python("-W", "ignore", "-c", GUEST, env=clean)
    touched, changed, is_same = json.loads(done.stdout)
    assert (touched, is_same) == ([], True)
    assert not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "PYTHONHASHSEED"} & set(changed)


PROGRAM = """
import os, sys
from seedgrid.cli import main
main(["--version"])
assert "torch" not in sys.modules
print(os.environ.get("GOMP_SPINCOUNT"), os.environ.get("OMP_WAIT_POLICY"))
"""


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ({}, f"{SPIN_COUNT} None"),
        ({"GOMP_SPINCOUNT": "7"}, "7 None"),
        ({"OMP_WAIT_POLICY": "active"}, "None active"),
    ],
    ids=["nothing set", "count set", "policy set"],
)
def test_our_programs_let_threads_spin_less(users: dict[str, str], expected: str) -> None:
    """Before torch is imported, and never over what the user set."""
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = run_python("-W", "ignore", "-c", PROGRAM, env=clean | users)
    assert done.stdout.splitlines()[-1] == expected
