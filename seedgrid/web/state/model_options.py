"""What the settings offer: what a model can do, which models and devices are here.

Knows no component. Devices are listed once torch is there; the page never waits for its import.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from seedgrid.core.request import ModelCard, Request
from seedgrid.core.turbo import quicken
from seedgrid.studio import Studio


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What can be chosen, and what is taken when nothing is.

    Attributes:
        answers: Its defaults are what a request gets that leaves steps and the like open.
    """

    card: ModelCard
    models: tuple[str, ...]
    devices: tuple[str, ...]
    answers: ModelCard


def offer(studio: Studio, model: str | None, *, turbo: bool = False) -> Offer:
    """Say what can be chosen with a model; the studio's own by default.

    Args:
        studio: What paints.
        model: By its name.
        turbo: Whether what is left open is answered for speed.

    Raises:
        ModelError: The model is not there, is damaged, or is not safe to load.
    """
    card = studio.card(model or None)
    device = studio.placement.device
    answers = quicken(card, Request(prompt=""), device=device) if turbo else card
    return Offer(card=card, models=_models(studio), devices=_devices(studio), answers=answers)


def _models(studio: Studio) -> tuple[str, ...]:
    from seedgrid.models import registry

    names = [studio.model, *(model.id for model in registry.installed())]
    return tuple(dict.fromkeys(names))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.placement.device]
    if "torch" in sys.modules and studio.warmth.state == "ready":
        from seedgrid.diffusion.devices import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))
