"""The command line in processes of its own: signals, pipes, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import rows

from seedgrid.library import Library

ROOT = Path(__file__).parent.parent

SLOW_FAKE = """
import sys
import seedgrid.diffusion.deferred
from seedgrid.testing.fake import FakeBackend
seedgrid.diffusion.deferred.DeferredBackend = lambda: FakeBackend(step_delay_s=0.05)
from seedgrid.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def slow_grid(library_folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`grid` of eight pictures in a process of its own, two seconds a batch."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SLOW_FAKE,
            *["grid", "fox", "--seeds", "0-7", "--json", "--size", "64", "--steps", "40"],
        ],
        cwd=ROOT,
        env={**os.environ, "SEEDGRID_LIBRARY": str(library_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_lines_come_as_pictures_are_safe(slow_grid: subprocess.Popen[str]) -> None:
    """The first four lines are there while the second batch is still being painted."""
    assert slow_grid.stdout is not None
    first = [json.loads(slow_grid.stdout.readline()) for _ in range(4)]
    assert slow_grid.poll() is None
    assert all(Path(row["path"]).is_file() for row in first)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_progress_on_a_terminal_leaves_standard_output_alone(library_folder: Path) -> None:
    """With standard error on a terminal there is a bar on it, and all lines go to the pipe."""
    import pty

    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_FAKE, "grid", "fox", "--json", "--size", "64", "--steps", "9"],
        cwd=ROOT,
        env={**os.environ, "SEEDGRID_LIBRARY": str(library_folder), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    output, _ = process.communicate(timeout=60)
    assert [row["seed"] for row in rows(output)] == [0, 1, 2, 3]
    assert b"pictures, steps" in os.read(screen, 100_000)
    os.close(screen)


def test_ctrl_c_keeps_what_is_finished(
    slow_grid: subprocess.Popen[str], library_folder: Path
) -> None:
    """The first Ctrl+C stops within a step, says how many are kept, and exits 130."""
    assert slow_grid.stdout is not None
    first = [json.loads(slow_grid.stdout.readline()) for _ in range(4)]
    time.sleep(0.2)
    slow_grid.send_signal(signal.SIGINT)
    rest, complaint = slow_grid.communicate(timeout=30)
    assert slow_grid.returncode == 130
    assert rest == ""
    assert complaint.splitlines()[-1] == "seedgrid: Stopped: 4 of 8 pictures are kept."
    with Library(library_folder) as kept:
        assert {e.id for e in kept.search().entries} == {row["picture_id"] for row in first}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_sigterm_keeps_what_is_finished(slow_grid: subprocess.Popen[str]) -> None:
    """A system that shuts down stops a grid as Ctrl+C does, with an exit code of its own."""
    assert slow_grid.stdout is not None
    for _ in range(4):
        slow_grid.stdout.readline()
    slow_grid.send_signal(signal.SIGTERM)
    _, complaint = slow_grid.communicate(timeout=30)
    assert slow_grid.returncode == 143
    assert "pictures are kept." in complaint
    assert "Traceback" not in complaint


def test_a_reader_that_leaves_is_no_traceback(slow_grid: subprocess.Popen[str]) -> None:
    """`seedgrid grid … | head -1` ends quietly."""
    assert slow_grid.stdout is not None
    slow_grid.stdout.readline()
    slow_grid.stdout.close()
    assert slow_grid.stderr is not None
    assert "Traceback" not in slow_grid.stderr.read()
    assert slow_grid.wait(timeout=30) == 1
