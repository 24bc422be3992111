"""SeedGrid: a picture is a pure function of its recipe.

    from seedgrid import Studio

    studio = Studio()
    grid = studio.grid("Labrador in the style of Vermeer", seeds="0-3")
    finals = studio.refine(grid[2])
    finals[3].save("labrador.png")

Importing this package imports no large library: each public name is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seedgrid.core.errors import SeedGridError
    from seedgrid.core.picture import Entry
    from seedgrid.core.recipe import Passport, Recipe
    from seedgrid.core.request import Request
    from seedgrid.diffusion.process import tune_process
    from seedgrid.engine import Engine
    from seedgrid.studio import Studio
    from seedgrid.studio.resolving import Pictures

__version__ = "0.1.0"

__all__ = [
    "Engine",
    "Entry",
    "Passport",
    "Pictures",
    "Recipe",
    "Request",
    "SeedGridError",
    "Studio",
    "__version__",
    "tune_process",
]

_MODULES = {
    "Engine": "engine",
    "Entry": "core.picture",
    "Passport": "core.recipe",
    "Pictures": "studio.resolving",
    "Recipe": "core.recipe",
    "Request": "core.request",
    "SeedGridError": "core.errors",
    "Studio": "studio",
    "tune_process": "diffusion.process",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module attribute may be anything)
    """Import a public name at its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'seedgrid' has no attribute {name!r}")
    return getattr(import_module(f"seedgrid.{_MODULES[name]}"), name)
