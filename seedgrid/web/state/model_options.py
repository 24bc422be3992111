"""The entries of the settings' lists: what a model supports, and the models and devices here.

Devices are listed once torch is imported; the page does not wait for it.
"""

import sys
from typing import Any

from seedgrid.core.card import ModelCard, shapes
from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.core.request import Request, ask_again
from seedgrid.core.variables import is_offered
from seedgrid.studio import Studio
from seedgrid.web.texts import say


def offered(studio: Studio, model: str | None, language: str) -> dict[str, Any]:
    """Return lists as [label, value] pairs, defaults of open fields, suggested words and sizes."""
    card, answers = studio.card(model or None), answers_of(studio, model or None)
    local_choices = {"model": _models(studio.card().ref.id), "device": _devices(studio)}
    lists: dict[str, Any] = {}
    for row in ON_PAGE:
        if row.widget != "choice":
            continue
        names = row.choices(card) if row.choices else local_choices[row.name]
        pairs = [[say(f"{row.name}_choice_{name}", language) or name, name] for name in names]
        if row.has_auto:
            auto = say("choice_auto", language)
            pairs = [[f"{auto} ({row.text(answers)})", AUTO], *pairs]
        lists[row.name] = pairs
    return {
        "lists": lists,
        "chosen": {"model": card.ref.id},
        "open": {row.name: row.text(answers) for row in ON_PAGE if row.widget == "number"},
        "hints": _words(card, language),
        "shapes": [vars(shape) | {"size": shape.text} for shape in shapes(card)],
    }


def _words(card: ModelCard, language: str) -> dict[str, list[str]]:
    """Return the model's suggested words by kind, in a language."""
    vocabulary = card.vocabulary
    return {
        kind: [vocabulary.called(word, language) if vocabulary else word for word in words]
        for kind, words in card.hints.items()
    }


def answers_of(studio: Studio, model: str | None) -> Request:
    """Return the model's defaults as a request."""
    request = Request(prompt="a picture", seeds=(0,), model=model)
    return ask_again(studio.resolve(request)[0])


def _models(own: str) -> tuple[str, ...]:
    """Return the names of the models to choose from; on a public page only those offered."""
    from seedgrid.models import registry

    installed = (model.id for model in registry.installed())
    return tuple(dict.fromkeys([own, *filter(is_offered, installed)]))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.placement.device]
    if "torch" in sys.modules and studio.engine.warmth.state == "ready":
        from seedgrid.diffusion.devices import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))
