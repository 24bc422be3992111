"""Ctrl+C and SIGTERM: the first stops and keeps what is finished, the second ends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seedgrid.library import Library

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

PAGE = """
import sys
from seedgrid.testing.fake import FakeBackend
from seedgrid.web import launch
launch.warm = lambda studio: None
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


def start(kind: str, library: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PAGE, kind, str(library)],
        cwd=ROOT,
        env=os.environ | {"SEEDGRID_MODEL": "bundled"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    with Library(tmp_path / "art") as library:
        assert library.notices == ()


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
