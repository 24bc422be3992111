"""What the settings offer: what a model can do, which models and devices are here.

Knows no component. Devices are listed once torch is there; the page never waits for its import.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seedgrid.core.card import ModelCard, shapes
from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.core.request import Request, ask_again
from seedgrid.studio import Studio
from seedgrid.web.texts import say, word


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What can be chosen, and what is taken when nothing is.

    Attributes:
        choices: What each list offers, by the name of its field.
        chosen: What a list shows at first, where that is not its first choice.
        answers: What a request gets that leaves everything open.
    """

    card: ModelCard
    choices: Mapping[str, tuple[str, ...]]
    chosen: Mapping[str, str]
    answers: Request


def offer(studio: Studio, model: str | None) -> Offer:
    """Say what can be chosen with a model; the studio's own by default."""
    card = studio.card(model or None)
    of_card = {row.name: tuple(row.choices(card)) for row in ON_PAGE if row.choices}
    of_machine = {"model": _models(studio), "device": _devices(studio)}
    return Offer(
        card=card,
        choices=of_card | of_machine,
        chosen={"model": card.ref.id},
        answers=answers_of(studio, model or None),
    )


def offered(offer: Offer, language: str) -> dict[str, Any]:
    """Return the lists as [label, value] pairs, what an open field gets, words and shapes."""
    lists: dict[str, Any] = {}
    for row in ON_PAGE:
        if row.widget != "choice":
            continue
        names = offer.choices[row.name]
        pairs = [[word(f"{row.name}_choice_{name}", language) or name, name] for name in names]
        if row.has_auto:
            auto = say("choice_auto", language)
            pairs = [[f"{auto} ({row.text(offer.answers)})", AUTO], *pairs]
        lists[row.name] = pairs
    return {
        "lists": lists,
        "chosen": dict(offer.chosen),
        "open": {row.name: row.text(offer.answers) for row in ON_PAGE if row.widget == "number"},
        "hints": offered_words(offer.card, language),
        "shapes": shapes_of(offer.card),
    }


def offered_words(card: ModelCard, language: str) -> dict[str, list[str]]:
    """Return the words to offer, by kind, as they are called in a language."""
    vocabulary = card.vocabulary
    if vocabulary is None:
        return {kind: list(words) for kind, words in card.hints.items()}
    return {
        kind: [vocabulary.called(word, language) for word in words]
        for kind, words in card.hints.items()
    }


def shapes_of(card: ModelCard) -> list[dict[str, str | int | bool]]:
    """Return the shapes that the bar offers; the model's own first."""
    return [
        {
            "ratio": shape.ratio,
            "width": shape.width,
            "height": shape.height,
            "size": shape.text,
            "own": shape.is_own,
        }
        for shape in shapes(card)
    ]


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
