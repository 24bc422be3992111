"""The rooms and the one way imports point, read from the source, not from memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import ROOT, run_python

SOURCES = sorted([*(ROOT / "seedgrid").rglob("*.py"), ROOT / "app.py"])
TOOLS = sorted((ROOT / "tools").rglob("*.py"))

ORDER = (
    *("locales", "core", "storage", "formats", "models", "portable", "diffusion", "testing"),
    *("engine", "library", "export", "verify", "studio", "web", "cli", "app"),
)
"""The rooms, from the bottom up: a room may import those before it, and itself."""

FOREIGN_ROOMS = {
    "gradio": ("seedgrid/web/", "app.py"),
    "torch": ("seedgrid/portable/", "seedgrid/diffusion/", "seedgrid/models/schedulers.py"),
    "diffusers": ("seedgrid/portable/", "seedgrid/diffusion/", "seedgrid/models/schedulers.py"),
    "transformers": ("seedgrid/diffusion/",),
}


def _name(path: Path) -> str:
    """Return a file's module name: `seedgrid/core/recipe.py` is `seedgrid.core.recipe`."""
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


def test_every_file_stands_in_a_known_room() -> None:
    """A new folder or file at the top is put into the order first."""
    names = {_name(path) for path in SOURCES} - FRONT_DOORS
    assert {_room(name) for name in names} <= set(ORDER)


def test_imports_point_one_way() -> None:
    """A module imports only its own room and rooms before it."""
    pairs = [(_name(path), module) for path in SOURCES for module in _imports(path)]
    upward = [
        f"{own} imports {module}"
        for own, module in pairs
        if module.split(".")[0] in ("seedgrid", "app")
        and not {own, module} & FRONT_DOORS
        and ORDER.index(_room(module)) > ORDER.index(_room(own))
    ]
    assert not upward


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


def test_foreign_libraries_stay_in_their_rooms() -> None:
    """Only web/ and app.py know gradio; only portable/ and diffusion/ know torch and diffusers."""
    places = [(str(path.relative_to(ROOT)), path) for path in SOURCES]
    astray = [
        f"{place} imports {module}"
        for place, path in places
        for module in _imports(path)
        if not place.startswith(FOREIGN_ROOMS.get(module.split(".")[0], ""))
    ]
    assert not astray


def test_only_the_studio_starts_anything() -> None:
    """Page, API and command line neither plan nor submit to the engine behind the studio."""
    for path in SOURCES:
        if _room(_name(path)) in ("cli", "web", "app"):
            nodes = ast.walk(ast.parse(path.read_text()))
            reached = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            assert "seedgrid.core.plan" not in set(_imports(path)), path
            assert not reached & {"submit", "submit_task"}, path


def test_importing_needs_no_torch() -> None:
    """The package, the command line and the page open without torch or diffusers."""
    code = (
        "import sys, seedgrid, seedgrid.cli, seedgrid.library, app, seedgrid.web.launch; "
        "assert not hasattr(app, 'demo'); "
        "print(','.join(m for m in ('torch', 'diffusers', 'transformers') if m in sys.modules))"
    )
    assert run_python("-c", code).stdout.strip() == ""


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


def test_forbidden_words_appear_nowhere() -> None:
    """What would break a promise is not written anywhere in the product."""
    for path in (*SOURCES, *TOOLS):
        guilty = {words: why for words, why in FORBIDDEN.items() if words in path.read_text()}
        assert not guilty, path
