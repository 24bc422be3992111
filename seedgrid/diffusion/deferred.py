"""DeferredBackend: what paints on this machine; torch is imported when there is work to do.

`card` needs no torch, so what was typed is checked at once, on any thread; the seconds that the
import takes are paid on the engine's own thread. A recipe that names an upscaler is enlarged, all
others are painted with diffusers.

`InstalledBackend` is the same for strangers, who may name what is installed, and no path: a path
would tell what lies on the server's disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seedgrid.core.card import ModelCard
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import LoadWatch, Outcome, Placement, Watch
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.diffusion.process import large_import
from seedgrid.models import registry
from seedgrid.portable import PortableTrial

if TYPE_CHECKING:
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend
    from seedgrid.diffusion.upscaling import EnlargingBackend
from seedgrid.core.errors import ModelError
from seedgrid.core.variables import is_offered
from seedgrid.models.shelf import BUNDLED


class DeferredBackend:
    """See `Backend` for what each method promises."""

    def __init__(self) -> None:
        self._diffusers: DiffusersBackend | None = None
        self._enlarging: EnlargingBackend | None = None

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without loading it and without torch."""
        return registry.card_here(model)

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Import torch, load what a recipe needs, and say under which passport it would run."""
        return self._made_for(recipe).prepare(recipe, placement, watch)

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the model is loaded already."""
        made = self._diffusers if recipe.upscaler is None else self._enlarging
        return made is not None and made.is_ready(recipe, placement)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to W recipes of one `batch_key` in a batch of exactly W cells."""
        return self._made_for(recipes[0]).paint(recipes, placement, watch)

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Tell whether the lock holds for recipes like this one; what is enlarged is alone."""
        return self._painter().probe(recipe, placement, watch) if recipe.upscaler is None else None

    def try_portable(self, recipe: Recipe, placement: Placement) -> PortableTrial:
        """Return what a trial found of portable arithmetic here; remembered by passport."""
        return self._painter().try_portable(recipe, placement)

    def close(self) -> None:
        """Let go of models and memory."""
        for backend in (self._diffusers, self._enlarging):
            if backend is not None:
                backend.close()

    def _made_for(self, recipe: Recipe) -> DiffusersBackend | EnlargingBackend:
        if recipe.upscaler is None:
            return self._painter()
        if self._enlarging is None:
            with large_import():
                from seedgrid.diffusion.upscaling import EnlargingBackend

            self._enlarging = EnlargingBackend(self.close)
        return self._enlarging

    def _painter(self) -> DiffusersBackend:
        if self._diffusers is None:
            with large_import():
                from seedgrid.diffusion.diffusers_backend import DiffusersBackend

            self._diffusers = DiffusersBackend(self.close)
        return self._diffusers


class InstalledBackend(DeferredBackend):
    """See `Backend` for what each method promises."""

    def __init__(self, own: str = BUNDLED) -> None:
        super().__init__()
        self._own = own

    def card(self, model: str | None) -> ModelCard:
        """Find an installed model by its name and say what it can do."""
        if model is None or model == self._own:
            return super().card(self._own)
        own = registry.find(self._own).id  # What recipes call it, where it is a folder.
        offered = {each.id for each in registry.installed() if is_offered(each.id)}
        if model.partition("@")[0] not in offered | {own}:
            choices = ", ".join(sorted(offered) or [self._own])
            raise ModelError("model_not_offered", value=model[:80], choices=choices)
        return super().card(model)
