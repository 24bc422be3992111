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

import httpx
import pytest
from playwright.sync_api import expect
from steps import (
    SLOW_MS,
    SOON_MS,
    OpenPage,
    cell,
    generate,
    ids,
    seeds_shown,
    set_steps,
    variation,
    wait_for_new_round,
)

from seedgrid.core.prompts import GUIDE_PROMPT, GUIDE_SUFFIXES
from seedgrid.formats import png

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.sweep


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


def test_the_installed_package_is_not_the_checkout(
    installed: Path, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    """What was imported is the wheel's, and `python -m seedgrid` is the same program."""
    where = "import seedgrid.storage.files as a; print(a.assets_folder())"
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
    """The page of the installed command, and its address; a real model takes its time."""
    command = [str(installed / "seedgrid"), "ui", "--port", "0"]
    expect.set_options(timeout=SLOW_MS)
    with subprocess.Popen(
        command, cwd=tmp_path, env=elsewhere, stderr=subprocess.PIPE, text=True
    ) as page:
        assert page.stderr is not None
        said = next(line for line in page.stderr if line.startswith("SeedGrid is at"))
        yield said.split()[-1]
        page.terminate()
    expect.set_options(timeout=SOON_MS)


@pytest.mark.usefixtures("shared")  # no browser, no page
def test_the_installed_page_and_command_walk_the_guides_example(
    installed: Path,
    installed_page: str,
    open_page: OpenPage,
    tmp_path: Path,
    elsewhere: dict[str, str],
) -> None:
    """Generate, pick the third, refine, walk back, verify: on real weights, by page and command.

    Scripts, styles, words and the model are all in the wheel: no checkout, no download.
    """
    page = open_page(at=installed_page)
    page.set_default_timeout(SLOW_MS)
    set_steps(page, 2)
    first = generate(page)
    assert seeds_shown(page) == ["0", "1", "2", "3"]
    cell(page, 2).click()
    for number, suffix in enumerate(GUIDE_SUFFIXES, start=1):
        variation(page, number).fill(suffix)
    page.click("#sg-refine")
    wait_for_new_round(page, first)
    source = cell(page, 1).locator("img").get_attribute("src")
    data = httpx.get(f"{installed_page}{source}").content
    record, pixels = png.read_checked(data)
    assert record.recipe.prompt == GUIDE_PROMPT + GUIDE_SUFFIXES[1]
    assert (record.recipe.seed, record.lineage.parent_id) == (2, first[2])
    assert pixels.std() > 0
    page.click("#sg-back")
    expect(cell(page, 2)).to_have_attribute("aria-selected", "true")
    assert ids(page) == first
    page.click("#sg-more summary")
    page.click("#sg-verify")
    expect(page.locator("#sg-verdict [data-verdict='identical']")).to_be_visible()
    # The probe came before it, so the next card knows of the lock.
    cell(page, 0).click()
    expect(page.locator("#sg-picked .sg-badge")).to_have_attribute("data-lock", "tested")
    (tmp_path / "mine.png").write_bytes(data)
    small = ["--vary", ", artsy", "--out", str(tmp_path / "out")]
    (child,) = _lines(installed, tmp_path, elsewhere, "refine", str(tmp_path / "mine.png"), *small)
    assert child["seed"] == 2
    paths = [str(tmp_path / "mine.png"), str(child["path"])]
    verdicts = _lines(installed, tmp_path, elsewhere, "verify", *paths)
    assert [row["verdict"] for row in verdicts] == ["identical", "identical"]
