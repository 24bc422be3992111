"""Ctrl+C and SIGTERM: the first stops and keeps what is finished, the second ends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import run_python, start_python

from seedgrid.library import Library

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

PAGE = """
import sys
from seedgrid.testing.fake import FakeBackend
from seedgrid.web import launch
class Hanging(FakeBackend):
    def prepare(self, recipe, placement, watch=None):
        import threading
        print("hangs", flush=True)
        threading.Event().wait()
class Slow(FakeBackend):
    def prepare(self, recipe, placement, watch=None):
        print("begins", flush=True)
        return super().prepare(recipe, placement)
def ready(studio):
    studio.start_grid(studio_request())
def studio_request():
    from seedgrid.core.request import Request
    return Request(prompt="fox", seeds=tuple(range(40)), num_inference_steps=9)
launch.warm = ready
backend = Hanging() if sys.argv[1] == "hang" else Slow(step_delay_s=0.05)
launch.main(library=sys.argv[2], port=0, backend=backend)
"""


AT_IMPORT = """
import atexit, importlib.abc, os, runpy, sys
wanted, number = sys.argv.pop(1), int(sys.argv.pop(1))
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
if wanted == "the end":
    atexit.register(os.kill, os.getpid(), number)
runpy.run_module("seedgrid", run_name="__main__", alter_sys=True)
"""
"""Sends itself a signal when something is imported, or when all is done."""

STUCK = """
import sys, threading
import seedgrid.diffusion.deferred
from seedgrid.testing.fake import FakeBackend
class Stuck(FakeBackend):
    def prepare(self, recipe, placement, watch=None):
        print("stuck", flush=True)
        threading.Event().wait()
seedgrid.diffusion.deferred.DeferredBackend = Stuck
from seedgrid.cli import main
from seedgrid.core.process import leave
leave(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("seedgrid.cli", ["--version"]),
        ("seedgrid.locales", ["--version"]),
        ("gradio.blocks", ["ui", "--port", "0"]),
        ("the end", ["--version"]),
    ],
)
def test_a_signal_while_it_starts_or_ends_is_no_traceback(
    where: str, arguments: list[str], number: signal.Signals, tmp_path: Path
) -> None:
    """Ctrl+C a second after `seedgrid ui` once printed what Gradio was importing."""
    environment = os.environ | {"SEEDGRID_LIBRARY": str(tmp_path / "art")}
    words = ("-c", AT_IMPORT, where, str(int(number)), *arguments)
    done = run_python(*words, code=128 + number, env=environment)
    assert done.stderr in ("", "seedgrid: Stopped.\n")


def test_a_second_signal_waits_for_no_model_that_is_being_loaded(tmp_path: Path) -> None:
    """The first one asks the model to stop; one that does not come back is left by the second."""
    with start_python("-c", STUCK, "grid", "fox", "--library", tmp_path) as grid:
        assert grid.stdout is not None
        assert grid.stdout.readline() == "stuck\n"
        grid.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            grid.wait(timeout=1)
        grid.send_signal(signal.SIGTERM)
        _, errors = grid.communicate(timeout=60)
    assert grid.returncode == 143
    assert "Traceback" not in errors


ELSEWHERE = """
import os, signal, sys, threading
from seedgrid.core.process import first_stops
from seedgrid.core.request import Request
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
class Stuck(FakeBackend):
    def prepare(self, recipe, placement, watch=None):
        threading.Timer(1, send).start()
        threading.Event().wait()
def send():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
studio = Studio("fake", sys.argv[1], backend=Stuck())
with first_stops(lambda: os._exit(7)):
    studio.start_grid(Request(prompt="fox")).result()
"""


def test_a_signal_that_another_thread_receives_is_heard_while_waiting(tmp_path: Path) -> None:
    """It interrupts no wait of the main thread, so the wait has to look up now and then."""
    run_python("-c", ELSEWHERE, tmp_path / "art", code=7)


def start(kind: str, library: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"SEEDGRID_MODEL": "bundled"}
    return start_python("-W", "ignore", "-c", PAGE, kind, library, env=environment)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.sweep)]
)
def test_the_page_stops_within_a_step_and_says_so(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM once killed it in the middle of a picture, without a word."""
    with start("slow", tmp_path / "art") as page:
        assert page.stdout is not None
        assert page.stdout.readline() == "begins\n"
        page.send_signal(number)
        _, said = page.communicate(timeout=60)
    assert "Stopping; what is finished is kept." in said
    assert "Traceback" not in said
    assert page.returncode == 0
    assert Library(tmp_path / "art").notices == ()


def test_the_second_signal_ends_a_page_whose_backend_hangs(tmp_path: Path) -> None:
    with start("hang", tmp_path / "art") as page:
        assert page.stdout is not None
        assert page.stderr is not None
        assert page.stdout.readline() == "hangs\n"
        page.send_signal(signal.SIGTERM)
        while "Stopping" not in page.stderr.readline():
            pass
        page.send_signal(signal.SIGINT)
        assert page.wait(timeout=20) == 128 + signal.SIGINT
