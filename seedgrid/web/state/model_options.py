"""What the settings offer: what a model can do, which models and devices are here.

Knows no component. Devices are listed once torch is there; the page never waits for its import.
"""

import sys
from typing import Any

from seedgrid.core.card import ModelCard, shapes
from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.core.request import Request, ask_again
from seedgrid.studio import Studio
from seedgrid.web.texts import say


def offered(studio: Studio, model: str | None, language: str) -> dict[str, Any]:
    """Return the lists as [label, value] pairs, what an open field gets, words and shapes."""
    card, answers = studio.card(model or None), answers_of(studio, model or None)
    of_machine = {"model": _models(studio), "device": _devices(studio)}
    lists: dict[str, Any] = {}
    for row in ON_PAGE:
        if row.widget != "choice":
            continue
        names = row.choices(card) if row.choices else of_machine[row.name]
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
    """Return the words to offer, by kind, as they are called in a language."""
    vocabulary = card.vocabulary
    return {
        kind: [vocabulary.called(word, language) if vocabulary else word for word in words]
        for kind, words in card.hints.items()
    }


def answers_of(studio: Studio, model: str | None) -> Request:
    """Say what a request gets that leaves everything open."""
    request = Request(prompt="a picture", seeds=(0,), model=model)
    return ask_again(studio.resolve(request)[0])


def _models(studio: Studio) -> tuple[str, ...]:
    from seedgrid.models import registry

    names = [studio.model, *(model.id for model in registry.installed())]
    return tuple(dict.fromkeys(names))


def _devices(studio: Studio) -> tuple[str, ...]:
    names = ["auto", studio.placement.device]
    if "torch" in sys.modules and studio.engine.warmth.state == "ready":
        from seedgrid.diffusion.devices import available_devices

        names += available_devices()
    return tuple(dict.fromkeys(names))
