"""What was announced survives kill -9, I/O errors and a full disk at any system call."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from sweeping import rest_swept

from seedgrid.formats import png
from seedgrid.library import Library

WORKER = """
import sys
from pathlib import Path
from pictures import make_picture
from seedgrid.core.errors import SeedGridError
from seedgrid.library import Library

def tell(*words):
    print(*words, flush=True)

def round_of(number):
    pictures = [make_picture(seed=4 * number + cell, width=32, height=32) for cell in range(4)]
    ids = [entry.id for entry in library.add_together(pictures)]
    tell("add", *ids)
    library.set_favourite(ids[0], True)
    tell("favourite", ids[0])
    tell("deleting", ids[1])
    library.trash(ids[1])
    library.empty_trash()
    tell("deleted", ids[1])

library = Library(Path(sys.argv[1]), busy_timeout_s=5)
tell("open")
for number in range(int(sys.argv[2])):
    try:
        round_of(number)
    except SeedGridError as error:
        tell("refused", error.code)
tell("end")
"""


def work(library: Path, told: Path, *, rounds: int, under: Sequence[str] = ()) -> subprocess.Popen:
    root = Path(__file__).parents[1]
    with told.open("w") as output:
        return subprocess.Popen(
            [*under, sys.executable, "-c", WORKER, str(library), str(rounds)],
            env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"},
            stdout=output,
        )


def broken_promises(folder: Path, told: Path, *, others_delete: bool = False) -> list[str]:
    """Open the library as after a crash and say what of the announcements does not hold."""
    lines = [line.split() for line in told.read_text().splitlines()]
    ids: dict[str, set[str]] = {"add": set(), "favourite": set(), "deleting": set()}
    ids["deleted"] = set()
    for word, *named in lines:
        ids.setdefault(word, set()).update(named)
    library = Library(folder)
    entries = {entry.id: entry for entry in library.search(limit=10_000).entries}
    broken = [f"{each} is gone" for each in ids["add"] - ids["deleting"] - entries.keys()]
    broken += [f"{each} came back" for each in ids["deleted"] & entries.keys()]
    favourites = {entry.id for entry in entries.values() if entry.favourite}
    broken += [f"{each} is no favourite" for each in ids["favourite"] - favourites]
    for entry in entries.values():
        png.read_checked(entry.path)
    library.check(repair=True)  # A picture that was on its way may have its file alone.
    library.empty_trash()
    found = library.check()
    broken += [] if found.is_clean or others_delete else [str(found)]
    return broken


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is not on Windows")
@pytest.mark.parametrize("num_writers", [pytest.param(1, marks=pytest.mark.sweep), 2])
def test_kill_9_loses_nothing_announced(tmp_path: Path, num_writers: int) -> None:
    """Killed at random moments of adding, marking and deleting, by one process or two at once."""
    chance = random.Random(num_writers)  # noqa: S311 - moments, not secrets
    num_told = 0
    for kill in range(5):
        told = [tmp_path / f"told-{kill}-{number}" for number in range(num_writers)]
        workers = [work(tmp_path / "library", each, rounds=10_000) for each in told]
        while not all("open" in each.read_text() for each in told):
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.4))
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        assert [worker.wait() for worker in workers] == [-signal.SIGKILL] * num_writers
        for each in told:
            assert broken_promises(tmp_path / "library", each) == []
            num_told += each.read_text().count("\n") - 1
    assert num_told > 0


FAULTS = ("signal=KILL", "error=EIO", "error=ENOSPC")
CALLS = [
    *(("fsync", when) for when in (2, 5, 7, 9, 12, 16, 20)),
    *(("fdatasync", when) for when in (1, 2, 4)),
    *(("pwrite64", when) for when in (1, 3, 8, 15, 30, 40)),
    *(("rename", when) for when in (1, 4, 5)),
    *(("unlink", when) for when in (1, 2, 3, 5)),
    *(("mkdir", when) for when in (1, 3, 5)),
]
ALWAYS = ("0", "5", "8", "12", "18", "24")
"""One of each two calls and faults."""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs `apt-get install strace`")
@pytest.mark.parametrize("number", rest_swept(map(str, range(len(CALLS))), ALWAYS))
def test_a_fault_at_a_system_call_loses_nothing_announced(tmp_path: Path, number: str) -> None:
    """A kill, an I/O error or a full disk at calls spread over all that change a file."""
    call, when = CALLS[int(number)]
    inject = f"inject={call}:{FAULTS[int(number) % 3]}:when={when}"
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]

    work(tmp_path / "library", tmp_path / "told", rounds=2, under=strace).wait()

    assert broken_promises(tmp_path / "library", tmp_path / "told") == []
