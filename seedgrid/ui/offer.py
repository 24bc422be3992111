"""What the settings offer: what a model can do, which models and devices are here.

Knows no component. Devices are listed once torch is there; the page never waits for its import.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from seedgrid.request import ModelCard
from seedgrid.studio import Studio


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What can be chosen."""

    card: ModelCard
    models: tuple[str, ...]
    devices: tuple[str, ...]


def offer(studio: Studio, model: str | None) -> Offer:
    """Say what can be chosen with a model; the studio's own by default.

    Raises:
        ModelError: The model is not there, is damaged, or is not safe to load.
    """
    card = studio.card(model or None)
    return Offer(card=card, models=_models(studio), devices=_devices(studio))


def _models(studio: Studio) -> tuple[str, ...]:
    from seedgrid.backend import catalog

    names = [studio.model, *(model.id for model in catalog.installed())]
    return tuple(dict.fromkeys(names))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.engine.placement.device]
    if "torch" in sys.modules and studio.engine.warmth.state == "ready":
        from seedgrid.backend.devices import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))
