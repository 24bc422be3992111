"""A fault at every system call that changes a file: killed there, an I/O error, a full disk.

Needs Debian's strace. The worker runs once under a plain trace, which gives the calls on the
library's files; then once for each call and fault.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tools.crash import worker
from tools.crash.journal import Journal, Promises

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "ftruncate",
    "mkdir",
    "mkdirat",
)
FAULTS = ("signal=KILL", "error=EIO", "error=ENOSPC")
_CALL = re.compile(r"^(?:\d+\s+)?(\w+)\(")


def run(
    folder: Path, *, every: int, start: int = 0, only: str = "", careless: bool = False
) -> list[str]:
    """Sweep and return every broken promise.

    Args:
        folder: Empty.
        every: Take every n-th fault only; 1 is all, 3 is one kind of fault at all points.
        start: The first one.
        only: One kind of system call; all of them by default.
        careless: The control: a library that writes rows first and files plainly.
    """
    points = find_points(folder / "plain", careless=careless)
    points = [(call, occurrence) for call, occurrence in points if only in ("", call)]
    chosen = list(itertools.product(points, FAULTS))[start::every]
    broken = []
    for number, ((call, occurrence), fault) in enumerate(chosen):
        place = folder / f"fault-{number}"
        place.mkdir()
        inject = f"inject={call}:{fault}:when={occurrence}"
        found = _run_once(place, ["-e", f"trace={call}", "-e", inject], careless=careless)
        broken += [f"{call} {occurrence} {fault}: {what}" for what in found]
        if number % 100 == 99:
            print(f"{number + 1} faults, {len(broken)} broken promises", flush=True)
        shutil.rmtree(place)
    print(f"{len(points)} points, {len(chosen)} faults, {len(broken)} broken promises")
    return broken


def find_points(place: Path, *, careless: bool = False) -> list[tuple[str, int]]:
    """Run without a fault and return the calls on the library's files: name and occurrence."""
    place.mkdir()
    trace = place / "trace"
    options = ["-y", "-s", "0", "-o", str(trace), "-e", "trace=" + ",".join(CALLS)]
    found = _run_once(place, options, careless=careless)
    if found:
        sys.exit(f"the worker fails without any fault: {found}")
    counts: Counter[str] = Counter()
    points = []
    for line in trace.read_text().splitlines():
        match = _CALL.match(line)
        if match:
            counts[match[1]] += 1
            if str(place / "library") in line:
                points.append((match[1], counts[match[1]]))
    return points


def _run_once(place: Path, strace: list[str], *, careless: bool) -> list[str]:
    library, journal, said = place / "library", place / "journal", place / "said"
    child = _start(library, journal, said, careless=careless)
    os.waitpid(child, os.WUNTRACED)  # It has stopped itself.
    command = ["strace", "-f", "-qq", "-p", str(child), *strace]
    if "-o" not in strace:
        command += ["-o", "/dev/null"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL):
        _wait_for_tracer(child)
        os.kill(child, signal.SIGCONT)
        os.waitpid(child, 0)
    broken = []
    if "Traceback" in said.read_text():
        broken.append(f"an error without a sentence: {said.read_text().splitlines()[-1]}")
    promises = Promises()
    promises.follow(journal)
    broken += promises.broken_by(library)
    if not broken and not careless:
        broken += _still_works(library, promises)
    return broken


def _start(library: Path, journal: Path, said: Path, *, careless: bool) -> int:
    """Start a worker that waits to be traced; a fork, since most of a new one would be imports."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        warnings.simplefilter("error")
        with said.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        if careless:
            worker.be_careless()
        os.kill(os.getpid(), signal.SIGSTOP)
        code = min(worker.once(library, Journal(journal)), 1)
    except BaseException:  # noqa: BLE001 - the outermost edge of a process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait_for_tracer(child: int) -> None:
    status = Path(f"/proc/{child}/status")
    deadline = time.monotonic() + 30
    while "TracerPid:\t0\n" in status.read_text():
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            sys.exit("strace could not attach: it needs the right to trace (root)")
        time.sleep(0.001)
    time.sleep(0.005)  # Until the tracer has set itself up.


def _still_works(library: Path, promises: Promises) -> list[str]:
    from seedgrid.library import Library

    with Library(library) as again:
        again.add(worker.small_picture(9))
    return promises.broken_by(library)
