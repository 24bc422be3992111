"""SeedGrid as pip installs it: a wheel in a new environment, far from the checkout.

The libraries are those of this environment, lent by a path file; SeedGrid itself is only there as
the wheel that was built from the source archive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from steps import OpenPage, generate, refine, set_steps

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the archive, the wheel from it, and install that; return the environment's programs."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python"]
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    programs = environment / "bin"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    lent = environment / "lib" / version / "site-packages" / "lent.pth"
    lent.write_text(f"{sysconfig.get_path('purelib')}\n")
    install = ["install", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    (archive,) = folder.glob("*.tar.gz")
    subprocess.run([*pip, str(programs / "python"), *install, str(archive)], check=True)
    return programs


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """An environment that knows nothing of the checkout, with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"SEEDGRID_LIBRARY": str(tmp_path / "library"), "HOME": str(tmp_path)}


def _lines(
    programs: Path, folder: Path, environment: dict[str, str], *words: str
) -> list[dict[str, object]]:
    done = subprocess.run(
        [str(programs / "seedgrid"), *words, "--json"],
        cwd=folder, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_installed_command_paints_refines_and_verifies(
    installed: Path, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    """The wheel brings the bundled model: no checkout, no download."""
    small = ["--steps", "1", "--size", "64"]
    out = str(tmp_path / "out")
    words = ["grid", "a red fox", "--seeds", "0", *small, "--out", out]
    (first,) = _lines(installed, tmp_path, elsewhere, *words)
    (second,) = _lines(
        installed, tmp_path, elsewhere,
        "refine", str(first["path"]), "--vary", ", artsy", "--out", out,
    )  # fmt: skip
    assert second["seed"] == first["seed"]
    verdicts = _lines(installed, tmp_path, elsewhere, "verify", out)
    assert [row["verdict"] for row in verdicts] == ["identical", "identical"]


def test_the_installed_package_is_not_the_checkout(
    installed: Path, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    """What was imported is the wheel's, and `python -m seedgrid` is the same program."""
    where = "import seedgrid.storage.assets as a; print(a.assets_folder())"
    python = str(installed / "python")
    done = subprocess.run(
        [python, "-c", where], cwd=tmp_path, env=elsewhere, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(installed.parent)
    subprocess.run(
        [python, "-m", "seedgrid", "--help"], cwd=tmp_path, env=elsewhere, check=True,
        capture_output=True,
    )  # fmt: skip


@pytest.fixture
def installed_page(installed: Path, tmp_path: Path, elsewhere: dict[str, str]) -> Iterator[str]:
    """The page of the installed command, and its address."""
    command = [str(installed / "seedgrid"), "ui", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=elsewhere, stderr=subprocess.PIPE, text=True
    ) as page:
        assert page.stderr is not None
        said = next(line for line in page.stderr if line.startswith("SeedGrid is at"))
        yield said.split()[-1]
        page.terminate()


def test_the_installed_page_paints_and_refines(installed_page: str, open_page: OpenPage) -> None:
    """Scripts, styles, words and the model are all in the wheel."""
    page = open_page(at=installed_page)
    set_steps(page, 1)
    generate(page)
    refine(page, 1)
