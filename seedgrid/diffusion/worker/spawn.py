"""Paint in a new process, whose libraries start under other instruction limits. Needs no torch.

The limits are environment variables that torch, oneDNN and MKL read once, at their start; so a
picture made under other limits can only be made again in another process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion import instruction_limits
from seedgrid.diffusion.backend import Outcome, Placement
from seedgrid.diffusion.worker.job import read_result, write_job

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[3]


def paint_in_child(
    recipes: Sequence[Recipe], placement: Placement, limits: Mapping[str, str]
) -> tuple[tuple[Outcome, ...], Passport]:
    """Paint one batch in a process of its own.

    Args:
        recipes: As for `Backend.paint`.
        placement: As for `Backend.paint`.
        limits: The only instruction limits that the child has; what is none is left out.

    Raises:
        RunError: `child_failed` with the last thing it said.
    """
    names = instruction_limits.NAMES
    unlimited = {name: value for name, value in os.environ.items() if name not in names}
    path = os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="seedgrid-") as folder:
        write_job(Path(folder), recipes, placement)
        done = subprocess.run(  # noqa: S603 (our own module)
            [sys.executable, "-m", "seedgrid.diffusion.worker", folder],
            env=unlimited | {"PYTHONPATH": path} | instruction_limits.accepted(limits),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last_words = (done.stderr.strip() or "it said nothing").split("\n")[-1]
            raise RunError("child_failed", reason=last_words[:300])
        return read_result(Path(folder))
