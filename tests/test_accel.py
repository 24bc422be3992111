"""Accelerators: each is a file that can be deleted, and not one bit depends on any of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seedgrid.diffusion import accel

ROOT = Path(__file__).parent.parent
NAMES = (*accel.PIPELINE, *accel.PROCESS)

PAINT = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from pathlib import Path
import seedgrid
assert Path(seedgrid.__file__).is_relative_to(sys.argv[1])
seedgrid.tune_process()
from painting import SilentWatch, PLACEMENT, paint, recipes_for
from seedgrid.core.picture import pixels_sha256
from seedgrid.diffusion.deferred import DeferredBackend
backend = DeferredBackend()
recipes = recipes_for(backend, Path(sys.argv[3]))
digests = [pixels_sha256(picture) for _ in range(2) for picture in paint(backend, recipes)]
holds = backend.probe(recipes[0], PLACEMENT, SilentWatch()).holds
print(json.dumps([digests, holds]))
"""


def painted(package: Path, model: Path, cache: Path) -> object:
    """Paint four pictures twice, and probe, with a package in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PAINT, package, ROOT / "tests", model],
        env=os.environ | {"SEEDGRID_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def with_all(
    model_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> object:
    return painted(ROOT, model_folder("sd"), tmp_path_factory.mktemp("cache"))


def test_every_file_is_on_the_list() -> None:
    """What is not on it is never used."""
    folder = Path(accel.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *NAMES}


@pytest.mark.parametrize("names", [*((name,) for name in NAMES), NAMES], ids=" ".join)
def test_each_can_be_deleted(
    names: tuple[str, ...],
    with_all: object,
    model_folder: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """Without one, and without all, the very pictures are painted and the lock is probed."""
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "seedgrid", tmp_path / "seedgrid", ignore=skipped)
    for name in names:
        (tmp_path / "seedgrid" / "diffusion" / "accel" / f"{name}.py").unlink()
    assert painted(tmp_path, model_folder("sd"), tmp_path / "cache") == with_all
