"""Compiled denoisers: which are here, and making one in a process of its own. Needs no torch.

A denoiser is compiled ahead of time (torch's AOTInductor, a C++ compiler) for one model, size,
width and number format on one kind of processor. That takes about a minute and is kept in the
cache folder; loading it takes a second. The pixels are others than without, so the recipe says so.

    compile_denoiser(recipe, Placement())
    is_compiled(recipe, Placement())
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from seedgrid.core.errors import CompileError, RunCancelled, SeedGridError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.worker.child import LIMIT_NAMES, child_environment, last_words, write_work
from seedgrid.storage.cache import cache_folder
from seedgrid.storage.files import make_folder, refusals

MAX_KEPT: Final = 4
"""Each is as large as the denoiser's weights; the one that was not used longest goes first."""

PACKAGE_NAME: Final = "denoiser.pt2"
UNFINISHED: Final = "making-"
"""How folders begin that are needed for a moment; what is left of one goes an hour later."""

_LOOK_S: Final = 0.2
_LEFT_S: Final = 3600.0
_IDLE: Final = "--idle"
_CPU_INFO: Final = Path("/proc/cpuinfo")
# What the compiled code does not depend on: it makes one step, whatever is said around it.
_FREE: Final = ("num_inference_steps", "determinism", "guidance_scale", "compiled")


@cache
def compiler() -> str:
    """Return the first line of what the C++ compiler says of itself; empty when there is none."""
    name = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(name) is None:
        return ""
    said = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 (torch runs the same)
    return said.stdout.partition("\n")[0].strip()


def package_path(recipe: Recipe, placement: Placement) -> Path:
    """Say where the compiled denoiser for recipes like this one is, or would be."""
    shared = json.loads(recipe.batch_key)
    settings = {name: value for name, value in shared.items() if name not in _FREE}
    settings |= {
        "model": recipe.model.weights_sha256,
        "has_guidance": recipe.guidance_scale > 1,
        "placement": [placement.channels_last, placement.attention],
        "compiler": compiler(),
        "processor": _processor(),
        "libraries": _libraries(),
        "limits": {name: os.environ[name] for name in LIMIT_NAMES if name in os.environ},
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "compiled" / f"{digest}.pt2"


def is_compiled(recipe: Recipe, placement: Placement) -> bool:
    """Tell whether the denoiser for recipes like this one is there."""
    return package_path(recipe, placement).is_file()


def compile_denoiser(
    recipe: Recipe,
    placement: Placement,
    *,
    is_unwanted: Callable[[], bool] = lambda: False,
    is_idle: bool = False,
) -> Path:
    """Compile the denoiser for recipes like this one, unless it is there; about a minute.

    Args:
        recipe: Its words and steps do not matter.
        placement: As for `Backend.paint`; its device must be the processor.
        is_unwanted: Asked five times a second; when it says yes the work is given up.
        is_idle: Compute only when nobody else does.

    Returns:
        The package, to load with torch.

    Raises:
        CompileError: `compiler_missing`, or `compile_failed` with the last thing that was said.
        RunCancelled: It was unwanted.
        LibraryError: The cache folder refuses.
    """
    path = package_path(recipe, placement)
    if path.is_file():
        with contextlib.suppress(OSError):
            os.utime(path)
        return path
    if not compiler():
        raise CompileError("compiler_missing")
    make_folder(path.parent)
    with _alone(path, is_unwanted):
        if not path.is_file():
            _compile(recipe, placement, path, is_unwanted, is_idle=is_idle)
            _forget_old(path.parent)
    return path


class AheadOfTime:
    """Compiles in the background, one after the other, while nobody else computes."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._guard = threading.Lock()
        self._turn = threading.Lock()
        self._tried: set[Path] = set()
        self._threads: list[threading.Thread] = []

    def begin(self, recipe: Recipe, placement: Placement) -> None:
        """Compile for recipes like this one, once; returns at once.

        A machine without a compiler, or a model that cannot be compiled, paints on without.
        """
        path = package_path(recipe, placement)
        with self._guard:
            if path in self._tried or not compiler() or self._closed.is_set():
                return
            self._tried.add(path)
            thread = threading.Thread(
                target=self._work, args=(recipe, placement), name="seedgrid-compiling", daemon=True
            )
            self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Give up what goes on, and wait until it has ended."""
        with self._guard:
            self._closed.set()
        for thread in self._threads:
            thread.join()

    def _work(self, recipe: Recipe, placement: Placement) -> None:
        # Nobody asked for it: who does is told why it cannot be.
        with self._turn, contextlib.suppress(SeedGridError):
            compile_denoiser(recipe, placement, is_unwanted=self._closed.is_set, is_idle=True)


@contextmanager
def _alone(path: Path, is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Be the only one who makes this package; others wait for it."""
    lock = FileLock(path.with_suffix(".lock"), thread_local=False)
    with refusals(path):
        while True:
            try:
                lock.acquire(timeout=_LOOK_S)
            except Timeout:
                if is_unwanted():
                    raise RunCancelled("run_cancelled") from None
            else:
                break
    try:
        yield
    finally:
        lock.release()


def _compile(
    recipe: Recipe,
    placement: Placement,
    path: Path,
    is_unwanted: Callable[[], bool],
    *,
    is_idle: bool,
) -> None:
    with (
        refusals(path),
        tempfile.TemporaryDirectory(dir=path.parent, prefix=UNFINISHED) as name,
    ):
        folder = Path(name)
        write_work(folder, [recipe], replace(placement, previews=False))
        said = folder / "said.txt"
        idle = [_IDLE] if is_idle else []
        with said.open("w") as output:
            process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-m", "seedgrid.diffusion.accel.compiling", str(folder), *idle],
                env=child_environment() | _own_folders(folder),
                stdout=subprocess.DEVNULL,
                stderr=output,
            )
            try:
                _wait(process, is_unwanted)
            finally:
                _end(process)
        if process.returncode != 0:
            raise CompileError(
                "compile_failed", reason=last_words(said.read_text(errors="replace"))
            )
        (folder / PACKAGE_NAME).replace(path)


def _wait(process: subprocess.Popen[bytes], is_unwanted: Callable[[], bool]) -> None:
    while process.poll() is None:
        if is_unwanted():
            raise RunCancelled("run_cancelled")
        time.sleep(_LOOK_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop it, and the compilers that it started."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):  # It was not yet a group.
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _own_folders(folder: Path) -> dict[str, str]:
    """What torch and the compiler leave behind goes with the folder."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TMPDIR": str(folder)}


def _be_idle() -> None:
    """Give way to everybody; where the system knows no such thing, be as low as can be."""
    if hasattr(os, "nice"):
        os.nice(19)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _forget_old(folder: Path) -> None:
    """Delete what was not used longest, and what a killed process left."""
    for left in folder.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_S:
                shutil.rmtree(left)
    packages = sorted(folder.glob("*.pt2"), key=lambda path: path.stat().st_mtime)
    for old in packages[:-MAX_KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()


@cache
def _libraries() -> tuple[str, ...]:
    return tuple(version(name) for name in ("torch", "diffusers"))


@cache
def _processor() -> str:
    """What the processor can do: code for one need not run on another."""
    if not _CPU_INFO.is_file():
        return " ".join(os.uname()) if hasattr(os, "uname") else sys.platform
    lines = _CPU_INFO.read_text(errors="replace").splitlines()
    names = ("model name", "flags", "Features")
    return "|".join(next((line for line in lines if line.startswith(n)), "") for n in names)


def _end_with(parent: int) -> None:
    """End when the process that started this one is gone: nobody waits for the package."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _main(folder: Path, *, is_idle: bool) -> int:
    """Be the child."""
    if os.name == "posix":
        # A group, so that the compilers end with it. No session of its own: Linux shares the
        # processor between sessions first, and being idle would count within this one only.
        os.setpgid(0, 0)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if is_idle:
        _be_idle()
    from seedgrid.diffusion.accel.denoiser import make_package

    try:
        make_package(folder)
    except SeedGridError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), is_idle=_IDLE in sys.argv[2:]))
