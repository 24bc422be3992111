"""The README keeps its word: its code runs, its commands exist, its files are there."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from seedgrid.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FRONT, BODY = README.removeprefix("---\n").split("\n---\n", 1)


def _blocks(language: str) -> list[str]:
    """Return what stands between fences of a language, in order."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", BODY, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.mark.parametrize("model", ["fake", pytest.param("bundled", marks=pytest.mark.sweep)])
@pytest.mark.usefixtures("library_folder")
def test_the_python_lines_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, model: str
) -> None:
    """The four lines make a grid, refine a picture, and save one."""
    (code,) = _blocks("python")
    monkeypatch.chdir(tmp_path)
    if model == "fake":
        request.getfixturevalue("fake")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our README's)
    names["studio"].close()
    assert (tmp_path / "labrador.png").read_bytes().startswith(b"\x89PNG")


def test_every_command_of_the_readme_exists() -> None:
    """Each `python -m seedgrid COMMAND` in the README is a command of the program."""
    commands = set(re.findall(r"python -m seedgrid (\w+)", BODY))
    assert {"grid", "refine", "show", "doctor"} <= commands
    for command in sorted(commands):
        assert main([command, "--help"]) == 0, command


def test_every_picture_and_link_to_a_file_is_there() -> None:
    """No picture or relative link of the README is broken."""
    targets = re.findall(r"\]\(([^)#]+)\)", BODY)
    broken = [t for t in targets if not t.startswith("http") and not (ROOT / t).exists()]
    assert not broken


CONTRIBUTING = (ROOT / "docs" / "contributing.md").read_text()


def test_every_path_of_the_contributors_page_is_there() -> None:
    """What looks like a path in it is one: a recipe that names a file that moved is no recipe."""
    quoted = re.findall(r"`([\w./-]+)`", CONTRIBUTING)
    paths = {text for text in quoted if "/" in text or text.endswith((".py", ".json", ".md"))}
    beside = ("", "seedgrid/web/actions", "seedgrid/locales", "seedgrid/diffusion")
    examples = {"de.json"}
    missing = {
        path
        for path in paths - examples
        if not any((ROOT / folder / path).exists() for folder in beside)
    }
    assert not missing
    assert len(paths) > 40


def test_every_test_command_of_the_contributors_page_is_there() -> None:
    """Each file that pytest or python is given exists."""
    named = re.findall(r"(?:pytest|python) ((?:tests[\w./]* ?)+)", CONTRIBUTING)
    files = {file for line in named for file in line.split()}
    assert {"tests/browser", "tests/test_lock.py"} <= files
    assert all((ROOT / file).exists() for file in files)


def test_the_contributors_page_knows_every_room() -> None:
    """Its map has a line for each folder of the package."""
    rooms = {path.name for path in (ROOT / "seedgrid").iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(re.findall(r"^\| `seedgrid/(\w+)/`", CONTRIBUTING, re.MULTILINE))


def test_the_space_front_matter_fits_the_requirements() -> None:
    """The Space installs the gradio that the requirements pin, and runs app.py."""
    keys = dict(line.split(": ", 1) for line in FRONT.splitlines())
    pins = (ROOT / "requirements.txt").read_text()
    assert f"gradio=={keys['sdk_version']}\n" in pins
    assert keys["app_file"] == "app.py"
    assert len(keys["short_description"]) <= 60
    assert keys["license"] == "apache-2.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = SpecifierSet(project["requires-python"])
    assert keys["python_version"].strip('"') in allowed
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in allowed


def test_each_dependency_has_a_range_and_a_pin() -> None:
    """What pyproject.toml asks for, requirements.txt pins, and nothing else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = {re.split(r"[<>=]", item)[0] for item in project["dependencies"]}
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = {re.split(r"[<>=]", line)[0] for line in lines if line and not line.startswith("#")}
    assert ranges == pins


@pytest.mark.parametrize(
    "page",
    ["README.md", "CHANGELOG.md"]
    + [f"docs/{name}.md" for name in ("cluster", "contributing", "operations", "performance")],
)
def test_whoever_reads_of_a_gpu_reads_at_once_that_none_was_tried(page: str) -> None:
    """The first paragraph of a page that claims anything of a GPU says so."""
    text = re.sub(r"\bno GPU|^#.*", "", (ROOT / page).read_text(), flags=re.MULTILINE)
    claims = re.split(r"\n\n|\n(?=- )", text)
    first = " ".join(next(each for each in claims if re.search("GPU|CUDA", each)).split())
    assert re.search("(never|not been|not yet) run on (a GPU|one)", first, re.IGNORECASE), first


def test_no_line_of_a_document_is_longer_than_120_characters() -> None:
    """A document is read in an editor as well; tables, code and addresses may be longer."""
    too_long = []
    pages = [path for path in ROOT.rglob("*.md") if not {".git", ".venv"} & set(path.parts)]
    for path in pages:
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        too_long += [
            f"{path.relative_to(ROOT)}: {line[:60]}"
            for line in text.splitlines()
            if len(line) > 120 and not re.match(r"\s*(\||!\[)|.*https?://\S{40,}", line)
        ]
    assert len(pages) > 10
    assert not too_long
