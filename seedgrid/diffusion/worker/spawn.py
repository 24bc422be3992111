"""Paint in a new process, whose libraries start under other instruction limits. Needs no torch.

The limits are environment variables that torch, oneDNN and MKL read once, at their start; so a
picture made under other limits can only be made again in another process.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from seedgrid.core.errors import RunCancelled, RunError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion import instruction_limits
from seedgrid.diffusion.backend import Outcome, Placement, Watch
from seedgrid.diffusion.worker.job import read_result, write_job

_LOOK_S: Final = 0.2
_MAX_S: Final = 1500.0
"""Before the watchdog takes the thread that waits for one that does not come back."""
_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[3]


def paint_in_child(
    recipes: Sequence[Recipe], placement: Placement, limits: Mapping[str, str], watch: Watch
) -> tuple[tuple[Outcome, ...], Passport]:
    """Paint one batch in a process of its own.

    Args:
        recipes: As for `Backend.paint`.
        placement: As for `Backend.paint`.
        limits: The only instruction limits that the child has; what is none is left out.
        watch: The child ends at once when it is cancelled.

    Raises:
        RunError: `child_failed` with the last thing it said, or when it took too long.
        RunCancelled: `watch.cancelled` became true.
    """
    names = instruction_limits.NAMES
    unlimited = {name: value for name, value in os.environ.items() if name not in names}
    path = os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="seedgrid-") as folder:
        write_job(Path(folder), recipes, placement)
        said = Path(folder) / "said"
        with said.open("w") as stderr:
            status = _run_child(
                [sys.executable, "-m", "seedgrid.diffusion.worker", folder],
                unlimited | {"PYTHONPATH": path} | instruction_limits.accepted(limits),
                stderr,
                watch,
            )
        if status != 0:
            words = said.read_text(errors="replace").strip() or "it said nothing"
            raise RunError("child_failed", reason=words.split("\n")[-1][:300])
        return read_result(Path(folder))


def _run_child(
    command: Sequence[str], environment: Mapping[str, str], stderr: IO[str], watch: Watch
) -> int:
    """Run our own module until it ends, nobody wants it any more, or its time is over."""
    end_s = time.monotonic() + _MAX_S
    with subprocess.Popen(  # noqa: S603 (our own module)
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
    ) as child:
        try:
            while child.poll() is None:
                if watch.cancelled:
                    raise RunCancelled("run_cancelled")
                if time.monotonic() > end_s:
                    raise RunError("child_failed", reason=f"it took {_MAX_S / 60:.0f} minutes")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
        finally:
            child.kill()  # Nothing, where it has ended.
    return child.returncode
