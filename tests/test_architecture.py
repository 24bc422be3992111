"""The rooms and the one way imports point, read from the source, not from memory."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])
TOOLS = sorted((ROOT / "tools").rglob("*.py"))

ORDER = (
    "locales",
    "core",
    "storage",
    "formats",
    "models",
    "portable",
    "diffusion",
    "testing",
    "engine",
    "library",
    "export",
    "verify",
    "studio",
    "web",
    "cli",
    "app",
)
"""The rooms, from the bottom up: a room may import those before it, and itself."""

FOREIGN_ROOMS = {
    "gradio": ("seedgrid/web/", "app.py"),
    "torch": ("seedgrid/portable/", "seedgrid/diffusion/", "seedgrid/models/schedulers.py"),
    "diffusers": ("seedgrid/portable/", "seedgrid/diffusion/", "seedgrid/models/schedulers.py"),
    "transformers": ("seedgrid/diffusion/",),
}


def _name(path: Path) -> str:
    """Return a file's module name: `seedgrid/core/seeds.py` is `seedgrid.core.seeds`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): path for path in (*SOURCES, *TOOLS)}


def _imports(path: Path) -> Iterator[str]:
    """Yield what a file imports, at the top or inside a function, as the most exact module."""
    package = _name(path).split(".") if path.stem == "__init__" else _name(path).split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base


def _room(module: str) -> str:
    """Return the room of a module; the package's own front door is `seedgrid`."""
    parts = module.split(".")
    return parts[1] if parts[0] == "seedgrid" and len(parts) > 1 else parts[0]


FRONT_DOORS = {"seedgrid", "seedgrid.__main__"}
"""The package itself looks names up when they are used; `__main__` only starts the command line."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_stands_in_a_known_room(path: Path) -> None:
    """A new folder or file at the top is put into the order first."""
    assert _name(path) in FRONT_DOORS or _room(_name(path)) in ORDER


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    """A module imports only its own room and rooms before it."""
    own = _name(path)
    if own in FRONT_DOORS:
        return
    for module in _imports(path):
        if module.split(".")[0] in ("seedgrid", "app") and module not in FRONT_DOORS:
            upward = ORDER.index(_room(module)) > ORDER.index(_room(own))
            assert not upward, f"{path.relative_to(ROOT)} must not import {module}"


@pytest.mark.parametrize("files", [SOURCES, TOOLS], ids=["seedgrid", "tools"])
def test_no_imports_run_in_a_circle(files: list[Path]) -> None:
    """Following imports never leads back to where one began."""
    waiting = {
        _name(path): {module for module in _imports(path) if module in MODULES} - FRONT_DOORS
        for path in files
        if _name(path) not in FRONT_DOORS
    }
    while ready := {name for name, needs in waiting.items() if not needs & waiting.keys() - {name}}:
        waiting = {name: needs for name, needs in waiting.items() if name not in ready}
    assert not waiting, f"a circle among {sorted(waiting)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_foreign_libraries_stay_in_their_rooms(path: Path) -> None:
    """Only web/ and app.py know gradio; only portable/ and diffusion/ know torch and diffusers."""
    place = str(path.relative_to(ROOT))
    for module in _imports(path):
        rooms = FOREIGN_ROOMS.get(module.split(".")[0])
        assert rooms is None or place.startswith(rooms), f"{place} must not import {module}"


DOORS = [path for path in SOURCES if _room(_name(path)) in ("cli", "web", "app")]
"""What people use; behind all of it is the one Studio."""


@pytest.mark.parametrize("path", DOORS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_studio_starts_anything(path: Path) -> None:
    """Page, API and command line neither plan nor reach for the engine behind the studio."""
    tree = ast.parse(path.read_text())
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "seedgrid.core.plan" not in set(_imports(path))
    assert not reached & {"engine", "submit_task"}


def test_importing_needs_no_torch() -> None:
    """The package, the command line and the page open without torch or diffusers."""
    code = (
        "import sys, seedgrid, seedgrid.cli, seedgrid.library, app, seedgrid.web.launch; "
        "print(','.join(m for m in ('torch', 'diffusers', 'transformers') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


FORBIDDEN = {
    "torch.manual_seed(": "randomness is passed, never global",
    "np.random.seed(": "randomness is passed, never global",
    "random.seed(": "randomness is passed, never global",
    "import pickle": "a picture or a model must never run code",
    "torch.load(": "a picture or a model must never run code",
    "trust_remote_code=True": "a model must never run code",
    "share=True": "nobody's machine is opened to the world by us",
    "sanitize_html=False": "user text never becomes HTML",
}


@pytest.mark.parametrize("words", FORBIDDEN, ids=str)
def test_forbidden_words_appear_nowhere(words: str) -> None:
    """What would break a promise is not written anywhere in the product."""
    files = [*SOURCES, *TOOLS]
    guilty = [path.name for path in files if words in path.read_text()]
    assert not guilty, f"{words!r} in {guilty}: {FORBIDDEN[words]}"
