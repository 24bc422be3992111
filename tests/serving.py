"""The page in a process of its own, as users start it; with the fake backend unless asked not to.

    with serve(tmp_path, step_delay_s=0.05) as address: ...

A prompt with the word "broken" makes the fake backend fail at step 2, and the word "spoilt" leaves
a batch's last such picture without numbers. One with the word "held"
waits before its first step, and a model with `load_held` to be loaded, until its `Gate` opens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parent.parent
TRIM_S = "SEEDGRID_TEST_TRIM_S"
"""So often, in seconds, the page gives back what it has freed: what it holds can be seen then."""


@dataclass(frozen=True)
class Gate:
    """What holds a run of the page on this library up; a file beside it opens it.

    Tests that need a run to go on for a while hold it up: how long a step takes is luck.
    """

    library: Path

    @property
    def is_open(self) -> bool:
        return self._path.exists()

    def open(self) -> None:
        self._path.touch()

    def shut(self) -> None:
        for path in self.library.parent.glob(f"{self._path.name}*"):
            path.unlink()

    def let(self, step: int) -> None:
        """Open it for one step, numbered from 1."""
        self._step_path(step).touch()

    def lets(self, step: int) -> bool:
        return self.is_open or self._step_path(step).exists()

    @property
    def _path(self) -> Path:
        return self.library.with_name(f"{self.library.name} may go on")

    def _step_path(self, step: int) -> Path:
        return self._path.with_name(f"{self._path.name}, step {step}")


@contextlib.contextmanager
def serve(library: Path, **options: Any) -> Iterator[str]:
    """Start the page as `serve_process` does, and give its address; stop it afterwards."""
    with serve_process(library, **options) as (address, _):
        yield address


@contextlib.contextmanager
def listening() -> Iterator[tuple[str, list[bytes]]]:
    """A server that notes who asks it and hangs up, and its address."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                heard.append(b"somebody")
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard


@contextlib.contextmanager
def serve_process(
    library: Path,
    *,
    step_delay_s: float = 0.0,
    load_held: bool = False,
    real: bool = False,
    port: int = 0,
    public: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[tuple[str, int]]:
    """Start the page, and give its address and the number of its process; stop it afterwards.

    Args:
        library: Where the pictures go.
        step_delay_s: How long the fake backend takes for a step.
        load_held: Whether it is loaded only when its gate is opened.
        real: Whether the bundled model paints.
        port: 0 takes a free one.
        public: Makes it a page for strangers, with these variables.
        log: Where what it says after its start is written.
    """
    environment = os.environ | {"TMPDIR": str(library.parent)}  # it tidies up nothing
    environment |= {"SEEDGRID_PUBLIC": "1", **public} if public is not None else {}
    command = [sys.executable, "-W", "ignore", __file__]
    command += [str(library), str(step_delay_s), "real" if real else "fake"]
    command.append("held" if load_held else "at once")
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
            rest = process.stderr if log is None else _copied(process.stderr, log)
            drain = threading.Thread(target=lines.extend, args=(rest,), daemon=True)
            drain.start()
            address = line.removeprefix("SeedGrid is at ").strip()
            yield address, process.pid
        finally:
            process.kill()  # how it stops by itself is test_interrupts.py's
            process.wait()


def _copied(said: Iterable[str], log: Path) -> Iterator[str]:
    with log.open("w") as file:
        for line in said:
            file.write(line)
            file.flush()
            yield line


@contextlib.contextmanager
def serve_space(python: str = sys.executable, folder: Path = ROOT) -> Iterator[str]:
    """Start `app.py` as a Hugging Face Space does, on the bundled model, and give its address.

    Args:
        python: Of the environment to start it in.
        folder: Where the repository's files are.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"SPACE_ID": "someone/seedgrid", "GRADIO_SERVER_PORT": str(port)}
    command = [python, "-W", "ignore", "app.py"]
    address = f"http://127.0.0.1:{port}/"
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while not _answers(address):
                assert process.poll() is None, "the Space did not start"
                time.sleep(0.1)
            yield address
        finally:
            process.kill()  # how it stops by itself is test_interrupts.py's
            process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.TransportError:
        return False


def _trim_for_ever(every_s: float) -> None:
    from seedgrid.core.process import trim_heap

    while True:
        time.sleep(every_s)
        trim_heap()


def _main(library: str, step_delay_s: str, kind: str, load: str, port: str) -> None:
    sys.path.insert(0, str(ROOT))
    from gates import HeldBackend

    from seedgrid.core.picture import Pixels
    from seedgrid.core.recipe import Passport, Recipe
    from seedgrid.diffusion.backend import LoadWatch, Placement, Watch
    from seedgrid.testing.fake import Fault
    from seedgrid.web import launch
    from seedgrid.web.actions import painting

    painting._AT_ONCE_S = 1.0  # A busy machine looks for known pictures for longer.
    gate = Gate(Path(library))

    class Brittle(HeldBackend):
        def prepare(
            self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
        ) -> Passport:
            while load == "held" and not gate.is_open:
                time.sleep(0.02)
            return super().prepare(recipe, placement, watch)

        def paint(
            self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
        ) -> tuple[Pixels, ...]:
            self.calls.clear()  # Nobody looks at them here, and a soak is long.
            spoilt = [place for place, each in enumerate(recipes) if "spoilt" in each.prompt]
            broken = Fault(step=2) if "broken" in recipes[0].prompt else None
            self.faults.append(Fault(cell=spoilt[-1]) if spoilt else broken)
            return super().paint(recipes, placement, watch)

    def may_go(recipes: Sequence[Recipe], number: int) -> bool:
        return gate.lets(number) or not any("held" in recipe.prompt for recipe in recipes)

    if trim_s := float(os.environ.get(TRIM_S, "0")):
        threading.Thread(target=_trim_for_ever, args=(trim_s,), daemon=True).start()
    fake = Brittle(may_go, step_delay_s=float(step_delay_s))
    launch.main(library=library, port=int(port), backend=None if kind == "real" else fake)


if __name__ == "__main__":
    _main(*sys.argv[1:])
