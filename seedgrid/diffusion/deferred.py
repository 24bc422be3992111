"""DeferredBackend: paints on this machine, and imports torch only when it is first needed.

`card` needs no torch, so requests can be checked immediately and on any thread. `prepare`, `paint`
and `probe` import torch; the engine calls them on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.core.variables import is_offered
from seedgrid.diffusion.backend import LoadWatch, Outcome, Placement, Watch
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.diffusion.process import large_import
from seedgrid.models import registry
from seedgrid.models.shelf import BUNDLED

if TYPE_CHECKING:
    from seedgrid.diffusion.diffusers_backend import DiffusersBackend


class DeferredBackend:
    """Creates a DiffusersBackend when it is first needed; `Backend` describes the methods."""

    def card(self, model: str | None) -> ModelCard:
        """Find a model and say what it can do, without torch."""
        return registry.card_here(model)

    def prepare(
        self, recipe: Recipe, placement: Placement, watch: LoadWatch | None = None
    ) -> Passport:
        """Import torch, load what the recipe needs, and return its picture's passport."""
        return self._painter.prepare(recipe, placement, watch)

    def is_ready(self, recipe: Recipe, placement: Placement) -> bool:
        """Tell whether the model is loaded already."""
        return "_painter" in vars(self) and self._painter.is_ready(recipe, placement)

    def paint(
        self, recipes: Sequence[Recipe], placement: Placement, watch: Watch
    ) -> tuple[Outcome, ...]:
        """Compute up to `lock_width` recipes of one `batch_key` in a batch of that width."""
        return self._painter.paint(recipes, placement, watch)

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport | None:
        """Test the lock for recipes like this one; None with an upscaler, as it has no batch."""
        return self._painter.probe(recipe, placement, watch) if recipe.upscaler is None else None

    def close(self) -> None:
        """Free models and memory."""
        if "_painter" in vars(self):
            self._painter.close()

    @cached_property
    def _painter(self) -> DiffusersBackend:
        with large_import():
            from seedgrid.diffusion.diffusers_backend import DiffusersBackend

        return DiffusersBackend()


class InstalledBackend(DeferredBackend):
    """For public pages: takes the default model, and others by name: paths would reveal files."""

    def __init__(self, default_model: str = BUNDLED) -> None:
        self._default_model = default_model

    def card(self, model: str | None) -> ModelCard:
        """Find an installed model that is offered, and say what it can do."""
        if model is None or model == self._default_model:
            return super().card(self._default_model)
        # The default model may have been given as a folder; recipes name it by its id.
        default_id = registry.find(self._default_model).id
        offered = {each.id for each in registry.installed() if is_offered(each.id)}
        if model.partition("@")[0] not in offered | {default_id}:
            choices = ", ".join(sorted(offered) or [self._default_model])
            raise ModelError("model_not_offered", value=model[:80], choices=choices)
        return super().card(model)
