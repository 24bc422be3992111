"""Accelerators: each is a file that can be deleted, and not one bit depends on any of them."""

from __future__ import annotations

import json
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
import json, os, sys
from pathlib import Path
import diffusers, torch, transformers
from diffusers import StableDiffusionPipeline

def paint(package):
    os.environ["SEEDGRID_CACHE"] = str(Path(package) / "cache")
    sys.path[:0] = [package, sys.argv[1]]
    import seedgrid
    assert Path(seedgrid.__file__).is_relative_to(package)
    seedgrid.tune_process()
    from painting import SilentWatch, PLACEMENT, paint, recipes_for
    from seedgrid.core.picture import pixels_sha256
    from seedgrid.diffusion.deferred import DeferredBackend
    backend = DeferredBackend()
    recipes = recipes_for(backend, Path(sys.argv[2]))
    digests = [pixels_sha256(picture) for _ in range(2) for picture in paint(backend, recipes)]
    holds = backend.probe(recipes[0], PLACEMENT, SilentWatch()).holds
    print(json.dumps([digests, holds]), flush=True)

for package in sys.argv[3:]:
    if (child := os.fork()) == 0:
        paint(package)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, package
"""
"""Each package in a process of its own; what none of them brings is imported before they part."""


@pytest.fixture(scope="module")
def painted(
    request: pytest.FixtureRequest,
    model_folder: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, ...], object]:
    """Four pictures, twice, and a probe: by what was deleted from a copy of the package."""
    packages: dict[tuple[str, ...], Path] = {}
    here = [item for item in request.session.items if item.path == request.path]
    asked = [item.callspec.params["names"] for item in here if hasattr(item, "callspec")]
    for names in ((), *asked):
        packages[names] = tmp_path_factory.mktemp("package")
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "seedgrid", packages[names] / "seedgrid", ignore=skipped)
        for name in names:
            (packages[names] / "seedgrid" / "diffusion" / "accel" / f"{name}.py").unlink()
    command = [sys.executable, "-W", "ignore", "-c", PAINT, ROOT / "tests", model_folder("sd")]
    done = subprocess.run(
        [*command, *packages.values()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(packages, map(json.loads, done.stdout.splitlines()), strict=True))


def test_every_file_is_on_the_list() -> None:
    """What is not on it is never used."""
    folder = Path(accel.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *NAMES}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.parametrize(
    "names",
    [*(pytest.param((name,), marks=pytest.mark.sweep) for name in NAMES), NAMES],
    ids=" ".join,
)
def test_each_can_be_deleted(
    names: tuple[str, ...], painted: dict[tuple[str, ...], object]
) -> None:
    """Without one, and without all, the very pictures are painted and the lock is probed."""
    assert painted[names] == painted[()]
