"""The page in a process of its own, as users start it; with the fake backend unless asked not to.

    with serve(tmp_path, step_delay_s=0.05) as address: ...

A prompt with the word "broken" makes the fake backend fail at step 2.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def serve(
    library: Path,
    *,
    step_delay_s: float = 0.0,
    load_delay_s: float = 0.0,
    real: bool = False,
    port: int = 0,
    public: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Start the page and give its address; stop it afterwards.

    Args:
        library: Where the pictures go.
        step_delay_s: How long the fake backend takes for a step.
        load_delay_s: How long it takes to load.
        real: Whether the bundled model paints.
        port: 0 takes a free one.
        public: Makes it a page for strangers, with these variables.
    """
    options = {"step_delay_s": step_delay_s, "load_delay_s": load_delay_s, "real": real}
    with serve_process(library, port=port, public=public, **options) as (address, _):
        yield address


@contextlib.contextmanager
def serve_process(
    library: Path,
    *,
    step_delay_s: float = 0.0,
    load_delay_s: float = 0.0,
    real: bool = False,
    port: int = 0,
    public: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, int]]:
    """Start the page as `serve` does, and give its address and the number of its process."""
    environment = os.environ | ({"SEEDGRID_PUBLIC": "1", **public} if public is not None else {})
    command = [sys.executable, "-W", "ignore", __file__]
    command += [str(library), str(step_delay_s), str(load_delay_s), "real" if real else "fake"]
    command.append(str(port))
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        try:
            for line in process.stderr:
                lines.append(line)
                if line.startswith("SeedGrid is at "):
                    break
            else:
                raise AssertionError("the page did not start:\n" + "".join(lines))
            # Whoever is not listened to is blocked when the pipe is full.
            drain = threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True)
            drain.start()
            yield line.removeprefix("SeedGrid is at ").strip(), process.pid
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def serve_space() -> Iterator[str]:
    """Start `app.py` as a Hugging Face Space does, on the bundled model, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"SPACE_ID": "someone/seedgrid", "GRADIO_SERVER_PORT": str(port)}
    command = [sys.executable, "-W", "ignore", "app.py"]
    address = f"http://127.0.0.1:{port}/"
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while not _answers(address):
                assert process.poll() is None, "the Space did not start"
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.TransportError:
        return False


def _main(library: str, step_delay_s: str, load_delay_s: str, kind: str, port: str) -> None:
    sys.path.insert(0, str(ROOT))
    from seedgrid.core.picture import Pixels
    from seedgrid.core.recipe import Recipe
    from seedgrid.diffusion.backend import Placement, Watch
    from seedgrid.testing.fake import FakeBackend, Fault
    from seedgrid.web import launch

    class Brittle(FakeBackend):
        def paint(
            self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
        ) -> tuple[Pixels, ...]:
            self.faults.append(Fault(step=2) if "broken" in recipes[0].prompt else None)
            return super().paint(recipes, placement, watch)

    fake = Brittle(step_delay_s=float(step_delay_s), load_delay_s=float(load_delay_s))
    launch.main(library=library, port=int(port), backend=None if kind == "real" else fake)


if __name__ == "__main__":
    _main(*sys.argv[1:])
