"""Honest pictures to forge, and what a recipe gives: by the backend alone, nothing is verified."""

from __future__ import annotations

from painting import SilentWatch, recipes_for
from pictures import make_lineage

from seedgrid.core.errors import RunError
from seedgrid.core.picture import Picture, Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Placement, placement_of
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.formats import png
from seedgrid.models.shelf import BUNDLED
from tests.forgeries.originals import Original


class Painter:
    """Paints with a model, the bundled one by default.

    Args:
        model: A folder; None is the bundled one.
    """

    def __init__(self, model: str | None = None, backend: DiffusersBackend | None = None) -> None:
        self._model = model or BUNDLED
        self._backend = backend or DiffusersBackend()

    def originals(self, count: int, **settings: object) -> list[Original]:
        """Paint honest pictures of one batch."""
        from pathlib import Path

        recipes = recipes_for(self._backend, Path(self._model), **settings)[:count]
        placement = Placement(threads=1)
        passport = self._backend.prepare(recipes[0], placement)
        painted = self._backend.paint(recipes, placement, SilentWatch())
        return [
            Original(_file(pixels, recipe, passport))
            for pixels, recipe in zip(painted, recipes, strict=True)
            if not isinstance(pixels, RunError)
        ]

    def paint(self, recipe: Recipe, passport: Passport) -> Pixels:
        """Paint one recipe where a passport says.

        Raises:
            SeedGridError: It cannot be painted.
        """
        (pixels,) = self._backend.paint([recipe], placement_of(passport), SilentWatch())
        if isinstance(pixels, RunError):
            raise pixels
        return pixels


def _file(pixels: Pixels, recipe: Recipe, passport: Passport) -> bytes:
    picture = Picture(pixels=pixels, recipe=recipe, passport=passport, lineage=make_lineage())
    return png.encode(picture)
