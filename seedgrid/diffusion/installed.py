"""InstalledBackend: the deferred backend for strangers, who may name what is installed, no path.

On a public Space the name of a model is typed by anybody: taken as a path it would tell what lies
on the server's disk. Recipes need no such care, since they hold names and never paths.
"""

from __future__ import annotations

from seedgrid.core.card import ModelCard
from seedgrid.core.errors import ModelError
from seedgrid.core.variables import is_offered
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.models import registry
from seedgrid.models.shelf import BUNDLED


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
