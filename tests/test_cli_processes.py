"""The command line in processes of its own: signals, pipes, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import run_python, start_python
from pictures import make_picture

from seedgrid.formats import png
from seedgrid.library import Library

ROOT = Path(__file__).parent.parent

HELD_FAKE = """
import os, sys
from pathlib import Path
import seedgrid.diffusion.deferred
from tests.gates import HeldBackend
gate = Path(os.environ["SEEDGRID_LIBRARY"] + " may go on")
may_go = lambda recipes, number: recipes[0].seed < 4 or gate.exists()
seedgrid.diffusion.deferred.DeferredBackend = lambda: HeldBackend(may_go)
from seedgrid.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""Paints seeds below 4, and the others when a file beside the library lets it."""


@pytest.fixture
def held_grid(library_folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`grid` of eight pictures in a process of its own, held up at the fifth."""
    words = ["grid", "fox", "--seeds", "0-7", "--json", "--size", "64", "--steps", "4"]
    environment = os.environ | {"SEEDGRID_LIBRARY": str(library_folder)}
    process = start_python("-c", HELD_FAKE, *words, env=environment)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_keeps_what_is_finished(
    held_grid: subprocess.Popen[str], library_folder: Path, number: signal.Signals
) -> None:
    """Ctrl+C or a system that shuts down: it stops within a step and says how many are kept."""
    assert held_grid.stdout is not None
    first = [json.loads(held_grid.stdout.readline()) for _ in range(4)]
    held_grid.send_signal(number)
    rest, complaint = held_grid.communicate(timeout=30)
    assert held_grid.returncode == 128 + number
    assert rest == ""
    assert complaint.splitlines()[-1] == "seedgrid: Stopped: 4 of 8 pictures are kept."
    kept = Library(library_folder)
    assert {e.id for e in kept.search().entries} == {row["picture_id"] for row in first}


def test_a_reader_that_leaves_is_no_traceback(
    held_grid: subprocess.Popen[str], library_folder: Path
) -> None:
    """`seedgrid grid … | head -1` ends quietly."""
    assert held_grid.stdout is not None
    held_grid.stdout.readline()
    held_grid.stdout.close()
    library_folder.with_name(f"{library_folder.name} may go on").touch()
    assert held_grid.stderr is not None
    assert "Traceback" not in held_grid.stderr.read()
    assert held_grid.wait(timeout=30) == 1


def test_what_is_redirected_is_utf_8_on_every_system(tmp_path: Path) -> None:
    """Windows would write other bytes, and not every word can be written in them."""
    file = tmp_path / "fox.png"
    file.write_bytes(png.encode(make_picture(prompt="一只狐狸")))
    windows = os.environ | {"PYTHONIOENCODING": "cp1252"}
    said = run_python("-m", "seedgrid", "show", file, env=windows).stdout
    assert "一只狐狸" in said
