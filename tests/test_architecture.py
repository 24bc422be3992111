"""The rooms and the one way imports point (docs: design), read from the source, not from memory."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])

# A room may import rooms with a lower number, and its own.
LAYERS = {
    "errors": 0,
    "seeds": 1,
    "recipe": 1,
    "variations": 1,
    "request": 2,
    "picture": 2,
    "files": 2,
    "png": 3,
    "library": 4,
    "events": 5,
    "backend": 6,
    "engine": 7,
    "plan": 7,
    "studio": 8,
    "verify": 8,
    "cli": 10,
    "ui": 10,
    "app": 11,
}

FOREIGN_ROOMS = {
    "gradio": ("seedgrid/ui/", "app.py"),
    "torch": ("seedgrid/backend/",),
    "diffusers": ("seedgrid/backend/",),
    "transformers": ("seedgrid/backend/",),
}


def _imports(path: Path) -> set[str]:
    """Return every module that a file imports, at the top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "seedgrid" and len(parts) > 1 else parts[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    """A module imports only rooms below its own."""
    own = _room(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for module in _imports(path):
        room = _room(module)
        if module.startswith("seedgrid.") and room != own and own in LAYERS and room in LAYERS:
            assert LAYERS[room] <= LAYERS[own], f"{path.name} must not import {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_foreign_libraries_stay_in_their_rooms(path: Path) -> None:
    """Only ui/ and app.py know gradio; only backend/ knows torch and diffusers."""
    place = str(path.relative_to(ROOT))
    for module in _imports(path):
        rooms = FOREIGN_ROOMS.get(module.split(".")[0])
        assert rooms is None or place.startswith(rooms), f"{place} must not import {module}"


@pytest.mark.parametrize("module", ["seedgrid", "seedgrid.cli", "seedgrid.library", "app"])
def test_importing_needs_no_torch(module: str) -> None:
    """The package, the command line and the page open without torch or diffusers."""
    code = (
        f"import sys, {module}; "
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
    places = [ROOT / "training", ROOT / "benchmarks", ROOT / "seedgrid"]
    files = [path for place in places for path in place.rglob("*.py")] + [ROOT / "app.py"]
    guilty = [path.name for path in files if words in path.read_text()]
    assert not guilty, f"{words!r} in {guilty}: {FORBIDDEN[words]}"
