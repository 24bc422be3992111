"""The Space in an environment made from the repository's own files, and nothing else.

What the front matter and requirements.txt name, and what that needs, is lent from this environment;
a library that only the tests have is not there. The files are those that git tracks. The Python is
this one: a Space's own, named in the front matter, must be one that the package says it works on.
"""

from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from playwright.sync_api import expect
from serving import serve_space
from steps import SLOW_MS, SOON_MS, OpenPage, cell, generate, seeds_shown, set_steps

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.sweep


def _front_matter() -> dict[str, str]:
    _, head, _ = (ROOT / "README.md").read_text().split("---\n", 2)
    pairs = (line.partition(": ") for line in head.splitlines())
    return {name: value.strip('"') for name, _, value in pairs}


def _requirements() -> list[Requirement]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return [*wanted, Requirement(f"gradio=={_front_matter()['sdk_version']}")]


def _needed(wanted: list[Requirement]) -> dict[str, Distribution]:
    """Return what these requirements bring along, as it is installed here."""
    found: dict[str, Distribution] = {}
    left = [(each, extra) for each in wanted for extra in ("", *each.extras)]
    while left:
        each, extra = left.pop()
        key = f"{each.name.lower()}[{extra}]"
        if key in found:
            continue
        try:
            found[key] = distribution(each.name)
        except PackageNotFoundError:
            continue  # Named for another system, without a marker.
        assert each.specifier.contains(found[key].version, prereleases=True), str(each)
        for line in found[key].requires or ():
            more = Requirement(line)
            if more.marker is None or more.marker.evaluate({"extra": extra}):
                left += [(more, name) for name in ("", *more.extras)]
    return found


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Make the environment, copy the files, start the Space; give the Python and the address."""
    folder = tmp_path_factory.mktemp("space")
    venv.create(folder / "environment", with_pip=False)
    (libraries,) = (folder / "environment" / "lib").glob("*/site-packages")
    for each in _needed(_requirements()).values():
        for top in {path.parts[0] for path in each.files or () if path.parts[0] not in ("..", "")}:
            target = libraries / top
            if not target.exists():
                target.symlink_to(Path(str(each.locate_file(top))))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (folder / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "files" / name)
    python = folder / "environment" / "bin" / "python"
    expect.set_options(timeout=SLOW_MS)
    with serve_space(str(python), folder / "files") as address:
        yield python, address
    expect.set_options(timeout=SOON_MS)


def test_the_page_paints_with_what_the_files_name(
    open_page: OpenPage, space: tuple[Path, str]
) -> None:
    """A grid and a pick; the tests' own libraries are not there to help."""
    python, address = space
    missing = subprocess.run(
        [str(python), "-c", "import importlib.util as u; print(u.find_spec('pytest'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert missing.stdout.strip() == "None"
    page = open_page(at=address)
    page.set_default_timeout(SLOW_MS)
    set_steps(page, 2)
    assert len(set(generate(page))) == 4
    assert seeds_shown(page) == ["0", "1", "2", "3"]
    cell(page, 3).click()
    expect(cell(page, 3)).to_have_attribute("aria-selected", "true")
    page.close()  # before its server
